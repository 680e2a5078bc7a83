#include "fake_kernel.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace ringside::ring::test {

// The memory that a ring shares with its kernel.
struct FakeKernel::Queues {
  unsigned sq_head = 0, sq_tail = 0, sq_mask = 0, sq_entries = 0, sq_flags = 0, sq_dropped = 0;
  unsigned cq_head = 0, cq_tail = 0, cq_mask = 0, cq_entries = 0, cq_overflow = 0;
  std::vector<unsigned> array;
  // Entries and completions have flexible members, so plain words hold them.
  std::vector<std::uint64_t> sqes;
  std::vector<std::uint64_t> cqes;
  struct Waiting {
    std::uint64_t user_data;
    std::int32_t result;
    std::uint32_t flags;
  };
  std::deque<Waiting> backlog;

  io_uring_cqe* cqe(unsigned index) { return reinterpret_cast<io_uring_cqe*>(&cqes[2 * index]); }
};

FakeKernel::FakeKernel()
    : feature_bits(IORING_FEAT_NODROP | IORING_FEAT_SUBMIT_STABLE | IORING_FEAT_EXT_ARG |
                   IORING_FEAT_FAST_POLL | IORING_FEAT_CQE_SKIP) {
  features.kernel = "fake";
  features.multishot_receive = true;
  features.message_ring = true;
}

FakeKernel::~FakeKernel() {
  EXPECT_EQ(rings, 0) << "a ring was not torn down";
  EXPECT_EQ(events, 0) << "an event was not closed";
  EXPECT_TRUE(buffer_rings.empty()) << "a buffer ring was not unregistered";
}

int FakeKernel::setup(unsigned entries, io_uring_params& params, io_uring& ring) {
  ++setups;
  last_params = params;
  if (setup_error != 0) return setup_error;
  for (auto [flag, error] : setup_errors) {
    if ((params.flags & flag) != 0) return error;
  }
  last_ring_ = next_fd_++;
  queues_[last_ring_] = std::make_unique<Queues>();
  Queues& q = *queues_[last_ring_];
  q.sq_entries = entries;
  q.sq_mask = entries - 1;
  q.cq_entries = params.cq_entries;
  q.cq_mask = params.cq_entries - 1;
  q.sqes.resize(entries * sizeof(io_uring_sqe) / sizeof(std::uint64_t));
  q.cqes.resize(std::size_t{2} * params.cq_entries);
  for (unsigned i = 0; i < entries; ++i)
    q.array.push_back(i);
  ring = {};
  ring.sq.khead = &q.sq_head;
  ring.sq.ktail = &q.sq_tail;
  ring.sq.kflags = &q.sq_flags;
  ring.sq.kdropped = &q.sq_dropped;
  ring.sq.array = q.array.data();
  ring.sq.sqes = reinterpret_cast<io_uring_sqe*>(q.sqes.data());
  ring.sq.ring_mask = q.sq_mask;
  ring.sq.ring_entries = q.sq_entries;
  ring.cq.khead = &q.cq_head;
  ring.cq.ktail = &q.cq_tail;
  ring.cq.koverflow = &q.cq_overflow;
  ring.cq.cqes = q.cqe(0);
  ring.cq.ring_mask = q.cq_mask;
  ring.cq.ring_entries = q.cq_entries;
  ring.flags = params.flags;
  ring.features = feature_bits;
  ring.ring_fd = last_ring_;
  ++rings;
  return 0;
}

void FakeKernel::teardown(io_uring& ring) {
  --rings;
  queues_.erase(ring.ring_fd);
}

void FakeKernel::take(io_uring& ring, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    ASSERT_NE(*ring.sq.khead, *ring.sq.ktail) << "more taken than submitted";
    const io_uring_sqe& sqe = ring.sq.sqes[*ring.sq.khead & ring.sq.ring_mask];
    submitted.push_back({.opcode = sqe.opcode,
                         .flags = sqe.flags,
                         .ioprio = sqe.ioprio,
                         .fd = sqe.fd,
                         .off = sqe.off,
                         .addr = sqe.addr,
                         .len = sqe.len,
                         .op_flags = sqe.msg_flags,
                         .buf_index = sqe.buf_index,
                         .user_data = sqe.user_data});
    ++*ring.sq.khead;
  }
}

int FakeKernel::enter(io_uring& ring, unsigned to_submit, unsigned min_complete, unsigned flags,
                      const __kernel_timespec* timeout) {
  EXPECT_EQ(to_submit, *ring.sq.ktail - *ring.sq.khead) << "the tail was not published";
  Entered now{to_submit, min_complete, flags, std::nullopt};
  if (timeout != nullptr) {
    now.timeout_ns = static_cast<std::uint64_t>(timeout->tv_sec) * 1'000'000'000 +
                     static_cast<std::uint64_t>(timeout->tv_nsec);
  }
  entered.push_back(now);
  if (on_enter) {
    std::optional<int> planned = on_enter(now, [&](unsigned count) { take(ring, count); });
    if (planned) return *planned;
  }
  unsigned left = *ring.sq.ktail - *ring.sq.khead;
  take(ring, left);
  if ((flags & IORING_ENTER_GETEVENTS) != 0) flush_backlog(*queues_.at(ring.ring_fd));
  return static_cast<int>(left);
}

int FakeKernel::register_resource(io_uring&, unsigned opcode, void* arg, unsigned) {
  if (auto found = register_errors.find(opcode); found != register_errors.end())
    return found->second;
  switch (opcode) {
    case IORING_REGISTER_PROBE: {
      auto* probe = static_cast<io_uring_probe*>(arg);
      probe->last_op = static_cast<std::uint8_t>(last_operation);
      for (unsigned op = 0; op <= last_operation; ++op)
        probe->ops[op].flags = IO_URING_OP_SUPPORTED;
      return 0;
    }
    case IORING_REGISTER_PBUF_RING: {
      auto* request = static_cast<io_uring_buf_reg*>(arg);
      if (!buffer_rings.emplace(request->bgid, *request).second) return -EEXIST;
      picked_[request->bgid] = 0;
      return 0;
    }
    case IORING_UNREGISTER_PBUF_RING: {
      auto* request = static_cast<io_uring_buf_reg*>(arg);
      return buffer_rings.erase(request->bgid) == 1 ? 0 : -ENOENT;
    }
    case IORING_REGISTER_BUFFERS2:
    case IORING_REGISTER_BUFFERS_UPDATE:
      return 0;
    default:
      return -EINVAL;
  }
}

void FakeKernel::try_features(unsigned, Features& out) {
  out = features;
}

int FakeKernel::open_event() {
  ++events;
  return next_fd_++;
}
void FakeKernel::signal_event(int fd) {
  ++signals[fd];
}
void FakeKernel::close_event(int) {
  --events;
}

FakeKernel::Submitted FakeKernel::next_submitted() {
  if (submitted.empty()) {
    ADD_FAILURE() << "nothing was submitted";
    return {};
  }
  Submitted operation = submitted.front();
  submitted.pop_front();
  return operation;
}

void FakeKernel::complete_on(int ring_descriptor, std::uint64_t user_data, std::int32_t result,
                             std::uint32_t flags) {
  Queues& q = *queues_.at(ring_descriptor);
  q.backlog.push_back({user_data, result, flags});
  flush_backlog(q);
}

void FakeKernel::flush_backlog(Queues& q) {
  while (!q.backlog.empty() && q.cq_tail - q.cq_head < q.cq_entries) {
    io_uring_cqe* cqe = q.cqe(q.cq_tail & q.cq_mask);
    cqe->user_data = q.backlog.front().user_data;
    cqe->res = q.backlog.front().result;
    cqe->flags = q.backlog.front().flags;
    ++q.cq_tail;
    q.backlog.pop_front();
  }
  q.sq_flags = q.backlog.empty() ? 0 : IORING_SQ_CQ_OVERFLOW;
}

unsigned FakeKernel::completions_waiting() const {
  const Queues& q = *queues_.at(last_ring_);
  return q.cq_tail - q.cq_head;
}

const io_uring_buf* FakeKernel::pick_buffer(unsigned group) {
  const io_uring_buf_reg& request = buffer_rings.at(group);
  auto* entries = reinterpret_cast<io_uring_buf*>(request.ring_addr);
  std::uint16_t& head = picked_[group];
  if (head == reinterpret_cast<io_uring_buf_ring*>(request.ring_addr)->tail) return nullptr;
  return &entries[head++ & (request.ring_entries - 1)];
}

}  // namespace ringside::ring::test
