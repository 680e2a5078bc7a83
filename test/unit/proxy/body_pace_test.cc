#include "body_pace.h"

#include <gtest/gtest.h>

namespace ringside::proxy {
namespace {

constexpr std::uint64_t rate = 1000;  // bytes a second: one for each millisecond
constexpr base::Millis grace_ms = 5'000;

BodyPace begun(std::uint64_t bytes = 0) {
  BodyPace out;
  out.begin(rate, grace_ms, bytes);
  return out;
}

TEST(BodyPace, is_off_until_it_begins) {
  EXPECT_FALSE(BodyPace().on());
  EXPECT_TRUE(begun().on());
}

TEST(BodyPace, nothing_at_all_is_borne_for_the_grace) {
  BodyPace pace = begun();
  pace.wait(true, 100);
  EXPECT_EQ(pace.left_ms(), grace_ms);
  EXPECT_TRUE(pace.check(100 + grace_ms - 1, 0));
  EXPECT_EQ(pace.left_ms(), 1U);
  EXPECT_FALSE(pace.check(100 + grace_ms, 0));
}

TEST(BodyPace, who_keeps_the_rate_may_go_on_for_ever) {
  BodyPace pace = begun();
  pace.wait(true, 0);
  for (base::Millis now_ms = 4'000; now_ms < 1'000'000'000; now_ms += 4'000) {
    ASSERT_TRUE(pace.check(now_ms, now_ms)) << now_ms;
    ASSERT_EQ(pace.left_ms(), grace_ms);
  }
}

TEST(BodyPace, who_is_a_little_too_slow_is_found_out) {
  BodyPace pace = begun();
  pace.wait(true, 0);
  // Nine tenths of the rate: the grace is used up after ten times as long.
  base::Millis now_ms = 0;
  do
    now_ms += 1'000;
  while (pace.check(now_ms, now_ms * 9 / 10));
  EXPECT_EQ(now_ms, grace_ms * 10);
}

TEST(BodyPace, only_waiting_counts) {
  BodyPace pace = begun();
  pace.wait(true, 0);
  pace.wait(false, 4'000);
  pace.wait(false, 900'000);
  EXPECT_TRUE(pace.check(1'000'000, 0));
  pace.wait(true, 1'000'000);
  EXPECT_EQ(pace.left_ms(), 1'000U);
  pace.wait(true, 1'000'500);  // said again
  EXPECT_EQ(pace.left_ms(), 500U);
  EXPECT_FALSE(pace.check(1'001'000, 0));
}

TEST(BodyPace, the_past_does_not_count_for_ever) {
  BodyPace pace = begun();
  pace.wait(true, 0);
  EXPECT_TRUE(pace.check(1, 1'000'000'000));
  EXPECT_EQ(pace.left_ms(), grace_ms);
  EXPECT_FALSE(pace.check(1 + grace_ms, 1'000'000'000));
}

TEST(BodyPace, counts_from_where_it_began) {
  BodyPace pace = begun(50'000);
  pace.wait(true, 0);
  EXPECT_TRUE(pace.check(4'000, 50'000));
  EXPECT_EQ(pace.left_ms(), 1'000U);
  // A counter that went back, as one of what has not arrived may, is as if it had stood.
  EXPECT_TRUE(pace.check(4'500, 49'000));
  EXPECT_EQ(pace.left_ms(), 500U);
  EXPECT_TRUE(pace.check(4'500, 50'100));
  EXPECT_EQ(pace.left_ms(), 600U);
}

TEST(BodyPace, forgiving_begins_anew) {
  BodyPace pace = begun();
  pace.wait(true, 0);
  EXPECT_FALSE(pace.check(90'000, 0));
  pace.forgive();
  EXPECT_EQ(pace.left_ms(), grace_ms);
  EXPECT_TRUE(pace.check(91'000, 0));
}

TEST(BodyPace, the_largest_numbers_fit) {
  BodyPace pace;
  pace.begin(std::uint64_t{1} << 30, base::Millis{1} << 32, 0);
  pace.wait(true, 0);
  EXPECT_TRUE(pace.check(1, ~std::uint64_t{0}));
  EXPECT_EQ(pace.left_ms(), base::Millis{1} << 32);
  EXPECT_FALSE(pace.check(~std::uint64_t{0}, ~std::uint64_t{0}));
}

}  // namespace
}  // namespace ringside::proxy
