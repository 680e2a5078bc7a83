// One operation in flight in the simulated kernel.
#pragma once

#include <liburing.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "file.h"

namespace ringside::sim {

// sqe->ioprio of a receive, from kernel headers newer than those of Debian 12.
inline constexpr unsigned receive_send_bundle = 1U << 4;

class SimRing;

// The kernel's header ends the entry with an array of no elements, which -Wpedantic refuses to
// embed.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
struct Op {
  SimRing* ring = nullptr;
  io_uring_sqe sqe{};  // a copy: IORING_FEAT_SUBMIT_STABLE
  std::shared_ptr<File> file;
  std::vector<iovec> pieces;   // of a send or message, copied at submission
  net::Address address;        // of a connect, likewise
  std::size_t done_bytes = 0;  // with MSG_WAITALL
  std::shared_ptr<void> hold;  // of a zero-copy send: ends in the notification
  // Of a message that is sent: the type of the record that it is to be (TLS_SET_RECORD_TYPE).
  std::optional<RecordType> record_type;

  std::shared_ptr<Op> next;  // linked behind this one: starts when it has succeeded
  bool linked = false;       // behind another, and not started yet

  std::size_t place = 0;  // among the ring's operations
  bool polled = false;    // has waited, as IORING_RECVSEND_POLL_FIRST asks
  bool waiting = false;   // listed with its file
  bool queued = false;    // about to be tried
  bool late = false;      // being run by a worker thread, so to say: it cannot be cancelled
  bool over = false;      // its completion has been decided
  enum class Ending : std::uint8_t { none, cancel, cancel_unless_done } ending = Ending::none;

  bool multishot() const {
    if (sqe.opcode == IORING_OP_ACCEPT) return (sqe.ioprio & IORING_ACCEPT_MULTISHOT) != 0;
    if (sqe.opcode == IORING_OP_RECV) return (sqe.ioprio & IORING_RECV_MULTISHOT) != 0;
    return false;
  }
  bool bundle() const {
    return sqe.opcode == IORING_OP_RECV && (sqe.ioprio & receive_send_bundle) != 0;
  }
  bool poll_first() const {
    return sqe.opcode == IORING_OP_RECV && (sqe.ioprio & IORING_RECVSEND_POLL_FIRST) != 0;
  }
  bool selects_buffer() const { return (sqe.flags & IOSQE_BUFFER_SELECT) != 0; }
};
#pragma GCC diagnostic pop

}  // namespace ringside::sim
