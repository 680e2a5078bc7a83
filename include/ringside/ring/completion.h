// What an operation came to, and who hears of it.
#pragma once

#include <liburing.h>

#include <cstdint>

namespace ringside::ring {

struct Completion {
  std::int32_t result = 0;  // >= 0, or a negative errno
  std::uint32_t flags = 0;  // IORING_CQE_F_*

  bool failed() const { return result < 0; }
  // More completions of the same operation will come. When false the operation is over: re-arm a
  // multishot.
  bool more() const { return (flags & IORING_CQE_F_MORE) != 0; }
  bool has_buffer() const { return (flags & IORING_CQE_F_BUFFER) != 0; }
  std::uint16_t buffer_id() const {
    return static_cast<std::uint16_t>(flags >> IORING_CQE_BUFFER_SHIFT);
  }
  // Of a receive: the socket has more to read.
  bool more_to_read() const { return (flags & IORING_CQE_F_SOCK_NONEMPTY) != 0; }
  // The second completion of a zero-copy send: only now is the buffer free.
  bool notification() const { return (flags & IORING_CQE_F_NOTIF) != 0; }
  // Of a notification: the kernel had to copy the bytes after all, so zero copy is not worth it on
  // this connection. Always false where Features::zero_copy_report is.
  bool copied() const { return notification() && result < 0; }
};

// Owner of operations. It is attached to one ring for as long as it has operations in flight; its
// address must not change meanwhile. `kind` (a small number of the owner's own) tells its
// operations apart; at most one operation of a kind may be in flight.
class Completer {
 public:
  // Called on the ring's thread, never from inside a call that submits.
  virtual void on_complete(std::uint8_t kind, const Completion& completion) = 0;

  // Operations that still owe a completion. Only at zero may the owner detach, close done and be
  // destroyed.
  std::uint32_t in_flight() const { return in_flight_; }
  bool attached() const { return slot_ != none; }

 protected:
  Completer() = default;
  virtual ~Completer() = default;
  Completer(const Completer&) = delete;
  Completer& operator=(const Completer&) = delete;

 private:
  friend class Ring;
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  std::uint32_t slot_ = none;
  std::uint32_t in_flight_ = 0;
};

// user_data: kind in the lowest 8 bits, then 24 bits of generation, then 31 bits of slot, then the
// `unsolicited` bit. A completion whose generation is not its slot's is stale: counted, its buffer
// given back, never dereferenced.
constexpr std::uint64_t pack_user_data(std::uint32_t slot, std::uint32_t generation,
                                       std::uint8_t kind) {
  return std::uint64_t{slot} << 32 | std::uint64_t{generation & 0xffffff} << 8 | kind;
}

// Of a completion that another ring posted (MSG_RING): no operation of the owner ends with it.
inline constexpr std::uint64_t unsolicited = std::uint64_t{1} << 63;

}  // namespace ringside::ring
