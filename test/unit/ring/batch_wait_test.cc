// For how many completions a turn waits, and how long.
#include "../../../src/ring/batch_wait.h"

#include <gtest/gtest.h>
#include <sys/uio.h>

#include <functional>
#include <memory>

#include "ringside/ring/ring.h"

#include "fake_kernel.h"
#include "owner.h"

namespace ringside::ring::test {
namespace {

class BatchWaitTest : public testing::Test {
 protected:
  // A turn that submitted so many small sends and brought so many completions.
  BatchWait::Wait turn(unsigned sends, unsigned completions) {
    for (unsigned i = 0; i < sends; ++i)
      wait_.sending(1);
    BatchWait::Wait asked = wait_.next();
    wait_.completed(completions);
    return asked;
  }
  BatchWait wait_{true};
};

TEST_F(BatchWaitTest, who_had_one_thing_to_do_waits_for_one) {
  EXPECT_EQ(turn(0, 1).completions, 1U);
  EXPECT_EQ(turn(0, 0).completions, 1U);
  EXPECT_EQ(turn(0, 1).completions, 1U);
}

TEST_F(BatchWaitTest, who_had_several_waits_for_as_many_in_proportion) {
  turn(0, 3);
  BatchWait::Wait asked = turn(0, 2);
  EXPECT_EQ(asked.completions, 3U);
  EXPECT_EQ(asked.limit_ns, 3 * BatchWait::ns_per_completion);
  EXPECT_EQ(turn(0, 1).completions, 2U);
  EXPECT_EQ(turn(0, 1).completions, 1U);
}

TEST_F(BatchWaitTest, the_wait_has_a_limit) {
  turn(0, 1000);
  BatchWait::Wait asked = turn(5, 0);
  EXPECT_EQ(asked.completions, BatchWait::completions_max + 5);
  EXPECT_EQ(asked.limit_ns, BatchWait::completions_max * BatchWait::ns_per_completion);
}

// ---- trying what is cheaper

// A machine on which a completion costs so many nanoseconds of CPU, with and without waiting.
class BatchTrialTest : public testing::Test {
 protected:
  // How many of `epochs` epochs it waited in.
  unsigned run(unsigned epochs, std::uint64_t ns_waiting, std::uint64_t ns_not) {
    unsigned waited = 0;
    for (unsigned i = 0; i < epochs; ++i) {
      waited += wait_.waits() ? 1 : 0;
      cpu_ns_ += BatchWait::epoch_completions * (wait_.waits() ? ns_waiting : ns_not);
      EXPECT_FALSE(wait_.completed(BatchWait::epoch_completions - 1));
      EXPECT_TRUE(wait_.completed(1));
      wait_.measured(cpu_ns_);
    }
    return waited;
  }
  static constexpr unsigned settled = 1024;
  static constexpr unsigned trials = settled / (BatchWait::epochs_between_trials + 1);
  BatchWait wait_{true};
  std::uint64_t cpu_ns_ = 123'456'789;
};

TEST_F(BatchTrialTest, it_waits_where_waiting_is_cheaper) {
  run(settled, 3000, 4000);
  EXPECT_EQ(run(settled, 3000, 4000), settled - trials);
}

TEST_F(BatchTrialTest, it_does_not_wait_where_waiting_is_dearer) {
  run(settled, 4000, 3000);
  EXPECT_EQ(run(settled, 4000, 3000), trials);
}

TEST_F(BatchTrialTest, a_saving_that_is_too_small_for_the_delay_is_left) {
  run(settled, 2950, 3000);
  EXPECT_EQ(run(settled, 2950, 3000), trials);
}

TEST_F(BatchTrialTest, it_notices_when_that_changes_and_again) {
  run(settled, 3000, 4000);
  run(settled, 4000, 3000);
  EXPECT_EQ(run(settled, 4000, 3000), trials);
  run(settled, 3000, 4000);
  EXPECT_EQ(run(settled, 3000, 4000), settled - trials);
}

// The work itself may become dearer or cheaper at any time, whichever way is being tried.
TEST_F(BatchTrialTest, work_that_changes_does_not_pass_for_a_saving) {
  for (unsigned i = 0; i < settled; ++i)
    run(1, 4000 + 1000 * (i % 7), 3000 + 750 * (i % 7));
  EXPECT_LT(run(settled, 4000, 3000), 2 * trials);
}

TEST_F(BatchTrialTest, switched_off_it_measures_nothing) {
  wait_ = BatchWait(false);
  EXPECT_FALSE(wait_.completed(10 * BatchWait::epoch_completions));
}

// Small sends complete at once: counted as news, they would end every wait and keep every ring
// busy.
TEST_F(BatchWaitTest, small_sends_come_on_top_and_are_no_news) {
  turn(0, 2);
  EXPECT_EQ(turn(3, 5).completions, 5U);
  EXPECT_EQ(turn(2, 3).completions, 4U) << "the last turn had 2 that were no sends";
  EXPECT_EQ(turn(9, 0).completions, 1U) << "and now one";
  EXPECT_EQ(turn(0, 0).completions, 1U) << "sends that are late are not below nothing";
}

TEST_F(BatchWaitTest, a_large_send_may_take_its_time_and_is_news) {
  turn(0, 2);
  wait_.sending(BatchWait::prompt_bytes_max + 1);
  EXPECT_EQ(turn(0, 0).completions, 2U);
}

TEST_F(BatchWaitTest, switched_off_it_waits_for_one) {
  wait_ = BatchWait(false);
  turn(0, 5);
  EXPECT_EQ(turn(1, 0).completions, 1U);
}

// ---- the ring

class BatchingRingTest : public testing::Test {
 protected:
  void open(bool batch_wait) {
    auto ring = Ring::open(
        kernel_,
        {.entries = 8, .completion_entries = 16, .owners_max = 8, .batch_wait = batch_wait});
    ASSERT_TRUE(ring.has_value());
    ring_ = std::move(*ring);
  }
  // What the ring asks for after a turn with two completions, with what `submit` submits then.
  FakeKernel::Entered after_two(const std::function<void(Owner&)>& submit = [](Owner&) {}) {
    Owner owner(*ring_);
    ring_->nop(owner, 1);
    ring_->nop(owner, 2);
    ring_->run_once(0);
    for (int i = 0; i < 2; ++i)
      kernel_.complete(kernel_.next_submitted().user_data, 0);
    ring_->run_once(0);
    kernel_.entered.clear();
    submit(owner);
    ring_->run_once();
    FakeKernel::Entered entered = kernel_.entered.at(0);
    while (!kernel_.submitted.empty())
      kernel_.complete(kernel_.next_submitted().user_data, 0);
    ring_->run_once(0);
    return entered;
  }
  FakeKernel kernel_;
  std::unique_ptr<Ring> ring_;
};

TEST_F(BatchingRingTest, after_a_turn_with_two_completions_it_waits_for_two) {
  open(true);
  FakeKernel::Entered entered = after_two();
  EXPECT_EQ(entered.min_complete, 2U);
  EXPECT_EQ(entered.timeout_ns, 2 * BatchWait::ns_per_completion);
}

TEST_F(BatchingRingTest, small_sends_of_either_kind_come_on_top) {
  open(true);
  EXPECT_EQ(after_two([&](Owner& owner) { ring_->send(owner, 3, 5, "x", 1, 0); }).min_complete, 3U);
  auto send_pieces = [&](std::size_t bytes) {
    return after_two([&](Owner& owner) {
      Ring::Gather& gather = ring_->gather();
      static char piece = 'x';
      for (iovec* at : {&gather.pieces[0], &gather.pieces[1]})
        *at = {&piece, bytes};
      gather.message.msg_iovlen = 2;
      ring_->send_message(owner, 3, 5, &gather.message, 0);
    });
  };
  EXPECT_EQ(send_pieces(1).min_complete, 3U);
  EXPECT_EQ(send_pieces(BatchWait::prompt_bytes_max).min_complete, 2U) << "together they are large";
}

TEST_F(BatchingRingTest, a_timer_that_is_due_earlier_ends_the_wait) {
  open(true);
  base::Timer timer([](void*) {}, nullptr);
  ring_->timers().arm(timer, 1);
  kernel_.monotonic_now_ns += 999'990;
  EXPECT_LT(after_two().timeout_ns, 2 * BatchWait::ns_per_completion);
  ring_->timers().disarm(timer);
}

struct CountingWork final : TurnWork {
  void run_turn() override {
    if (++turns == most) unlink();
  }
  int turns = 0;
  int most = 1000;
};

TEST_F(BatchingRingTest, work_of_each_turn_ends_the_wait) {
  open(true);
  CountingWork work;
  ring_->each_turn(work);
  ring_->run_once();
  EXPECT_EQ(kernel_.entered.back().min_complete, 1U);
  EXPECT_EQ(kernel_.entered.back().timeout_ns, TurnWork::turn_work_ns);
  EXPECT_EQ(after_two().timeout_ns, 2 * BatchWait::ns_per_completion) << "which is sooner";
}

TEST_F(BatchingRingTest, work_of_each_turn_is_done_until_it_takes_itself_off) {
  open(true);
  CountingWork twice;
  twice.most = 2;
  CountingWork always;
  ring_->each_turn(twice);
  ring_->each_turn(always);
  for (int i = 0; i < 3; ++i)
    ring_->run_once(0);
  EXPECT_EQ(twice.turns, 2);
  EXPECT_EQ(always.turns, 3);
  always.unlink();
  ring_->run_once();
  EXPECT_EQ(always.turns, 3);
  EXPECT_EQ(kernel_.entered.back().timeout_ns, std::nullopt);
}

TEST_F(BatchingRingTest, the_clock_of_the_thread_is_read_once_an_epoch) {
  open(true);
  Owner owner(*ring_);
  const auto serve = [&](unsigned completions) {
    for (unsigned i = 0; i < completions; ++i) {
      ring_->nop(owner, 1);
      ring_->run_once(0);
      kernel_.complete(kernel_.next_submitted().user_data, 0);
    }
    ring_->run_once(0);
  };
  serve(BatchWait::epoch_completions - 1);
  EXPECT_EQ(kernel_.cpu_reads, 0U);
  serve(1);
  EXPECT_EQ(kernel_.cpu_reads, 1U);
}

TEST_F(BatchingRingTest, switched_off_it_waits_for_one_without_a_limit) {
  open(false);
  FakeKernel::Entered entered = after_two();
  EXPECT_EQ(entered.min_complete, 1U);
  EXPECT_EQ(entered.timeout_ns, std::nullopt);
}

}  // namespace
}  // namespace ringside::ring::test
