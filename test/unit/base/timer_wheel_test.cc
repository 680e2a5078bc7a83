#include "ringside/base/timer_wheel.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "counting_allocator.h"

namespace ringside::base {
namespace {

// A timer that calls a function.
struct TestTimer {
  Timer timer{[](void* self) { static_cast<TestTimer*>(self)->fire(); }, this};
  std::function<void()> action = [] {};
  int fired = 0;
  void fire() {
    ++fired;
    action();
  }
};

TEST(TimerWheel, fires_at_its_deadline_and_not_before) {
  TimerWheel wheel(1000);
  TestTimer one;
  wheel.arm(one.timer, 50);
  EXPECT_TRUE(one.timer.armed());
  EXPECT_EQ(one.timer.deadline_ms(), 1050U);
  EXPECT_EQ(wheel.advance(1049), 0U);
  EXPECT_EQ(one.fired, 0);
  EXPECT_EQ(wheel.advance(1050), 1U);
  EXPECT_EQ(one.fired, 1);
  EXPECT_FALSE(one.timer.armed());
  EXPECT_EQ(wheel.advance(100'000), 0U);
}

TEST(TimerWheel, a_delay_of_zero_is_one_millisecond) {
  TimerWheel wheel(0);
  TestTimer one;
  wheel.arm(one.timer, 0);
  EXPECT_EQ(wheel.advance(0), 0U);
  EXPECT_EQ(wheel.advance(1), 1U);
}

TEST(TimerWheel, delays_are_cut_to_the_range) {
  TimerWheel wheel(5);
  TestTimer one;
  wheel.arm(one.timer, ~Millis{0});
  constexpr Millis range = (Millis{1} << 32) - 1;
  EXPECT_EQ(one.timer.deadline_ms(), 5 + range);
  EXPECT_EQ(wheel.advance(5 + range - 1), 0U);
  EXPECT_EQ(wheel.advance(5 + range), 1U);
}

TEST(TimerWheel, disarmed_timers_do_not_fire) {
  TimerWheel wheel(0);
  TestTimer one;
  wheel.arm(one.timer, 10);
  wheel.disarm(one.timer);
  wheel.disarm(one.timer);
  EXPECT_FALSE(one.timer.armed());
  EXPECT_EQ(wheel.advance(100), 0U);
  EXPECT_EQ(wheel.until_next(), TimerWheel::none) << "it is forgotten when its slot has come";
  wheel.arm(one.timer, 10);
  EXPECT_EQ(wheel.advance(110), 1U);
}

TEST(TimerWheel, a_disarmed_timer_is_armed_again_earlier_or_later) {
  for (const Millis delay : {Millis{3}, Millis{300}}) {
    TimerWheel wheel(0);
    TestTimer one;
    wheel.arm(one.timer, 100);
    wheel.disarm(one.timer);
    wheel.arm(one.timer, delay);
    EXPECT_TRUE(one.timer.armed());
    EXPECT_EQ(wheel.advance(delay - 1), 0U);
    EXPECT_EQ(wheel.advance(delay), 1U);
  }
}

TEST(TimerWheel, a_disarmed_timer_far_ahead_is_dropped_on_its_way) {
  TimerWheel wheel(0);
  TestTimer one;
  wheel.arm(one.timer, 100'000);
  wheel.disarm(one.timer);
  EXPECT_EQ(wheel.advance(99'000), 0U) << "past the slot of a higher level that held it";
  EXPECT_EQ(wheel.until_next(), TimerWheel::none);
}

TEST(TimerWheel, a_destroyed_timer_disarms_itself) {
  TimerWheel wheel(0);
  {
    TestTimer one;
    wheel.arm(one.timer, 10);
  }
  EXPECT_EQ(wheel.until_next(), TimerWheel::none);
  EXPECT_EQ(wheel.advance(100), 0U);
}

TEST(TimerWheel, rearming_moves_the_deadline_both_ways) {
  TimerWheel wheel(0);
  TestTimer one;
  wheel.arm(one.timer, 100);
  wheel.arm(one.timer, 5000);
  EXPECT_EQ(wheel.advance(4999), 0U);
  wheel.arm(one.timer, 10'000);
  wheel.arm(one.timer, 3);
  EXPECT_EQ(wheel.advance(5001), 0U);
  EXPECT_EQ(wheel.advance(5002), 1U);
}

// The last timer of a list moves to an earlier time within the same slot of a higher level.
TEST(TimerWheel, rearming_within_the_same_slot_keeps_the_slot_sound) {
  TimerWheel wheel(0);
  TestTimer one;
  TestTimer two;
  wheel.arm(one.timer, 1000);
  wheel.arm(two.timer, 1010);
  wheel.arm(two.timer, 1005);
  EXPECT_EQ(wheel.advance(1004), 1U);
  EXPECT_EQ(wheel.advance(1005), 1U);
  EXPECT_EQ(one.fired + two.fired, 2);
}

TEST(TimerWheel, observed_time_moves_what_delays_count_from) {
  TimerWheel wheel(0);
  TestTimer early;
  TestTimer late;
  wheel.arm(early.timer, 100);
  wheel.observe(5000);
  EXPECT_EQ(wheel.now_ms(), 5000U);
  EXPECT_EQ(wheel.position_ms(), 0U);
  wheel.arm(late.timer, 100);
  EXPECT_EQ(late.timer.deadline_ms(), 5100U);
  wheel.observe(4000);
  EXPECT_EQ(wheel.now_ms(), 5000U);
  EXPECT_EQ(wheel.advance(5000), 1U);
  EXPECT_EQ(early.fired, 1);
  EXPECT_EQ(wheel.advance(5099), 0U);
  EXPECT_EQ(wheel.advance(5100), 1U);
}

TEST(TimerWheel, time_does_not_go_back) {
  TimerWheel wheel(1000);
  TestTimer one;
  wheel.arm(one.timer, 10);
  EXPECT_EQ(wheel.advance(10), 0U);
  EXPECT_EQ(wheel.now_ms(), 1000U);
  EXPECT_EQ(wheel.advance(1010), 1U);
}

TEST(TimerWheel, until_next_is_exact_for_the_lowest_level_and_early_above) {
  TimerWheel wheel(0);
  EXPECT_EQ(wheel.until_next(), TimerWheel::none);
  TestTimer one;
  wheel.arm(one.timer, 7);
  EXPECT_EQ(wheel.until_next(), 7U);
  wheel.arm(one.timer, 1);
  EXPECT_EQ(wheel.until_next(), 1U);
  EXPECT_EQ(wheel.advance(1), 1U);
  wheel.arm(one.timer, 99);
  EXPECT_EQ(wheel.until_next(), 63U);
  wheel.advance(64);
  EXPECT_EQ(wheel.until_next(), 36U);
}

TEST(TimerWheel, a_callback_may_arm_itself_again) {
  TimerWheel wheel(0);
  TestTimer one;
  one.action = [&] { wheel.arm(one.timer, 10); };
  wheel.arm(one.timer, 10);
  for (Millis now = 1; now <= 100; ++now)
    wheel.advance(now);
  EXPECT_EQ(one.fired, 10);
  // After a jump the delay counts from the end of the jump: one firing, no storm.
  EXPECT_EQ(wheel.advance(1'000'000), 1U);
  EXPECT_EQ(one.timer.deadline_ms(), 1'000'010U);
}

TEST(TimerWheel, a_callback_may_disarm_and_destroy_others_of_its_slot) {
  TimerWheel wheel(0);
  TestTimer first;
  TestTimer second;
  auto third = std::make_unique<TestTimer>();
  first.action = [&] {
    wheel.disarm(second.timer);
    third.reset();
  };
  wheel.arm(first.timer, 10);
  wheel.arm(second.timer, 10);
  wheel.arm(third->timer, 10);
  EXPECT_EQ(wheel.advance(10), 1U);
  EXPECT_EQ(second.fired, 0);
}

TEST(TimerWheel, a_callback_may_destroy_its_own_timer) {
  TimerWheel wheel(0);
  struct Own {
    std::unique_ptr<Own>* self = nullptr;
    Timer timer{[](void* own) { static_cast<Own*>(own)->self->reset(); }, this};
  };
  auto own = std::make_unique<Own>();
  own->self = &own;
  wheel.arm(own->timer, 5);
  EXPECT_EQ(wheel.advance(5), 1U);
  EXPECT_EQ(own, nullptr);
}

TEST(TimerWheel, a_callback_may_push_back_a_timer_that_is_due_with_it) {
  TimerWheel wheel(0);
  TestTimer first;
  TestTimer second;
  first.action = [&] { wheel.arm(second.timer, 30); };
  wheel.arm(first.timer, 10);
  wheel.arm(second.timer, 10);
  EXPECT_EQ(wheel.advance(10), 1U);
  EXPECT_EQ(wheel.advance(39), 0U);
  EXPECT_EQ(wheel.advance(40), 1U);
}

TEST(TimerWheel, fires_in_order_of_slots) {
  TimerWheel wheel(0);
  std::vector<int> order;
  TestTimer timers[5];
  Millis delays[] = {500, 3, 70'000, 4, 65};
  for (int i = 0; i < 5; ++i) {
    timers[i].action = [&order, i] { order.push_back(i); };
    wheel.arm(timers[i].timer, delays[i]);
  }
  EXPECT_EQ(wheel.advance(100'000), 5U);
  EXPECT_EQ(order, (std::vector{1, 3, 4, 0, 2}));
}

// Boundaries of every level, from starting points around them.
TEST(TimerWheel, is_exact_at_every_level_boundary) {
  for (unsigned bits = 0; bits < 38; bits += 6) {
    for (Millis offset : {-1LL, 0LL, 1LL}) {
      Millis start = (Millis{1} << bits) + offset;
      for (unsigned delay_bits = 0; delay_bits < 32; ++delay_bits) {
        for (Millis extra : {-1LL, 0LL, 1LL}) {
          Millis delay = (Millis{1} << delay_bits) + extra;
          if (delay == 0) continue;
          TimerWheel wheel(start);
          TestTimer one;
          wheel.arm(one.timer, delay);
          ASSERT_EQ(wheel.advance(start + delay - 1), 0U) << start << " + " << delay;
          ASSERT_EQ(wheel.advance(start + delay), 1U) << start << " + " << delay;
        }
      }
    }
  }
}

// Random arming, re-arming, disarming and jumps, callbacks that do the same, against a list of
// deadlines.
class AgainstReference {
 public:
  AgainstReference(unsigned seed, Millis start) : random_(seed), wheel_(start), now_(start) {
    for (std::size_t i = 0; i < timers_.size(); ++i) {
      timers_[i].action = [this, i] { on_fire(i); };
    }
  }

  void step() {
    switch (random_() % 8) {
      case 0:
      case 1:
      case 2:
        arm(random_() % count, random_delay());
        break;
      case 3:
        disarm(random_() % count);
        break;
      case 4:
        now_ += random_() % 200;
        wheel_.observe(now_);
        break;
      default:
        advance(random_() % 20 == 0 ? random_delay() : random_() % 100);
        break;
    }
  }

  void drain() {
    in_callbacks_ = false;
    advance(Millis{1} << 33);
    for (const auto& deadline : deadlines_)
      ASSERT_EQ(deadline, std::nullopt);
  }

 private:
  static constexpr std::size_t count = 40;

  Millis random_delay() { return random_() >> (random_() % 32); }

  void arm(std::size_t i, Millis delay) {
    wheel_.arm(timers_[i].timer, delay);
    deadlines_[i] = now_ + std::max<Millis>(delay, 1);
    ASSERT_EQ(timers_[i].timer.deadline_ms(), *deadlines_[i]);
  }
  void disarm(std::size_t i) {
    wheel_.disarm(timers_[i].timer);
    deadlines_[i].reset();
  }

  void on_fire(std::size_t i) {
    ASSERT_TRUE(deadlines_[i].has_value()) << "fired though not armed";
    ASSERT_LE(*deadlines_[i], now_) << "fired early";
    ASSERT_FALSE(timers_[i].timer.armed());
    deadlines_[i].reset();
    if (!in_callbacks_) return;
    if (random_() % 2 == 0) arm(random_() % count, random_delay());
    if (random_() % 4 == 0) disarm(random_() % count);
  }

  void advance(Millis by) {
    // The next slot is never later than the next deadline.
    std::optional<Millis> first;
    for (const auto& deadline : deadlines_) {
      if (deadline && (!first || *deadline < *first)) first = deadline;
    }
    Millis next = wheel_.until_next();
    if (first) {
      ASSERT_NE(next, TimerWheel::none);
      ASSERT_LE(wheel_.position_ms() + next, std::max(*first, wheel_.position_ms() + 1));
    }
    now_ += by;
    wheel_.advance(now_);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(timers_[i].timer.armed(), deadlines_[i].has_value());
      if (deadlines_[i]) {
        ASSERT_GT(*deadlines_[i], now_) << "did not fire in time";
      }
    }
  }

  std::mt19937 random_;
  TimerWheel wheel_;
  Millis now_;
  bool in_callbacks_ = true;
  std::array<TestTimer, count> timers_;
  std::array<std::optional<Millis>, count> deadlines_{};
};

TEST(TimerWheel, agrees_with_a_reference) {
  Millis starts[] = {0, 1, 63, 4095, (Millis{1} << 36) - 50, 123'456'789'012};
  for (unsigned seed = 0; seed < 60; ++seed) {
    AgainstReference run(seed, starts[seed % std::size(starts)]);
    for (int i = 0; i < 2000 && !testing::Test::HasFatalFailure(); ++i)
      run.step();
    run.drain();
    ASSERT_FALSE(testing::Test::HasFatalFailure()) << "seed " << seed;
  }
}

TEST(TimerWheel, allocates_nothing) {
  TimerWheel wheel(0);
  TestTimer timers[100];
  test::AllocationCount allocations;
  for (Millis now = 0; now < 10'000; now += 7) {
    for (std::size_t i = 0; i < std::size(timers); ++i)
      wheel.arm(timers[i].timer, 1 + (now * 31 + i * 17) % 5000);
    wheel.advance(now);
  }
  EXPECT_EQ(allocations.count(), 0U);
}

}  // namespace
}  // namespace ringside::base
