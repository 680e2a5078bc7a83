// What stands between the bytes on a socket and those that a stream's handler sees: TLS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "ringside/base/slab.h"
#include "ringside/net/slice.h"
#include "ringside/net/sys_port.h"

struct msghdr;

namespace ringside::net {

// Where records are put together before they are sent. A stream has one while a send is under way.
struct RecordBlock {
  // Four full records: with more a send is hardly cheaper.
  static constexpr std::size_t bytes_max = std::size_t{4} * (16'384 + 96);
  RecordBlock() {}  // NOLINT(modernize-use-equals-default): its pages stay untouched
  char bytes[bytes_max];
};
using RecordBlocks = base::Slab<RecordBlock>;

// Owner: a session, beside its stream; given to it by Stream::secure() and destroyed after it has
// closed. Thread: the ring's. The calls never block and touch no descriptor.
class RecordLayer {
 public:
  enum class Status : std::uint8_t {
    need_input,  // everything was taken, and all plaintext was given out
    more,        // there was no room for all plaintext
    ended,       // the peer said that it sends no more
    failed,      // for good; own_bytes() may have an alert that says why
    unreadable,  // what the peer goes on to send cannot be opened; sending still works
  };
  struct Opened {
    std::size_t consumed = 0;
    std::size_t plaintext = 0;
    Status status = Status::need_input;
    // In this call the handshake was completed, or plaintext came before that: early().
    bool secured = false;
    // In this call the handshake was completed that early() data went before. Behind that data.
    bool confirmed = false;
  };
  virtual Opened open(std::string_view bytes, std::span<char> room) = 0;
  // Plaintext has come and may be sent, but the handshake is not completed: all of it may be a
  // replay (RFC 8446 §8). The end cannot be announced yet.
  virtual bool early() const { return false; }
  // The socket's FIN: `ended` where the peer had announced it, else `failed`.
  virtual Status end_of_input() = 0;

  struct Sealed {
    std::size_t taken = 0;     // plaintext bytes, from the first piece on
    std::size_t produced = 0;  // bytes in `room`, the layer's own included
  };
  // Only while can_seal().
  virtual Sealed seal(std::span<const std::string_view> pieces, std::span<char> room) = 0;
  virtual bool can_seal() const = 0;
  // What the layer has to send by itself: handshake, alerts.
  virtual std::size_t own_bytes() const = 0;
  virtual std::size_t take_own(std::span<char> room) = 0;
  // Announces to the peer that nothing more will be sent.
  virtual void close() = 0;
  // Gives back memory that a connection without traffic does not need.
  virtual void rest() = 0;

  // ---- Kernel TLS. A layer that has nothing to do with it leaves these alone.

  // The socket is connected.
  virtual void on_socket(SysPort&, int /*fd*/) {}
  // All that the layer gave out has left. True: from here on the kernel makes the records.
  virtual bool hand_over_sending(SysPort&, int /*fd*/) { return false; }
  // Nothing is to be received before hand_over_sending() was called.
  virtual bool holds_receiving() const { return false; }
  // Receiving is to come to a halt: the layer wants bytes_to_hand_over() bytes at most, and then,
  // with none left, hand_over_receiving(). True: from here on the kernel opens the records.
  virtual bool wants_to_hand_over() const { return false; }
  virtual std::size_t bytes_to_hand_over() const { return 0; }
  virtual bool hand_over_receiving(SysPort&, int /*fd*/) { return false; }
  // A hand-over that failed is not made up for in user space.
  virtual bool refused() const { return false; }
  // The kernel has a record that is no data. What to receive it into; stays until on_control().
  virtual msghdr* control_message() { return nullptr; }
  // It came. `need_input`: receiving goes on; `more`: these are data after all; `unreadable`: only
  // from here.
  struct Control {
    Status status = Status::failed;
    std::string_view data;
  };
  virtual Control on_control(SysPort&, int /*fd*/, std::size_t /*bytes*/) { return {}; }
  // What the layer has to say where the kernel makes the records: it goes before all that waits;
  // null: nothing. Stays until said().
  virtual msghdr* own_message() { return nullptr; }
  // It has left. 0 or a negative errno: nothing more can be sent.
  virtual int said(SysPort&, int /*fd*/) { return 0; }
  // As close(), where the kernel makes the records; null: nothing is to be said (any more).
  virtual msghdr* closing_message() { return nullptr; }

 protected:
  explicit RecordLayer(SlicePool& pool) : unopened_(pool) {}
  virtual ~RecordLayer() = default;  // a friend could reach it
  RecordLayer(const RecordLayer&) = delete;
  RecordLayer& operator=(const RecordLayer&) = delete;

  // The kernel may take over still, so a receive should be easy to stop.
  bool moving_ = false;

 private:
  friend class Stream;
  // The stream's: what came and is not opened yet, and what is on its way out.
  SliceQueue unopened_;
  RecordBlock* block_ = nullptr;
  std::uint32_t sent_ = 0;
  std::uint32_t sealed_ = 0;
  std::uint32_t plaintext_ = 0;  // that is in the block, and not counted as sent
  bool more_ = false;
  bool blocked_ = false;  // until there are buffers for plaintext
  bool over_ = false;     // receiving ended, by `over_result_`, behind what is not opened yet
  int over_result_ = 0;
  bool failed_ = false;
  bool client_ = false;       // we connected
  bool unannounced_ = false;  // nothing is said at the end
  bool kernel_sends_ = false;
  bool kernel_opens_ = false;
  bool controlling_ = false;  // the receive under way is for a control record
  msghdr* notice_ = nullptr;  // the own_message() or closing_message() that is under way
};

}  // namespace ringside::net
