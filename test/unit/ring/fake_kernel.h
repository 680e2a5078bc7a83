// A kernel that does only what a test tells it: its rings are on the heap, operations are kept and
// complete when the test says so, and every answer can be planned.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "ringside/ring/kernel_port.h"

namespace ringside::ring::test {

class FakeKernel final : public KernelPort {
 public:
  FakeKernel();
  ~FakeKernel() override;

  int setup(unsigned entries, io_uring_params& params, io_uring& ring) override;
  int enter(io_uring& ring, unsigned to_submit, unsigned min_complete, unsigned flags,
            const __kernel_timespec* timeout) override;
  int register_resource(io_uring& ring, unsigned opcode, void* arg, unsigned count) override;
  void teardown(io_uring& ring) override;
  void try_features(unsigned setup_flags, Features& features) override;
  int open_event() override;
  void signal_event(int fd) override;
  void close_event(int fd) override;
  std::uint64_t monotonic_ns() override { return monotonic_now_ns; }
  std::uint64_t thread_cpu_ns() override {
    ++cpu_reads;
    return cpu_now_ns;
  }
  std::uint64_t realtime_ns() override {
    ++realtime_reads;
    return realtime_now_ns;
  }

  // Set-up: what it answers.
  std::map<unsigned, int> setup_errors;  // by a flag that is in the request
  int setup_error = 0;
  unsigned feature_bits;
  unsigned last_operation = IORING_OP_SEND_ZC;
  Features features;
  std::map<unsigned, int> register_errors;  // by opcode
  io_uring_params last_params{};
  unsigned setups = 0;
  int rings = 0;
  int events = 0;

  // Entering: what was asked last, and a plan that may answer instead (it may complete things).
  struct Entered {
    unsigned to_submit;
    unsigned min_complete;
    unsigned flags;
    std::optional<std::uint64_t> timeout_ns;
  };
  std::vector<Entered> entered;
  // The result, or nothing for the usual: all is submitted. `take` submits a number of entries.
  using Take = std::function<void(unsigned)>;
  std::function<std::optional<int>(const Entered&, const Take&)> on_enter;

  // Operations that were submitted and not looked at: the fields of an entry that tests look at.
  struct Submitted {
    std::uint8_t opcode = 0;
    std::uint8_t flags = 0;
    std::uint16_t ioprio = 0;
    int fd = -1;
    std::uint64_t off = 0;  // or addr2
    std::uint64_t addr = 0;
    std::uint32_t len = 0;
    std::uint32_t op_flags = 0;   // accept_flags, msg_flags, ...
    std::uint16_t buf_index = 0;  // or buf_group
    std::uint64_t user_data = 0;
  };
  std::deque<Submitted> submitted;
  Submitted next_submitted();
  // A completion, on the ring that was set up last or on the one named; goes to the backlog when
  // the queue is full.
  void complete(std::uint64_t user_data, std::int32_t result, std::uint32_t flags = 0) {
    complete_on(last_ring_, user_data, result, flags);
  }
  void complete_on(int ring_descriptor, std::uint64_t user_data, std::int32_t result,
                   std::uint32_t flags = 0);
  // Entries that the last ring has not taken off the completion queue.
  unsigned completions_waiting() const;

  // Buffer rings by group, and signals by event.
  std::map<unsigned, io_uring_buf_reg> buffer_rings;
  // Takes the next published buffer of a group, as the kernel would; nullptr when there is none.
  const io_uring_buf* pick_buffer(unsigned group);
  std::map<int, unsigned> signals;

  std::uint64_t monotonic_now_ns = 1'000'000'000;
  std::uint64_t cpu_now_ns = 0;
  unsigned cpu_reads = 0;
  std::uint64_t realtime_now_ns = 1'700'000'000'000'000'000;
  unsigned realtime_reads = 0;

 private:
  struct Queues;
  static void flush_backlog(Queues& queues);
  void take(io_uring& ring, unsigned count);

  std::map<int, std::unique_ptr<Queues>> queues_;  // by the ring's descriptor
  int last_ring_ = -1;
  std::map<unsigned, std::uint16_t> picked_;
  int next_fd_ = 1000;
};

}  // namespace ringside::ring::test
