// The kernel as a parameter: the real io_uring, or a simulated one.
#pragma once

#include <liburing.h>

#include <cstdint>

#include "ringside/ring/features.h"

namespace ringside::ring {

// Called once a loop, so its cost does not count. All results are liburing's: >= 0, or a negative
// errno.
//
// `setup` fills `ring` as io_uring_queue_init_params does. The product then uses liburing's inline
// helpers (get_sqe, prep_*, CQE access) on it, and publishes the tail of the submission queue
// itself before `enter`; the SQ index array is the identity. The implementation must honour
// IORING_FEAT_SUBMIT_STABLE (what an SQE points to is copied when submitted), IORING_FEAT_NODROP
// and IORING_FEAT_EXT_ARG, and set the overflow bit in the submission queue's flags while
// completions wait for room.
//
// Thread: `setup`, `enter`, `register_resource` and `teardown` of a ring are called by that ring's
// thread only; everything else by any.
class KernelPort {
 public:
  virtual ~KernelPort() = default;
  virtual int setup(unsigned entries, io_uring_params& params, io_uring& ring) = 0;
  // Submits `to_submit` and, when `flags` has IORING_ENTER_GETEVENTS, waits for `min_complete` or
  // until `timeout` (relative; may be null: no limit). Returns how many were submitted, or -ETIME,
  // -EINTR, -EBUSY, -EAGAIN, ... (an error of the wait is hidden when something was submitted.)
  virtual int enter(io_uring& ring, unsigned to_submit, unsigned min_complete, unsigned flags,
                    const __kernel_timespec* timeout) = 0;
  // What the product registers: IORING_REGISTER_PROBE (io_uring_probe with 256 places),
  // IORING_REGISTER_PBUF_RING and IORING_UNREGISTER_PBUF_RING (io_uring_buf_reg),
  // IORING_REGISTER_BUFFERS2 (a sparse table) and IORING_REGISTER_BUFFERS_UPDATE; the last two may
  // be refused.
  virtual int register_resource(io_uring& ring, unsigned opcode, void* arg, unsigned count) = 0;
  virtual void teardown(io_uring& ring) = 0;

  // Fills in what only trying tells: kernel, multishot_receive, bundles, incremental,
  // zero_copy_report, message_ring (or trial_errno). `setup_flags` are those that rings are set up
  // with. The real kernel tries once a process and remembers.
  virtual void try_features(unsigned setup_flags, Features& features) = 0;

  // An event: a descriptor that a ring reads a 64-bit count from (an eventfd), so that any thread
  // can wake it. open_event returns the descriptor or a negative errno.
  virtual int open_event() = 0;
  virtual void signal_event(int fd) = 0;
  virtual void close_event(int fd) = 0;

  virtual std::uint64_t monotonic_ns() = 0;
  virtual std::uint64_t realtime_ns() = 0;    // since 1970, UTC
  virtual std::uint64_t thread_cpu_ns() = 0;  // user and system time of the calling thread
};

// Lives for ever; thread-safe.
KernelPort& real_kernel();

}  // namespace ringside::ring
