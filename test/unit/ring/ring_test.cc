// The loop and its queues, on a kernel that does what the test says.
#include "ringside/ring/ring.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "fake_kernel.h"
#include "owner.h"

namespace ringside::ring::test {
namespace {

using Seen = Owner::Seen;

class RingTest : public testing::Test {
 protected:
  RingTest() : ring_(open(8, 16)) {}
  std::unique_ptr<Ring> open(unsigned entries, unsigned completions) {
    auto ring = Ring::open(kernel_, {.entries = entries, .completion_entries = completions});
    EXPECT_TRUE(ring.has_value());
    return std::move(*ring);
  }
  // Submits all that is queued and answers nothing.
  void submit() { ring_->run_once(0); }

  FakeKernel kernel_;
  std::unique_ptr<Ring> ring_;
};

TEST_F(RingTest, an_operation_is_in_flight_until_it_completes) {
  Owner owner(*ring_);
  ring_->nop(owner, 7);
  EXPECT_EQ(owner.in_flight(), 1U);
  submit();
  FakeKernel::Submitted sqe = kernel_.next_submitted();
  EXPECT_EQ(sqe.opcode, IORING_OP_NOP);
  EXPECT_EQ(sqe.user_data, ring_->user_data(owner, 7));
  EXPECT_TRUE(owner.seen.empty());
  kernel_.complete(sqe.user_data, 5);
  owner.action = [&](std::uint8_t, const Completion&) { EXPECT_EQ(owner.in_flight(), 0U); };
  EXPECT_EQ(ring_->run_once(0), 1U);
  EXPECT_EQ(owner.seen, (std::vector<Seen>{{7, 5}}));
}

TEST_F(RingTest, counts_the_operations_of_all_owners) {
  Owner first(*ring_);
  EXPECT_EQ(ring_->in_flight(), 0U);
  {
    Owner second(*ring_);
    ring_->nop(first, 1);
    ring_->nop(second, 1);
    ring_->nop(second, 2);
    EXPECT_EQ(ring_->in_flight(), 3U);
    submit();
    kernel_.complete(kernel_.next_submitted().user_data, 0);
    ring_->run_once(0);
    EXPECT_EQ(ring_->in_flight(), 2U);
    kernel_.complete(kernel_.next_submitted().user_data, 0);
    kernel_.complete(kernel_.next_submitted().user_data, 0);
    ring_->run_once(0);
  }
  EXPECT_EQ(ring_->in_flight(), 0U) << "a slot that is free again";
}

TEST_F(RingTest, more_keeps_an_operation_in_flight) {
  Owner owner(*ring_);
  ring_->nop(owner, 1);
  submit();
  std::uint64_t user_data = kernel_.next_submitted().user_data;
  kernel_.complete(user_data, 100, IORING_CQE_F_MORE);
  ring_->run_once(0);
  EXPECT_EQ(owner.in_flight(), 1U);
  EXPECT_TRUE(owner.last.more());
  kernel_.complete(user_data, 0, IORING_CQE_F_NOTIF);
  ring_->run_once(0);
  EXPECT_EQ(owner.in_flight(), 0U);
  EXPECT_TRUE(owner.last.notification());
  EXPECT_FALSE(owner.last.copied());
}

TEST_F(RingTest, unsolicited_completions_end_no_operation) {
  Owner owner(*ring_);
  ring_->nop(owner, 1);
  submit();
  std::uint64_t user_data = kernel_.next_submitted().user_data;
  kernel_.complete(ring_->user_data(owner, 2) | unsolicited, 42);
  ring_->run_once(0);
  EXPECT_EQ(owner.seen, (std::vector<Seen>{{2, 42}}));
  EXPECT_EQ(owner.in_flight(), 1U);
  kernel_.complete(user_data, 0);
  ring_->run_once(0);
}

TEST_F(RingTest, slots_run_out_and_come_back) {
  auto ring = Ring::open(kernel_, {.entries = 8, .completion_entries = 16, .owners_max = 2});
  ASSERT_TRUE(ring.has_value());
  Owner a, b, c;
  EXPECT_TRUE((*ring)->attach(a));
  EXPECT_TRUE((*ring)->attach(b));
  EXPECT_FALSE((*ring)->attach(c));
  EXPECT_FALSE(c.attached());
  EXPECT_EQ((*ring)->attached(), 2U);
  (*ring)->detach(a);
  EXPECT_FALSE(a.attached());
  EXPECT_TRUE((*ring)->attach(c));
  (*ring)->detach(b);
  (*ring)->detach(c);
  EXPECT_EQ((*ring)->attached(), 0U);
}

TEST_F(RingTest, stale_completions_reach_nobody) {
  Owner first;
  Owner second;
  ring_->attach(first);
  std::uint64_t old = ring_->user_data(first, 1);
  ring_->detach(first);
  kernel_.complete(old, 1);  // nobody on the slot
  ring_->run_once(0);
  ring_->attach(second);  // the same slot, another generation
  EXPECT_EQ(ring_->user_data(second, 1) >> 32, old >> 32);
  EXPECT_NE(ring_->user_data(second, 1), old);
  kernel_.complete(old, 2);
  kernel_.complete(~std::uint64_t{0}, 3);  // a slot that never was
  EXPECT_EQ(ring_->run_once(0), 3U - 1U);
  EXPECT_TRUE(first.seen.empty());
  EXPECT_TRUE(second.seen.empty());
  EXPECT_EQ(ring_->counters().stale_completions, 3U);
  ring_->detach(second);
}

TEST_F(RingTest, generations_wrap_without_touching_the_slot) {
  Owner owner;
  for (int i = 0; i < (1 << 24) + 3; ++i) {
    ring_->attach(owner);
    ring_->detach(owner);
  }
  ring_->attach(owner);
  EXPECT_EQ(ring_->user_data(owner, 9), pack_user_data(0, 3, 9));
  ring_->nop(owner, 9);
  submit();
  kernel_.complete(kernel_.next_submitted().user_data, 0);
  ring_->run_once(0);
  EXPECT_EQ(owner.seen.size(), 1U);
  ring_->detach(owner);
}

TEST_F(RingTest, one_enter_a_turn) {
  Owner owner(*ring_);
  for (std::uint8_t kind = 0; kind < 5; ++kind)
    ring_->nop(owner, kind);
  EXPECT_TRUE(kernel_.entered.empty());
  submit();
  ASSERT_EQ(kernel_.entered.size(), 1U);
  EXPECT_EQ(kernel_.entered[0].to_submit, 5U);
  EXPECT_EQ(ring_->counters().enters, 1U);
  EXPECT_EQ(ring_->counters().submissions, 5U);
  while (!kernel_.submitted.empty())
    kernel_.complete(kernel_.next_submitted().user_data, 0);
  ring_->run_once(0);
  EXPECT_EQ(ring_->counters().completions, 5U);
}

TEST_F(RingTest, a_full_submission_queue_is_submitted_at_once_and_runs_no_handler) {
  Owner owner(*ring_);
  bool submitting = false;
  owner.action = [&](std::uint8_t kind, const Completion&) {
    EXPECT_FALSE(submitting);
    if (kind != 0) return;
    submitting = true;
    for (std::uint8_t i = 1; i <= 20; ++i)
      ring_->nop(owner, i);
    submitting = false;
  };
  ring_->nop(owner, 0);
  submit();
  kernel_.complete(kernel_.next_submitted().user_data, 0);
  ring_->run_once(0);
  // Two times eight entries went out early, without waiting for anything.
  EXPECT_EQ(kernel_.submitted.size(), 16U);
  EXPECT_EQ(kernel_.entered.back().flags & IORING_ENTER_GETEVENTS, 0U);
  submit();
  EXPECT_EQ(kernel_.submitted.size(), 20U);
  while (!kernel_.submitted.empty())
    kernel_.complete(kernel_.next_submitted().user_data, 0);
  for (int i = 0; i < 4; ++i)
    ring_->run_once(0);
  EXPECT_EQ(owner.in_flight(), 0U);
}

TEST_F(RingTest, completions_are_taken_off_before_handlers_run) {
  Owner owner(*ring_);
  for (std::uint8_t kind = 0; kind < 4; ++kind)
    ring_->nop(owner, kind);
  submit();
  while (!kernel_.submitted.empty())
    kernel_.complete(kernel_.next_submitted().user_data, 0);
  owner.action = [&](std::uint8_t, const Completion&) {
    EXPECT_EQ(kernel_.completions_waiting(), 0U);
  };
  EXPECT_EQ(ring_->run_once(0), 4U);
  EXPECT_EQ(owner.seen, (std::vector<Seen>{{0, 0}, {1, 0}, {2, 0}, {3, 0}}));
}

TEST_F(RingTest, busy_kernel_is_given_room_and_tried_again) {
  Owner owner(*ring_);
  ring_->nop(owner, 1);
  submit();
  std::uint64_t waiting = kernel_.next_submitted().user_data;
  ring_->nop(owner, 2);
  ring_->nop(owner, 3);
  // Busy until the completion queue is empty.
  kernel_.on_enter = [&](const FakeKernel::Entered&,
                         const FakeKernel::Take&) -> std::optional<int> {
    if (kernel_.entered.size() == 2) kernel_.complete(waiting, 11);
    if (kernel_.completions_waiting() != 0) return -EBUSY;
    return std::nullopt;
  };
  ring_->run_once(0);
  EXPECT_EQ(kernel_.entered.size(), 3U);
  EXPECT_EQ(kernel_.submitted.size(), 2U);
  EXPECT_EQ(owner.seen, (std::vector<Seen>{{1, 11}}));
  EXPECT_EQ(ring_->counters().refused, 0U);
  while (!kernel_.submitted.empty())
    kernel_.complete(kernel_.next_submitted().user_data, 0);
  ring_->run_once(0);
}

TEST_F(RingTest, slow_kernel_takes_entries_one_by_one) {
  Owner owner(*ring_);
  for (std::uint8_t kind = 0; kind < 8; ++kind)
    ring_->nop(owner, kind);
  kernel_.on_enter = [](const FakeKernel::Entered& now,
                        const FakeKernel::Take& take) -> std::optional<int> {
    if (now.to_submit == 0) return 0;
    take(1);
    return 1;
  };
  ring_->run_once(0);
  EXPECT_EQ(kernel_.submitted.size(), 8U);
  EXPECT_EQ(ring_->counters().refused, 0U);
  while (!kernel_.submitted.empty())
    kernel_.complete(kernel_.next_submitted().user_data, 0);
  ring_->run_once(0);
  EXPECT_EQ(owner.in_flight(), 0U);
}

TEST_F(RingTest, what_the_kernel_never_takes_completes_as_busy) {
  Owner owner(*ring_);
  ring_->nop(owner, 1);
  ring_->nop(owner, 2);
  kernel_.on_enter = [](const FakeKernel::Entered&, const FakeKernel::Take&) -> std::optional<int> {
    return -EAGAIN;
  };
  EXPECT_EQ(ring_->run_once(0), 2U);
  EXPECT_EQ(owner.seen, (std::vector<Seen>{{1, -EBUSY}, {2, -EBUSY}}));
  EXPECT_EQ(owner.in_flight(), 0U);
  EXPECT_EQ(ring_->counters().refused, 2U);
  EXPECT_TRUE(kernel_.submitted.empty());
  // The queue is sound afterwards.
  kernel_.on_enter = nullptr;
  ring_->nop(owner, 3);
  submit();
  FakeKernel::Submitted sqe = kernel_.next_submitted();
  EXPECT_EQ(sqe.user_data, ring_->user_data(owner, 3));
  EXPECT_TRUE(kernel_.submitted.empty());
  kernel_.complete(sqe.user_data, 0);
  ring_->run_once(0);
  EXPECT_EQ(owner.seen.back(), (Seen{3, 0}));
}

TEST_F(RingTest, refused_operations_retried_by_their_owner_do_not_hold_the_turn) {
  Owner owner(*ring_);
  owner.action = [&](std::uint8_t, const Completion& completion) {
    if (completion.result == -EBUSY) ring_->nop(owner, 1);
  };
  kernel_.on_enter = [](const FakeKernel::Entered&, const FakeKernel::Take&) -> std::optional<int> {
    return -EAGAIN;
  };
  ring_->nop(owner, 1);
  EXPECT_EQ(ring_->run_once(0), 1U);
  EXPECT_EQ(ring_->run_once(), 1U);
  kernel_.on_enter = nullptr;
  submit();
  kernel_.complete(kernel_.next_submitted().user_data, 0);
  ring_->run_once(0);
  EXPECT_EQ(owner.in_flight(), 0U);
}

// A refusal inside a handler, in a full queue.
TEST_F(RingTest, a_refusal_inside_a_handler_completes_in_the_next_turn) {
  Owner owner(*ring_);
  Owner other(*ring_);
  bool inside = false;
  owner.action = [&](std::uint8_t kind, const Completion&) {
    if (kind != 0) return;
    inside = true;
    for (std::uint8_t i = 0; i < 9; ++i)
      ring_->nop(other, i);
    inside = false;
  };
  other.action = [&](std::uint8_t, const Completion&) { EXPECT_FALSE(inside); };
  ring_->nop(owner, 0);
  submit();
  kernel_.complete(kernel_.next_submitted().user_data, 0);
  kernel_.on_enter = [](const FakeKernel::Entered& now,
                        const FakeKernel::Take&) -> std::optional<int> {
    return now.to_submit == 0 ? 0 : -EBUSY;
  };
  EXPECT_EQ(ring_->run_once(0), 1U);
  EXPECT_TRUE(other.seen.empty());
  kernel_.on_enter = nullptr;
  // It does not sleep over completions that it made itself.
  EXPECT_EQ(ring_->run_once(), 8U);
  EXPECT_EQ(kernel_.entered.back().min_complete, 0U);
  EXPECT_EQ(other.seen.size(), 8U);
  EXPECT_EQ(other.in_flight(), 1U);
  kernel_.complete(kernel_.next_submitted().user_data, 0);
  ring_->run_once(0);
}

TEST_F(RingTest, an_overflown_completion_queue_is_flushed) {
  Owner owner(*ring_);
  std::vector<std::uint64_t> user_data;
  for (int i = 0; i < 50; ++i) {
    ring_->nop(owner, static_cast<std::uint8_t>(i));
    if (i % 8 == 7) submit();
  }
  submit();
  ASSERT_EQ(kernel_.submitted.size(), 50U);
  for (std::int32_t i = 0; i < 50; ++i)
    kernel_.complete(kernel_.next_submitted().user_data, i);
  EXPECT_EQ(kernel_.completions_waiting(), 16U);
  EXPECT_EQ(ring_->run_once(), 50U);
  EXPECT_EQ(ring_->counters().overflows, 3U);
  for (std::int32_t i = 0; i < 50; ++i)
    EXPECT_EQ(owner.seen[static_cast<std::size_t>(i)].result, i);
}

TEST_F(RingTest, interrupted_and_timed_out_waits_are_turns_without_work) {
  for (int error : {-EINTR, -ETIME}) {
    kernel_.on_enter = [&](const FakeKernel::Entered&,
                           const FakeKernel::Take&) -> std::optional<int> { return error; };
    EXPECT_EQ(ring_->run_once(5), 0U);
  }
}

TEST_F(RingTest, waits_as_long_as_it_may) {
  auto last = [&] { return kernel_.entered.back(); };
  ring_->run_once();
  EXPECT_EQ(last().min_complete, 1U);
  EXPECT_EQ(last().timeout_ns, std::nullopt);
  EXPECT_NE(last().flags & IORING_ENTER_GETEVENTS, 0U);
  ring_->run_once(1500);
  EXPECT_EQ(last().min_complete, 1U);
  EXPECT_EQ(last().timeout_ns, 1'500'000'000U);
  ring_->run_once(0);
  EXPECT_EQ(last().min_complete, 0U);
  EXPECT_NE(last().flags & IORING_ENTER_GETEVENTS, 0U);
  ring_->run_once(Ring::no_limit - 1);
  EXPECT_EQ(last().timeout_ns, std::nullopt);
}

struct TestTimer {
  int fired = 0;
  base::Timer timer{[](void* self) { ++static_cast<TestTimer*>(self)->fired; }, this};
};

TEST_F(RingTest, waits_no_longer_than_until_the_next_timer) {
  TestTimer timer;
  ring_->timers().arm(timer.timer, 3);
  ring_->run_once(1000);
  EXPECT_EQ(kernel_.entered.back().timeout_ns, 3'000'000U);
  EXPECT_EQ(timer.fired, 0);
  // Time that handlers took counts.
  kernel_.monotonic_now_ns += 1'500'000;
  ring_->run_once();
  EXPECT_EQ(kernel_.entered.back().timeout_ns, 1'500'000U);
  EXPECT_EQ(timer.fired, 0);
  kernel_.monotonic_now_ns += 50'000'000;
  ring_->run_once();
  EXPECT_EQ(kernel_.entered.back().min_complete, 0U);
  EXPECT_EQ(timer.fired, 1);
}

// A distant timer may cost a few early turns, never a late one.
TEST_F(RingTest, distant_timers_fire_in_time_with_few_turns) {
  TestTimer timer;
  ring_->timers().arm(timer.timer, 75'000);
  std::uint64_t deadline_ns = timer.timer.deadline_ms() * 1'000'000;
  unsigned turns = 0;
  kernel_.on_enter = [&](const FakeKernel::Entered& now, const FakeKernel::Take&) {
    kernel_.monotonic_now_ns += now.timeout_ns.value_or(0);
    return std::optional<int>(-ETIME);
  };
  for (; timer.fired == 0 && turns < 100; ++turns)
    ring_->run_once();
  EXPECT_EQ(timer.fired, 1);
  EXPECT_EQ(kernel_.monotonic_now_ns, deadline_ns);
  EXPECT_LE(turns, 4U);
}

TEST_F(RingTest, a_completion_beats_a_timer_of_the_same_turn) {
  Owner owner(*ring_);
  TestTimer timer;
  owner.action = [&](std::uint8_t, const Completion&) { ring_->timers().disarm(timer.timer); };
  ring_->nop(owner, 1);
  ring_->timers().arm(timer.timer, 10);
  submit();
  kernel_.complete(kernel_.next_submitted().user_data, 0);
  kernel_.monotonic_now_ns += 60'000'000'000;
  ring_->run_once();
  EXPECT_EQ(timer.fired, 0);
}

TEST_F(RingTest, delays_count_from_the_turn_and_not_from_the_sleep_before_it) {
  Owner owner(*ring_);
  TestTimer timer;
  owner.action = [&](std::uint8_t, const Completion&) { ring_->timers().arm(timer.timer, 100); };
  ring_->nop(owner, 1);
  submit();
  kernel_.complete(kernel_.next_submitted().user_data, 0);
  kernel_.monotonic_now_ns += 10'000'000'000;
  ring_->run_once();
  EXPECT_EQ(timer.fired, 0);
  EXPECT_EQ(timer.timer.deadline_ms(), ring_->now_ms() + 100);
}

TEST_F(RingTest, clocks_go_forward) {
  std::uint64_t before = ring_->now_ns();
  kernel_.monotonic_now_ns -= 1000;
  ring_->run_once(0);
  EXPECT_EQ(ring_->now_ns(), before);
  kernel_.monotonic_now_ns += 2'001'000;
  ring_->run_once(0);
  EXPECT_EQ(ring_->now_ns(), before + 2'000'000);
  EXPECT_EQ(ring_->now_ms(), (before + 2'000'000) / 1'000'000);
}

TEST_F(RingTest, real_time_follows_and_is_read_again_now_and_then) {
  std::uint64_t start = kernel_.realtime_now_ns;
  EXPECT_EQ(ring_->realtime_ns(), start);
  kernel_.monotonic_now_ns += 5'000'000;
  kernel_.realtime_now_ns += 3'600'000'000'000;  // somebody set the clock
  ring_->run_once(0);
  EXPECT_EQ(ring_->realtime_ns(), start + 5'000'000);
  EXPECT_EQ(kernel_.realtime_reads, 1U);
  kernel_.monotonic_now_ns += 200'000'000;
  ring_->run_once(0);
  EXPECT_EQ(ring_->realtime_ns(), start + 3'600'000'000'000);
}

}  // namespace
}  // namespace ringside::ring::test
