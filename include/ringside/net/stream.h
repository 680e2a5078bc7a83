// A connected byte stream on a ring: TCP or a unix socket, towards a client or a server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ringside/base/arena.h"
#include "ringside/base/error.h"
#include "ringside/net/address.h"
#include "ringside/net/piece.h"
#include "ringside/net/pipe.h"
#include "ringside/net/record_layer.h"
#include "ringside/net/slice.h"
#include "ringside/net/sys_port.h"
#include "ringside/ring/buffer_group.h"
#include "ringside/ring/completion.h"
#include "ringside/ring/ring.h"

namespace ringside::net {

// What all streams of a ring share. Outlives them.
struct StreamContext {
  ring::Ring& ring;
  ring::BufferGroup& buffers;
  SlicePool& slices;
  SysPort& sys;
  PipePool& pipes;
  bool bundles = true;  // receive into several buffers at once, where the kernel can
  // Buffers for peers that send in bulk (`large_streak_min` bytes in receives without a short one);
  // null: none. Who finds all of them in use goes on with those of `buffers`.
  ring::BufferGroup* large = nullptr;
  std::uint32_t large_streak_min = 0;
  // SEND_ZC for leases of at least `zero_copy_bytes_min` bytes: always where the socket can, or on
  // a connection until a notification says that the kernel copied after all.
  enum class ZeroCopy : std::uint8_t { off, while_useful, always };
  ZeroCopy zero_copy = ZeroCopy::off;
  std::uint32_t zero_copy_bytes_min = 0;
  // For streams with a record layer; null: there are none. Plaintext goes into buffers of a group
  // of its own: what waits for room there holds receive buffers, and must not wait for itself.
  ring::BufferGroup* opened = nullptr;
  RecordBlocks* blocks = nullptr;
  // Bodies of which so many bytes are still to come pass through a pipe, once the peer has shown
  // that it sends in bulk (`splice_streak_min` bytes in receives without a short one).
  std::uint64_t splice_bytes_min = splice_never;
  std::uint32_t splice_streak_min = 0;
  static constexpr std::uint64_t splice_never = ~std::uint64_t{0};
  // Every body is to pass through a pipe or large buffers, so nothing but heads may be received
  // into others.
  bool moves_small() const {
    return (splice_bytes_min != splice_never && splice_streak_min == 0) ||
           (large != nullptr && large_streak_min == 0);
  }
};

// All calls come on the ring's thread, from its loop; a handler may call anything of its stream,
// close() included.
class StreamHandler {
 public:
  // After Stream::connect succeeded; with a record layer, after the handshake.
  virtual void on_connected() {}
  // An accepted stream's record layer has completed its handshake, or let data pass before that:
  // Stream::early().
  virtual void on_secured() {}
  // The handshake is completed of which Stream::early() was said.
  virtual void on_confirmed() {}
  // Bytes arrived. May still come after park(), for what was under way.
  virtual void on_received(ring::Lease lease) = 0;
  // How many bytes from here on nobody needs to look at, so that they may come by on_piped.
  // Asked before every receive of a stream that is received singly.
  virtual std::uint64_t opaque_bytes() { return 0; }
  virtual void on_piped(PipeBytes) {}
  // The peer will send no more (FIN). No on_received follows.
  virtual void on_end_of_stream() = 0;
  // Some queued bytes have left; pending_bytes() tells how many wait still.
  virtual void on_sent() = 0;
  // Once. In `direction` nothing works any more; the other one may still have data (a server that
  // answered and then reset). `insecure`: the record layer failed, and says why; in neither
  // direction anything follows but the layer's own bytes, with close() or finish_sending().
  enum class Direction : std::uint8_t { receive, send };
  // `unsupported`: the peer sends on, but nothing that the record layer could open; sending works.
  // Unread bytes make a close() a reset.
  virtual void on_failed(const base::Error& error, Direction direction) = 0;
  // The stream is joined and closed; it may be destroyed, right here.
  virtual void on_closed() = 0;
  // Instead of on_closed after release(): the descriptor is the handler's now.
  virtual void on_released(int) {}

 protected:
  ~StreamHandler() = default;
};

// Owner: a session; immovable. States: new → (connecting →) open → closing → closed. Destroyed only
// when new or closed.
//
// Receiving is a multishot operation that is armed while the stream is not parked, or one receive
// after the other (receive_singly, receive_by_need). Sending collects what one turn of the loop
// queues and submits it as one operation at the end of the turn, so a head and its body leave
// together. One send is in flight at a time, next to a few zero-copy sends whose notifications are
// still owed.
class Stream final : public ring::Completer,
                     private ring::Deferred,
                     private ring::BufferWaiter,
                     private PipeWaiter {
 public:
  Stream(StreamContext& context, StreamHandler& handler)
      : context_(context), handler_(&handler), queue_(context.slices) {}
  ~Stream();

  // What passes through the socket are the layer's records. Only for a new stream; the layer lives
  // until on_closed.
  void secure(RecordLayer& layer);
  // Another handler takes over, for everything from now on. A handler may give its own stream away.
  void hand_to(StreamHandler& handler) { handler_ = &handler; }
  // Without traffic for a while: memory that is easily made again is given back.
  void rest();

  // Takes over a connected descriptor; parked. False when the ring has no slot (the descriptor
  // stays the caller's).
  bool adopt(int fd);
  // Opens a socket and connects; on_connected or on_failed follows. An error: no socket or slot to
  // be had.
  base::Result<void> connect(const Address& address);

  // Back-pressure towards the peer. A new stream is parked.
  void park();
  void resume();
  bool parked() const { return parked_; }
  // For a stream that was just adopted: receives once and stays parked. That costs less than half
  // of a multishot receive that has to be cancelled later, where no second one is needed. When
  // nothing was received the stream is resumed.
  void receive_once();
  // Receive a bounded number of bytes a turn (true) instead of by a multishot operation (false, as
  // a new stream does). A multishot receive takes as many buffers in one turn as the peer has
  // bytes, so whoever sends in bulk must be received singly, or one connection empties the group. A
  // single receive costs a submission, and stopping it costs nothing; it fills one large buffer,
  // else up to a fair share of the buffers where the kernel has bundles, else one buffer.
  void receive_singly(bool singly) {
    receive_as(singly ? Receiving::singly : Receiving::multishot);
  }
  // The stream chooses between the two: singly as long as the peer lately filled a buffer, or
  // buffers are scarce.
  void receive_by_need() { receive_as(Receiving::by_need); }

  // Queues bytes. False when memory ran out: the caller closes. Views must stay in place until
  // sent.
  bool send_view(std::string_view bytes);
  bool send_piece(Piece piece);
  bool send_copy(std::string_view bytes);  // at most Slice::own_bytes_max bytes
  // The same, but a few bytes (`append_bytes_max`) are copied right behind what waits already,
  // where that is a view of what was placed in `arena` last: a head and a small body leave as one
  // piece then. A list of pieces costs the kernel more than the copy does.
  bool send_view(std::string_view bytes, base::Arena& arena) {
    return append(bytes, arena) || send_view(bytes);
  }
  bool send_piece(Piece piece, base::Arena& arena) {
    return append(piece.bytes(), arena) || send_piece(std::move(piece));
  }
  bool send_copy(std::string_view bytes, base::Arena& arena) {
    return append(bytes, arena) || send_copy(bytes);
  }
  // Sends FIN when everything queued has left. With a record layer on_sent() tells of it.
  void finish_sending();
  bool finished() const { return finish_sent_; }
  // The end will come before what the peer expects: the record layer does not announce it, so that
  // the peer notices.
  void end_unannounced() {
    if (layer_ != nullptr) layer_->unannounced_ = true;
  }
  // What is queued is the last, and nothing more is wanted of the peer. If the socket takes all of
  // it at once the stream ends with it, in one packet. The caller closes it as ever, once
  // everything has left.
  void close_after_sending() { last_queued_ = true; }
  // It has ended with its last bytes, or is about to.
  bool ends_itself() const { return state_ == State::open && close_submitted_; }
  // Bytes that are queued or in flight.
  std::size_t pending_bytes() const {
    return queue_.bytes() + (layer_ == nullptr ? 0 : layer_->sealed_ - layer_->sent_);
  }
  // The same as SliceQueue::cost().
  std::size_t pending_cost() const {
    return queue_.cost() + (layer_ == nullptr ? 0 : layer_->sealed_ - layer_->sent_);
  }
  // Everything has left: memory that views point to is free. (Leases of a zero-copy send live on
  // by themselves until its notification; a response never waits for that.)
  bool drained() const { return pending_bytes() == 0; }
  // Pieces in a pipe can be sent: nobody has to look at them.
  bool takes_pipes() const { return !sends_records(); }
  // The owner of the memory that views point to goes away before they are sent: to be called before
  // close(). What is in `arena` stays until no operation points into it any more.
  void keep_until_closed(base::Arena& arena) {
    if (!drained()) kept_ = arena.pin();
  }
  std::uint64_t bytes_sent() const { return bytes_sent_; }
  // As many of these left without being copied here, as far as is known.
  std::uint64_t bytes_zero_copied() const { return bytes_zero_copied_; }
  // A send is in flight: how much of it has left is not known yet.
  bool sending() const { return sending_; }

  // What has come until now may be a replay of what another connection has brought (RFC 8446 §8),
  // until on_confirmed().
  bool early() const { return layer_ != nullptr && layer_->early(); }

  bool open() const { return state_ == State::open; }
  bool closing() const { return state_ == State::closing || state_ == State::closed; }
  bool ended() const { return ended_; }
  // Open, not ended, nothing queued, in flight or owed in the sending direction.
  bool idle() const {
    return state_ == State::open && !ended_ && !sending_ && drained() && notices_owed_ == 0;
  }

  // Ends the stream in three steps: closing (operations are cancelled), joining (none in flight),
  // closed. With `reset` the peer sees RST instead of FIN: it must not take what it got for whole.
  void close(bool reset = false);
  // For lending: stops receiving and gives the descriptor away through on_released. Only when
  // idle(), and without a record layer, of which half is here. Should something arrive meanwhile
  // the stream closes instead (on_closed).
  void release();

  int descriptor() const { return fd_; }
  StreamContext& context() { return context_; }

  void on_complete(std::uint8_t kind, const ring::Completion& completion) override;

 private:
  enum class State : std::uint8_t { fresh, connecting, open, closing, closed };
  enum class Receiving : std::uint8_t { multishot, singly, by_need };
  enum class Receive : std::uint8_t { off, armed, cancelling, no_buffers, pipe_full };
  enum Kind : std::uint8_t {
    kind_connect,
    kind_receive,
    kind_cancel_receive,
    kind_send,
    kind_cancel_send,
    kind_close,
    kind_zero_copy  // the last: one for each place in `held_`
  };
  // Zero-copy sends whose notification may be owed at a time: more pieces are copied.
  static constexpr std::uint8_t zero_copies_max = 4;
  static constexpr std::uint8_t no_place = 0xff;
  static constexpr std::size_t append_bytes_max = 2048;

  void run_deferred() override;
  void on_buffers_available() override;
  void on_pipe_free() override;
  void receive_as(Receiving how);
  void end_multishot();
  bool singly() const;
  bool may_splice();
  bool receive_into_large();
  void arm_splice();
  void splice_ready(const ring::Completion& completion);
  void splice_in(std::uint64_t bytes_max);
  void splice_out();
  void note_received(std::uint32_t bytes);
  void arm_receive();
  void cancel_receive();
  std::uint32_t share_of_buffers() const;
  void deliver(const ring::Completion& completion, bool large);
  void cancel_send();
  void received(const ring::Completion& completion);
  void receive_failed(int result);
  void sent(const ring::Completion& completion);
  void sent_zero_copy(std::uint8_t place, const ring::Completion& completion);
  void submit_send();
  bool may_end_with_queue() const;
  void submit_last(const msghdr* message);
  void close_followed(int result);
  bool zero_copies() const {
    return context_.zero_copy != StreamContext::ZeroCopy::off && !zero_copy_off_;
  }
  bool submit_zero_copy();
  ring::Lease* place_for(const Slice& slice);
  bool joins(const Slice& slice);
  bool append(std::string_view bytes, base::Arena& arena) {
    return bytes.size() <= append_bytes_max && !bytes.empty() && queue_.append(bytes, arena);
  }
  void queued();
  void send_fin();
  // With a record layer (stream_records.cc, stream_kernel_tls.cc).
  bool opens_records() const { return layer_ != nullptr && !layer_->kernel_opens_; }
  bool sends_records() const { return layer_ != nullptr && !layer_->kernel_sends_; }
  void pass_on(ring::Lease lease) {
    opens_records() ? received_record(std::move(lease)) : handler_->on_received(std::move(lease));
  }
  void start_records();
  void received_record(ring::Lease lease);
  void open_records();
  void wait_for_room();
  void secured();
  void confirmed();
  bool records_over(int result);
  void records_ended();
  void records_failed();
  void submit_records();
  void seal_queue();
  void send_block();
  void sent_records(std::uint32_t bytes);
  void drop_block();
  void say_farewell(bool reset);
  bool may_receive() const;
  void hand_over_sending();
  bool hand_over_receiving();
  void arm_control();
  void control_received(const ring::Completion& completion);
  void control_lost(int negative_errno);
  bool send_notice();
  bool notify_end(int flags);
  void submit_notice(int flags);
  void notice_sent();
  void joined();
  void fail(int negative_errno, StreamHandler::Direction direction);
  void advance_closing();

  StreamContext& context_;
  base::ArenaPin kept_;
  StreamHandler* handler_;
  SliceQueue queue_;
  RecordLayer* layer_ = nullptr;
  ring::Lease held_[zero_copies_max];  // pieces of zero-copy sends until their notification
  PipeRef pipe_;                       // while bodies are spliced from here
  std::uint64_t bytes_sent_ = 0;
  std::uint64_t bytes_zero_copied_ = 0;
  std::uint32_t streak_bytes_ = 0;  // received in bulk, without a short receive in between
  int fd_ = -1;
  State state_ = State::fresh;
  Receive receive_ = Receive::off;
  bool parked_ = true;
  Receiving receiving_ = Receiving::multishot;
  std::uint8_t bulk_turns_ = 0;  // receives until a bulk sender is taken for one no more
  bool armed_singly_ = false;
  bool armed_large_ = false;
  bool large_refused_ = false;  // the last receive into a large buffer found none
  bool more_to_read_ = false;   // by what the last receive said
  bool polling_in_ = false;     // the receive that is armed is a poll before a splice
  bool polling_out_ = false;
  bool splice_off_ = false;     // this socket cannot
  bool splice_paused_ = false;  // until something was received
  bool ended_ = false;
  bool sending_ = false;
  bool send_failed_ = false;
  bool finish_wanted_ = false;
  bool finish_sent_ = false;
  bool zero_copy_off_ = false;
  std::uint8_t zero_copy_at_ = no_place;  // of the zero-copy send in flight
  std::uint8_t notices_owed_ = 0;         // sends of which only the notification is to come
  bool once_ = false;                     // receive_once is in flight
  bool last_queued_ = false;              // close_after_sending
  bool close_submitted_ = false;
  bool close_follows_ = false;  // the close that was submitted runs only after the send
  bool reset_wanted_ = false;   // if it does not run
  bool failure_kept_ = false;   // of that send: `kept_result_` waits for the close
  std::int32_t kept_result_ = 0;
  bool connecting_ = false;  // it was closed while it connected
  bool releasing_ = false;
};

}  // namespace ringside::net
