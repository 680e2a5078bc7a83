// What has nothing to do with sockets: the queues themselves, messages, events, time.
#include <array>
#include <cerrno>

#include "parity.h"

namespace ringside::parity {
namespace {

TEST_P(Parity, nop_completes_with_zero) {
  Recorder recorder(ring());
  ring().nop(recorder, kind_nop);
  EXPECT_EQ(recorder.in_flight(), 1U);
  EXPECT_EQ(await(recorder, kind_nop), event(kind_nop, 0));
  EXPECT_EQ(recorder.in_flight(), 0U);
}

TEST_P(Parity, more_operations_than_the_queues_hold) {
  // Four entries and eight completions.
  auto small = ring::Ring::open(environment().kernel(), {.entries = 4, .completion_entries = 8});
  ASSERT_TRUE(small.has_value());
  {
    constexpr int many = 100;
    std::vector<std::unique_ptr<Recorder>> recorders;
    for (int i = 0; i < many; ++i) {
      recorders.push_back(std::make_unique<Recorder>(**small));
      (*small)->nop(*recorders.back(), kind_nop);
    }
    std::size_t completed = 0;
    for (int i = 0; i < 100 && completed < many; ++i) {
      (*small)->run_once(0);
      completed = 0;
      for (auto& recorder : recorders)
        completed += recorder->pending(kind_nop);
    }
    EXPECT_EQ(completed, many);
    EXPECT_GT((*small)->counters().overflows, 0U);
    EXPECT_EQ((*small)->counters().refused, 0U);
    for (auto& recorder : recorders)
      EXPECT_EQ(recorder->take_all(kind_nop), std::vector{event(kind_nop, 0)});
  }
}

TEST_P(Parity, message_to_another_ring) {
  auto other = ring::Ring::open(environment().kernel(), {.entries = 8, .completion_entries = 16});
  ASSERT_TRUE(other.has_value());
  if (!ring().features().message_ring) GTEST_SKIP() << "this kernel has no ring messages";
  {
    Recorder target(**other);
    Recorder sender(ring());
    ring().message(sender, kind_message, (*other)->descriptor(),
                   (*other)->user_data(target, kind_nop), 42);
    EXPECT_EQ(await(sender, kind_message), event(kind_message, 0));
    EXPECT_EQ(target.in_flight(), 0U);
    (*other)->run_once(1000);
    EXPECT_EQ(target.take_all(kind_nop), std::vector{event(kind_nop, 42)});
    EXPECT_EQ(target.in_flight(), 0U);
  }
}

TEST_P(Parity, message_to_no_ring_fails) {
  Recorder sender(ring());
  ring().message(sender, kind_message, 999'999, 0, 1);
  EXPECT_EQ(await(sender, kind_message), event(kind_message, -EBADF));
  int fd = open_socket();
  ring().message(sender, kind_message, fd, 0, 1);
  EXPECT_EQ(await(sender, kind_message), event(kind_message, -EBADFD));
  close(fd);
}

TEST_P(Parity, event_is_read_when_it_is_signalled) {
  ring::KernelPort& kernel = environment().kernel();
  int fd = kernel.open_event();
  ASSERT_GE(fd, 0);
  {
    Recorder recorder(ring());
    std::uint64_t count = 0;
    ring().read(recorder, kind_read, fd, &count, sizeof(count));
    settle();
    EXPECT_EQ(recorder.pending(kind_read), 0U);
    kernel.signal_event(fd);
    EXPECT_EQ(await(recorder, kind_read), event(kind_read, 8));
    EXPECT_EQ(count, 1U);
    // Signals add up.
    kernel.signal_event(fd);
    kernel.signal_event(fd);
    ring().read(recorder, kind_read, fd, &count, sizeof(count));
    EXPECT_EQ(await(recorder, kind_read), event(kind_read, 8));
    EXPECT_EQ(count, 2U);
    ring().read(recorder, kind_read, fd, &count, sizeof(count));
    ring().cancel(recorder, kind_read, kind_cancel);
    EXPECT_EQ(await(recorder, kind_read), event(kind_read, -ECANCELED));
    EXPECT_EQ(await(recorder, kind_cancel), event(kind_cancel, 0));
  }
  kernel.close_event(fd);
}

TEST_P(Parity, loop_wakes_for_its_timers) {
  struct Fired {
    bool yes = false;
    base::Timer timer{[](void* self) { static_cast<Fired*>(self)->yes = true; }, this};
  } fired;
  ring().timers().arm(fired.timer, 20);
  base::Millis before = ring().now_ms();
  for (int i = 0; i < 100 && !fired.yes; ++i)
    ring().run_once();
  EXPECT_TRUE(fired.yes);
  EXPECT_GE(ring().now_ms() - before, 19U);
}

// Below the Ring: what `enter` itself answers.
class RawRing {
 public:
  RawRing(ring::KernelPort& kernel, unsigned entries, unsigned completions) : kernel_(kernel) {
    io_uring_params params{};
    params.flags = IORING_SETUP_CQSIZE | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_SINGLE_ISSUER |
                   IORING_SETUP_DEFER_TASKRUN;
    params.cq_entries = completions;
    EXPECT_EQ(kernel.setup(entries, params, ring_), 0);
  }
  ~RawRing() { kernel_.teardown(ring_); }
  RawRing(const RawRing&) = delete;
  RawRing& operator=(const RawRing&) = delete;

  void nop(std::uint64_t user_data) {
    io_uring_sqe* sqe = ::io_uring_get_sqe(&ring_);
    ASSERT_NE(sqe, nullptr);
    ::io_uring_prep_nop(sqe);
    sqe->user_data = user_data;
  }
  int enter(unsigned min_complete, long long timeout_ns) {
    __kernel_timespec timeout{.tv_sec = 0, .tv_nsec = timeout_ns};
    unsigned count = ring_.sq.sqe_tail - io_uring_smp_load_acquire(ring_.sq.khead);
    io_uring_smp_store_release(ring_.sq.ktail, ring_.sq.sqe_tail);
    return kernel_.enter(ring_, count, min_complete, IORING_ENTER_GETEVENTS, &timeout);
  }
  std::vector<std::uint64_t> take() {
    std::vector<std::uint64_t> out;
    unsigned head = *ring_.cq.khead;
    for (unsigned tail = io_uring_smp_load_acquire(ring_.cq.ktail); head != tail; ++head)
      out.push_back(ring_.cq.cqes[head & ring_.cq.ring_mask].user_data);
    io_uring_smp_store_release(ring_.cq.khead, head);
    return out;
  }
  bool overflown() const { return ::io_uring_cq_has_overflow(&ring_); }
  io_uring& raw() { return ring_; }

 private:
  ring::KernelPort& kernel_;
  io_uring ring_{};
};

TEST_P(Parity, enter_says_when_the_time_is_up) {
  RawRing raw(environment().kernel(), 4, 8);
  std::uint64_t before = environment().kernel().monotonic_ns();
  EXPECT_EQ(raw.enter(1, 1'000'000), -ETIME);
  EXPECT_GE(environment().kernel().monotonic_ns() - before, 1'000'000U);
  // Not waiting is not a time-out.
  EXPECT_EQ(raw.enter(0, 1'000'000), 0);
}

TEST_P(Parity, enter_returns_the_number_submitted) {
  RawRing raw(environment().kernel(), 4, 8);
  raw.nop(1);
  raw.nop(2);
  EXPECT_EQ(raw.enter(2, 1'000'000'000), 2);
  EXPECT_EQ(raw.take(), (std::vector<std::uint64_t>{1, 2}));
  // The time-out is hidden behind what was submitted.
  raw.nop(3);
  EXPECT_EQ(raw.enter(2, 1'000'000), 1);
  EXPECT_EQ(raw.take(), (std::vector<std::uint64_t>{3}));
}

TEST_P(Parity, enter_does_not_wait_for_what_is_there) {
  RawRing raw(environment().kernel(), 4, 8);
  raw.nop(1);
  EXPECT_EQ(raw.enter(0, 1'000'000), 1);
  EXPECT_EQ(raw.enter(1, 1'000'000), 0);
  EXPECT_EQ(raw.take(), (std::vector<std::uint64_t>{1}));
}

TEST_P(Parity, full_completion_queue_loses_nothing) {
  RawRing raw(environment().kernel(), 4, 8);
  for (std::uint64_t round = 0; round < 4; ++round) {
    for (std::uint64_t i = 0; i < 4; ++i)
      raw.nop(round * 4 + i);
    EXPECT_EQ(raw.enter(0, 1'000'000), 4);
  }
  EXPECT_TRUE(raw.overflown());
  std::vector<std::uint64_t> got;
  for (int i = 0; i < 8; ++i) {
    for (std::uint64_t user_data : raw.take())
      got.push_back(user_data);
    raw.enter(0, 1'000'000);
  }
  EXPECT_FALSE(raw.overflown());
  std::vector<std::uint64_t> expected;
  for (std::uint64_t i = 0; i < 16; ++i)
    expected.push_back(i);
  EXPECT_EQ(got, expected);
}

TEST_P(Parity, registration_rules_of_buffer_rings) {
  ring::KernelPort& kernel = environment().kernel();
  RawRing raw(kernel, 4, 8);
  alignas(4096) static std::array<std::byte, 4096> memory;
  io_uring_buf_reg request{};
  request.ring_addr = reinterpret_cast<std::uint64_t>(memory.data());
  request.ring_entries = 8;
  request.bgid = 3;
  EXPECT_EQ(kernel.register_resource(raw.raw(), IORING_REGISTER_PBUF_RING, &request, 1), 0);
  EXPECT_EQ(kernel.register_resource(raw.raw(), IORING_REGISTER_PBUF_RING, &request, 1), -EEXIST);
  io_uring_buf_reg odd = request;
  odd.bgid = 4;
  odd.ring_entries = 7;
  EXPECT_EQ(kernel.register_resource(raw.raw(), IORING_REGISTER_PBUF_RING, &odd, 1), -EINVAL);
  io_uring_buf_reg which{};
  which.bgid = 3;
  EXPECT_EQ(kernel.register_resource(raw.raw(), IORING_UNREGISTER_PBUF_RING, &which, 1), 0);
  // 6.1 says -EINVAL, later kernels -ENOENT.
  EXPECT_LT(kernel.register_resource(raw.raw(), IORING_UNREGISTER_PBUF_RING, &which, 1), 0);
}

}  // namespace
}  // namespace ringside::parity
