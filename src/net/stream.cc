#include "ringside/net/stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <utility>

namespace ringside::net {

using ring::Completion;
using Direction = StreamHandler::Direction;

namespace {
// Gather lists longer than this gain nothing: a piece is a receive buffer, so this is up to 1 MiB.
constexpr std::size_t pieces_max = 64;
// What one receive of a bulk sender may bring: the larger the cheaper a byte is, and the longer the
// others on the ring wait. From here on the gain is small (docs/benchmarks.md).
constexpr std::uint32_t bulk_bytes_max = 256 * 1024;
// A receive that brought less says that the peer is slow: many small splices cost more than copies.
constexpr std::uint32_t bulk_receive_min = 16 * 1024;
// A peer that filled a buffer is received singly for so many receives more, so that one that sends
// a large body after another is not taken for a small one in between.
constexpr std::uint8_t bulk_turns_max = 16;
// With more than a quarter of the buffers under lease they are scarce.
constexpr std::uint32_t scarce_part = 4;
}  // namespace

Stream::~Stream() {
  assert(state_ == State::fresh || state_ == State::closed);
}

bool Stream::adopt(int fd) {
  assert(state_ == State::fresh);
  if (!context_.ring.attach(*this)) return false;
  fd_ = fd;
  state_ = State::open;
  if (layer_ != nullptr) layer_->on_socket(context_.sys, fd_);
  return true;
}

base::Result<void> Stream::connect(const Address& address) {
  assert(state_ == State::fresh);
  base::Result<int> fd = context_.sys.open_stream_socket(address.family());
  if (!fd) return std::unexpected(fd.error());
  if (!context_.ring.attach(*this)) {
    context_.sys.close(*fd);
    return std::unexpected(base::Error{base::ErrorCode::pool_exhausted});
  }
  if (address.family() != AF_UNIX) {
    context_.sys.set_option(*fd, IPPROTO_TCP, TCP_NODELAY, 1);
  }
  fd_ = *fd;
  state_ = State::connecting;
  // The kernel copies the address when the operation is submitted, at the end of this turn.
  context_.ring.connect(*this, kind_connect, fd_, address.raw(), address.length());
  return {};
}

// ---- receiving

void Stream::park() {
  parked_ = true;
  if (receive_ == Receive::armed && !armed_singly_) cancel_receive();
  if (receive_ == Receive::no_buffers) {
    ring::BufferWaiter::unlink();
    receive_ = Receive::off;
  }
  if (receive_ == Receive::pipe_full) {
    pipe_->waiter = nullptr;
    receive_ = Receive::off;
  }
}

void Stream::receive_as(Receiving how) {
  receiving_ = how;
  end_multishot();
}

// Where it should not go on.
void Stream::end_multishot() {
  if (receive_ == Receive::armed && !armed_singly_ && singly()) cancel_receive();
}

bool Stream::singly() const {
  if (layer_ != nullptr && layer_->moving_) return true;
  if (receiving_ != Receiving::by_need) return receiving_ == Receiving::singly;
  if (context_.moves_small()) return true;
  const ring::BufferGroup& buffers = context_.buffers;
  return bulk_turns_ != 0 || buffers.leased() > buffers.count() / scarce_part;
}

void Stream::resume() {
  parked_ = false;
  if (receive_ == Receive::off)
    arm_receive();
  else
    end_multishot();
}

void Stream::arm_receive() {
  if (state_ != State::open || parked_ || ended_ || releasing_ || close_submitted_) return;
  if (layer_ != nullptr && (!may_receive() || hand_over_receiving())) return;
  if (may_splice()) return arm_splice();
  pipe_.reset();
  receive_ = Receive::armed;
  armed_singly_ = singly();
  armed_large_ = armed_singly_ && receive_into_large();
  if (armed_large_) return;
  if (armed_singly_) {
    // What comes while the kernel may take over must be opened whole before it does.
    const bool several = context_.bundles && (layer_ == nullptr || !layer_->moving_);
    return context_.ring.receive_bundle(*this, kind_receive, fd_, context_.buffers,
                                        several ? share_of_buffers() : 1, !more_to_read_);
  }
  context_.ring.receive_multishot(*this, kind_receive, fd_, context_.buffers);
}

// False: there is none, or it is not worth it.
bool Stream::receive_into_large() {
  ring::BufferGroup* large = context_.large;
  if (large == nullptr || opens_records() || streak_bytes_ < context_.large_streak_min)
    return false;
  if (std::exchange(large_refused_, false)) return false;
  if (large->published() == 0) large->widen();
  if (large->published() == 0) return false;
  context_.ring.receive_bundle(*this, kind_receive, fd_, *large, 1, !more_to_read_);
  return true;
}

std::uint32_t Stream::share_of_buffers() const {
  const ring::BufferGroup& buffers = context_.buffers;
  return std::min(buffers.share(), bulk_bytes_max / buffers.buffer_bytes());
}

void Stream::cancel_receive() {
  receive_ = Receive::cancelling;
  context_.ring.cancel(*this, kind_receive, kind_cancel_receive);
}

// Ends whatever is under way in the sending direction: the connect, or the send.
void Stream::cancel_send() {
  Kind target = kind_send;
  if (connecting_)
    target = kind_connect;
  else if (zero_copy_at_ != no_place)
    target = static_cast<Kind>(kind_zero_copy + zero_copy_at_);
  context_.ring.cancel(*this, target, kind_cancel_send);
}

void Stream::on_buffers_available() {
  if (layer_ != nullptr && std::exchange(layer_->blocked_, false)) {
    open_records();
    if (receive_ == Receive::off) arm_receive();
    return;
  }
  receive_ = Receive::off;
  arm_receive();
}

// ---- receiving through a pipe

bool Stream::may_splice() {
  if (opens_records() || !singly() || splice_off_ || splice_paused_) return false;
  if (streak_bytes_ < context_.splice_streak_min) return false;
  // A body without a known end has more bytes than any limit, `splice_never` included.
  return context_.splice_bytes_min != StreamContext::splice_never &&
         handler_->opaque_bytes() >= context_.splice_bytes_min;
}

void Stream::arm_splice() {
  if (pipe_ && pipe_->bytes != 0 && !pipe_->spoiled) {
    receive_ = Receive::pipe_full;
    pipe_->waiter = this;
    return;
  }
  receive_ = Receive::armed;
  armed_singly_ = polling_in_ = true;
  context_.ring.poll(*this, kind_receive, fd_, POLLIN);
}

void Stream::on_pipe_free() {
  receive_ = Receive::off;
  if (!ring::Deferred::linked()) context_.ring.defer(*this);
}

void Stream::splice_ready(const Completion& completion) {
  receive_ = Receive::off;
  polling_in_ = false;
  if (state_ != State::open) return advance_closing();
  if (completion.result < 0) return receive_failed(completion.result);
  if (releasing_) return close();
  if (parked_) return;
  // Nothing was taken yet, so the handler may have changed its mind.
  std::uint64_t bytes = may_splice() ? handler_->opaque_bytes() : 0;
  if (pipe_ && pipe_->spoiled) pipe_.reset();
  if (bytes != 0 && !pipe_) pipe_ = context_.pipes.take();
  if (bytes == 0 || !pipe_) {
    splice_off_ |= bytes != 0;  // no pipe to be had: this stream goes on with copies
    return arm_receive();
  }
  splice_in(bytes);
}

void Stream::splice_in(std::uint64_t bytes_max) {
  auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes_max, pipe_->ends.capacity));
  int moved = context_.sys.splice_in(fd_, pipe_->ends.write_fd, bytes);
  if (moved == -EINVAL && layer_ != nullptr) return arm_control();
  if (moved == -EAGAIN && layer_ != nullptr) {
    splice_paused_ = true;  // a record that is not whole yet: a poll would say the same again
    return arm_receive();
  }
  if (moved == -EINVAL || moved == -EAGAIN) {
    splice_off_ = true;  // it cannot, or says that nothing is there though the poll said otherwise
    return arm_receive();
  }
  if (moved <= 0) return receive_failed(moved);
  note_received(static_cast<std::uint32_t>(moved));
  handler_->on_piped(PipeBytes(*pipe_, static_cast<std::uint32_t>(moved)));
  if (receive_ == Receive::off) arm_receive();
}

void Stream::note_received(std::uint32_t bytes) {
  streak_bytes_ = bytes < bulk_receive_min ? 0 : streak_bytes_ + std::min(bytes, bulk_bytes_max);
  streak_bytes_ = std::min(streak_bytes_, 1U << 30);
  if (bytes >= context_.buffers.buffer_bytes())
    bulk_turns_ = bulk_turns_max;
  else if (bulk_turns_ != 0)
    --bulk_turns_;
}

// ---- receiving into buffers

// Hands on what came, piece by piece, until the handler closes the stream.
void Stream::deliver(const Completion& completion, bool large) {
  if (large || completion.result <= static_cast<std::int32_t>(context_.buffers.buffer_bytes())) {
    ring::Lease lease = (large ? *context_.large : context_.buffers).take(completion);
    lease.set_mark(static_cast<std::uint8_t>(large ? Mover::large : Mover::copy));
    if (state_ == State::open && !releasing_) pass_on(std::move(lease));
    return;
  }
  ring::Bundle bundle(context_.buffers, completion);
  while (!bundle.empty() && state_ == State::open && !releasing_) {
    ring::Lease lease = bundle.next();
    lease.set_mark(static_cast<std::uint8_t>(Mover::bundle));
    pass_on(std::move(lease));
  }
}

void Stream::received(const Completion& completion) {
  if (!completion.more()) receive_ = Receive::off;
  more_to_read_ = completion.more_to_read();
  if (completion.result > 0) {
    splice_paused_ = false;
    note_received(static_cast<std::uint32_t>(completion.result));
  }
  if (std::exchange(once_, false) && completion.result <= 0) parked_ = false;
  bool unasked = releasing_;
  bool large = armed_large_;
  if (completion.has_buffer()) deliver(completion, large);
  if (state_ != State::open) {
    advance_closing();
    return;
  }
  if (completion.result > 0) {
    if (unasked) return close();  // a server that speaks unasked is not fit to be lent
    if (receive_ == Receive::off)
      arm_receive();
    else
      end_multishot();
    return;
  }
  receive_failed(completion.result);
}

// Nothing came: the end, or an error, which may be no more than a reason to try again.
void Stream::receive_failed(int result) {
  switch (result) {
    case 0:
      if (layer_ != nullptr && records_over(0)) return;
      ended_ = true;
      if (releasing_) return close();
      handler_->on_end_of_stream();
      return;
    case -ECANCELED:
    case -EAGAIN:
    case -EINTR:
      if (releasing_) return advance_closing();
      arm_receive();
      return;
    case -EIO:
      if (layer_ != nullptr && layer_->kernel_opens_) return arm_control();
      break;
    case -ENOBUFS:
      if (releasing_) return advance_closing();
      if (parked_ || (layer_ != nullptr && layer_->blocked_)) return;
      if (armed_large_) {
        context_.large->widen();
        large_refused_ = true;
        return arm_receive();
      }
      receive_ = Receive::no_buffers;
      context_.buffers.wait(*this);
      return;
    default:
      break;
  }
  if (layer_ != nullptr && records_over(result)) return;
  ended_ = true;
  if (releasing_) return close();
  fail(result, Direction::receive);
}

// ---- sending

void Stream::queued() {
  if (!sending_ && !ring::Deferred::linked()) context_.ring.defer(*this);
}

bool Stream::send_view(std::string_view bytes) {
  if (bytes.empty()) return true;
  if (!queue_.push_view(bytes)) return false;
  queued();
  return true;
}

bool Stream::send_piece(Piece piece) {
  if (piece.empty()) return true;
  if (!queue_.push(std::move(piece))) return false;
  queued();
  return true;
}

bool Stream::send_copy(std::string_view bytes) {
  if (!queue_.push_copy(bytes)) return false;
  queued();
  return true;
}

void Stream::finish_sending() {
  finish_wanted_ = true;
  queued();
}

void Stream::run_deferred() {
  if (state_ == State::closing) return advance_closing();
  if (state_ == State::open && !sending_ && !send_failed_ && !close_submitted_) submit_send();
  // A pipe has become free; otherwise it is armed already.
  if (receive_ == Receive::off) arm_receive();
}

void Stream::send_fin() {
  if (!finish_wanted_ || finish_sent_) return;
  if (layer_ != nullptr && notify_end(0)) return;
  finish_sent_ = true;
  context_.sys.shutdown(fd_, SHUT_WR);  // fails only where the connection is gone already
  if (layer_ != nullptr) handler_->on_sent();
}

void Stream::submit_send() {
  if (sends_records()) return submit_records();
  if (layer_ != nullptr && send_notice()) return;
  if (queue_.empty()) return send_fin();
  Slice* first = queue_.front();
  if (first->piped) return splice_out();
  sending_ = true;
  if (submit_zero_copy()) return;
  bool last = may_end_with_queue();
  if (!last && (first->next == nullptr || !joins(*first->next))) {
    context_.ring.send(*this, kind_send, fd_, first->data, first->size, MSG_NOSIGNAL);
    return;
  }
  ring::Ring::Gather& gather = context_.ring.gather();
  std::size_t count = 0;
  Slice* at = first;
  do {
    gather.pieces[count++] = {const_cast<char*>(at->data), at->size};
    at = at->next;
  } while (at != nullptr && count < pieces_max && joins(*at));
  gather.message = {};
  gather.message.msg_iov = gather.pieces;
  gather.message.msg_iovlen = count;
  if (last && at == nullptr) return submit_last(&gather.message);
  context_.ring.send_message(*this, kind_send, fd_, &gather.message, MSG_NOSIGNAL);
}

// Whether it may leave in one operation with what is before it.
bool Stream::joins(const Slice& slice) {
  return !slice.piped && (!zero_copies() || place_for(slice) == nullptr);
}

// Where it can be held for a zero-copy send, or null. That pays only for large pieces, a few may be
// owed (one operation of a kind), and the piece must be a lease: an arena would have to wait for
// the notification.
ring::Lease* Stream::place_for(const Slice& slice) {
  if (!slice.lease || slice.size < context_.zero_copy_bytes_min) return nullptr;
  auto* free = std::ranges::find_if(held_, [](const ring::Lease& lease) { return !lease; });
  return free == std::end(held_) ? nullptr : free;
}

bool Stream::submit_zero_copy() {
  if (!zero_copies()) return false;
  Slice* first = queue_.front();
  ring::Lease* free = place_for(*first);
  if (free == nullptr) return false;
  *free =
      first->lease.share(static_cast<std::size_t>(first->data - first->lease.data()), first->size);
  zero_copy_at_ = static_cast<std::uint8_t>(free - held_);
  context_.ring.send_zero_copy(*this, static_cast<std::uint8_t>(kind_zero_copy + zero_copy_at_),
                               fd_, first->data, first->size, MSG_NOSIGNAL,
                               free->registered_index());
  return true;
}

// Goes on in the same turn until the socket is full: then it is polled for room.
void Stream::splice_out() {
  Slice* first = queue_.front();
  int moved = context_.sys.splice_out(first->piped.read_fd(), fd_, first->size);
  if (moved == -EAGAIN || moved == -EINTR) {
    sending_ = polling_out_ = true;
    context_.ring.poll(*this, kind_send, fd_, POLLOUT);
    return;
  }
  // A pipe that has less than was put in cannot be; better a broken connection than a wrong byte.
  if (moved <= 0) return fail(moved == 0 ? -EIO : moved, Direction::send);
  queue_.consume(static_cast<std::size_t>(moved));
  bytes_sent_ += static_cast<std::uint64_t>(moved);
  if (!queue_.empty() || finish_wanted_) queued();
  handler_->on_sent();
}

void Stream::sent(const Completion& completion) {
  if (close_follows_ && completion.result != static_cast<std::int32_t>(queue_.bytes())) {
    // What can be done now depends on whether the descriptor is still there.
    failure_kept_ = true;
    kept_result_ = completion.result;
    return;
  }
  sending_ = false;
  if (std::exchange(polling_out_, false) && state_ == State::open && completion.result >= 0) {
    return queued();
  }
  if (state_ != State::open) return advance_closing();
  if (completion.result == -EAGAIN || completion.result == -EINTR) return queued();
  if (completion.result < 0) return fail(completion.result, Direction::send);
  if (layer_ != nullptr && layer_->notice_ != nullptr) return notice_sent();
  if (sends_records()) return sent_records(static_cast<std::uint32_t>(completion.result));
  queue_.consume(static_cast<std::size_t>(completion.result));
  bytes_sent_ += static_cast<std::uint64_t>(completion.result);
  if (!queue_.empty() || finish_wanted_) queued();
  handler_->on_sent();
}

// First what became of the send, then the notification, unless the send failed before it could owe
// one.
void Stream::sent_zero_copy(std::uint8_t place, const Completion& completion) {
  if (!completion.more()) held_[place].reset();
  if (completion.notification()) {
    --notices_owed_;
    if (completion.copied() && context_.zero_copy == StreamContext::ZeroCopy::while_useful)
      zero_copy_off_ = true;
    if (state_ != State::open) advance_closing();
    return;
  }
  zero_copy_at_ = no_place;
  if (completion.more()) ++notices_owed_;
  if (completion.result == -EOPNOTSUPP || completion.result == -EINVAL ||
      completion.result == -ENOMEM || completion.result == -ENOBUFS) {
    zero_copy_off_ = true;  // this socket, or the memory lock, cannot: go on with copies
    return sent(Completion{.result = -EAGAIN, .flags = 0});
  }
  if (completion.result > 0) bytes_zero_copied_ += static_cast<std::uint64_t>(completion.result);
  sent(completion);
}

void Stream::fail(int negative_errno, Direction direction) {
  if (direction == Direction::send) {
    send_failed_ = true;
    queue_.clear();
    if (layer_ != nullptr && !sending_) drop_block();
  }
  handler_->on_failed(base::from_errno(-negative_errno), direction);
}

// ---- ending

void Stream::close(bool reset) {
  if (closing()) return;
  if (state_ == State::fresh) {
    state_ = State::closed;
    return;
  }
  bool connecting = state_ == State::connecting;
  state_ = State::closing;
  releasing_ = false;
  if (close_follows_) {
    reset_wanted_ = reset;  // the descriptor may be another's by now
  } else if (reset && !close_submitted_) {
    context_.sys.reset_on_close(fd_);
  }
  if (receive_ == Receive::pipe_full) pipe_->waiter = nullptr;
  pipe_.reset();
  ring::BufferWaiter::unlink();
  if (receive_ == Receive::armed) cancel_receive();
  connecting_ = connecting;
  if (connecting || sending_) cancel_send();
  if (layer_ != nullptr && !connecting) say_farewell(reset);
  // It has ended already; a handler is not called from in here.
  if (close_submitted_ && in_flight() == 0) return context_.ring.defer(*this);
  advance_closing();
}

void Stream::release() {
  assert(state_ == State::open && layer_ == nullptr && drained() && !sending_);
  releasing_ = true;
  parked_ = true;
  if (receive_ == Receive::armed) cancel_receive();
  if (receive_ == Receive::no_buffers) ring::BufferWaiter::unlink();
  // Nothing in flight: a cancel that finds nothing brings us back to the loop.
  if (in_flight() == 0) context_.ring.cancel(*this, kind_receive, kind_cancel_receive);
}

// A notification that is still owed must not hold up the close: on a peer that does not read, only
// the close (or a reset) makes the kernel let go of the buffer.
void Stream::advance_closing() {
  if (close_submitted_) {
    if (state_ == State::closing && in_flight() == 0) joined();
    return;
  }
  if (in_flight() != notices_owed_) return;
  if (releasing_) {
    releasing_ = false;
    int fd = fd_;
    fd_ = -1;
    state_ = State::closed;
    context_.ring.detach(*this);
    handler_->on_released(fd);
    return;
  }
  if (state_ != State::closing) return;
  close_submitted_ = true;
  context_.ring.close(*this, kind_close, fd_);
}

void Stream::joined() {
  // What was in flight was owned until now.
  queue_.clear();
  if (layer_ != nullptr) drop_block();
  kept_.reset();
  fd_ = -1;
  state_ = State::closed;
  context_.ring.detach(*this);
  handler_->on_closed();
}

void Stream::on_complete(std::uint8_t kind, const Completion& completion) {
  switch (kind) {
    case kind_receive:
      if (layer_ != nullptr && layer_->controlling_) return control_received(completion);
      return polling_in_ ? splice_ready(completion) : received(completion);
    case kind_send:
      return sent(completion);
    case kind_connect:
      if (state_ != State::connecting) return advance_closing();
      if (completion.result < 0) {
        // Failed, but still to be closed: an error that came before anything could be sent.
        state_ = State::open;
        ended_ = send_failed_ = true;
        handler_->on_failed(base::from_errno(-completion.result), Direction::send);
        return;
      }
      state_ = State::open;
      if (layer_ != nullptr) return start_records();
      handler_->on_connected();
      return;
    case kind_close:
      if (close_follows_) return close_followed(completion.result);
      // The kernel refused to take the operation: the descriptor is still ours.
      if (completion.result == -EBUSY) context_.sys.close(fd_);
      return advance_closing();
    case kind_cancel_receive:
      if (completion.result == -EBUSY && receive_ == Receive::cancelling) return cancel_receive();
      break;
    case kind_cancel_send:
      if (completion.result == -EBUSY && !close_submitted_) return cancel_send();
      break;
    default:
      return sent_zero_copy(static_cast<std::uint8_t>(kind - kind_zero_copy), completion);
  }
  if (state_ != State::open || releasing_) advance_closing();
}

}  // namespace ringside::net
