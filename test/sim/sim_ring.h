// One simulated io_uring: queues, operations in flight, buffers.
#pragma once

#include <liburing.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "buffer_groups.h"
#include "core.h"
#include "op.h"

namespace ringside::sim {

class SimRing : public std::enable_shared_from_this<SimRing> {
 public:
  SimRing(Core& core, unsigned sq_entries, unsigned cq_entries);
  ~SimRing();
  SimRing(const SimRing&) = delete;
  SimRing& operator=(const SimRing&) = delete;

  // Makes liburing's inline helpers work on `ring`.
  void describe(io_uring& ring);

  // Takes up to `count` entries off the submission queue and starts them.
  unsigned submit(unsigned count);
  // What kernels do when a task asks for events: move completions that waited for room, and run
  // what has become possible.
  void flush_overflow();
  void run_ready();
  unsigned completions_ready() const { return cq_tail_ - cq_head_; }
  bool overflown() const { return !overflow_.empty(); }
  // From now on until the next flush, only `room` more completions find a place.
  void pretend_full(unsigned room) { room_left_ = room; }

  // For the operations themselves.
  void post(std::uint64_t user_data, std::int32_t result, std::uint32_t flags);
  // Visible at the ring's next turn, as task work is. From any ring.
  void post_later(std::uint64_t user_data, std::int32_t result, std::uint32_t flags);
  // The operation is over.
  void complete(Op& op, std::int32_t result, std::uint32_t flags = 0);
  void wait_for(Op& op);
  void mark_ready(Op& op);
  int cancel(const Op& canceller);
  // All bytes of a zero-copy send have left its memory.
  void notify(std::uint64_t user_data, std::int32_t result);

  bool has_work() const { return !ready_.empty() || !posted_.empty() || !overflow_.empty(); }
  std::size_t in_flight() const { return ops_.size(); }
  // For messages: which operations wait, and for what.
  std::string describe_operations() const;
  // Of the operations of that code in flight: for a test that completes one of them by itself.
  std::vector<std::uint64_t> user_data_of(std::uint8_t opcode) const;
  unsigned completion_entries() const { return static_cast<unsigned>(cqes_.size()); }
  Core& core() { return core_; }
  BufferGroups& buffers() { return buffers_; }

  // For SimKernel: whether this ring has nothing to do before `deadline_ns`.
  bool idle = false;
  // A program runs that will enter it again, even if no operation of it is in flight.
  bool attended = false;
  bool refused_last = false;
  unsigned refusals_left = 0;
  std::uint64_t deadline_ns = 0;
  int fd = -1;

 private:
  struct Posted {
    std::uint64_t user_data;
    std::int32_t result;
    std::uint32_t flags;
  };
  using OpRef = std::shared_ptr<Op>;

  OpRef make(const io_uring_sqe& sqe);
  void start(std::vector<OpRef> chain);
  void go_on(const OpRef& next, bool succeeded);
  void run_one(Op& op);
  void write_cqe(const Posted& posted);
  bool put_off(Op& op);
  void remove(Op& op);
  void stop_waiting(Op& op);
  int cancel_one(Op& target);
  void run_aside(Op& op, std::uint64_t delay_ns);
  bool matches(const Op& op, const Op& canceller) const;
  OpRef reference(const Op& op) const { return ops_[op.place]; }
  bool has_room() const;

  Core& core_;
  // The shared memory of a real ring.
  std::vector<io_uring_sqe> sqes_;
  std::vector<unsigned> sq_array_;
  std::vector<io_uring_cqe> cqes_;
  unsigned sq_head_ = 0, sq_tail_ = 0, sq_mask_, sq_entries_, sq_flags_ = 0, sq_dropped_ = 0;
  unsigned cq_head_ = 0, cq_tail_ = 0, cq_mask_, cq_entries_, cq_flags_ = 0, cq_overflow_ = 0;

  static constexpr unsigned no_limit = ~0U;
  unsigned room_left_ = no_limit;
  std::deque<Posted> overflow_;
  std::vector<Posted> posted_;
  std::vector<OpRef> ops_;
  std::vector<OpRef> ready_;
  BufferGroups buffers_;
};

}  // namespace ringside::sim
