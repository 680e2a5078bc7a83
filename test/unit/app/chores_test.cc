#include "chores.h"

#include <gtest/gtest.h>

namespace ringside::app {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Chores::Time start{std::chrono::hours(5)};

TEST(Chores, WithoutAnyThereIsNothingToWaitFor) {
  Chores chores({}, start);
  chores.run(start + std::chrono::hours(1));
  EXPECT_EQ(chores.wait(start), std::nullopt);
}

TEST(Chores, EachIsDoneInItsTime) {
  int often = 0;
  int seldom = 0;
  Chores chores({{100, [&] { ++often; }}, {250, [&] { ++seldom; }}}, start);
  chores.run(start);
  EXPECT_EQ(often, 0) << "not at once";
  EXPECT_EQ(chores.wait(start), milliseconds(100));
  chores.run(start + milliseconds(99));
  EXPECT_EQ(often, 0);
  EXPECT_EQ(chores.wait(start + milliseconds(99)), milliseconds(1));
  for (int ms = 100; ms <= 500; ms += 10)
    chores.run(start + milliseconds(ms));
  EXPECT_EQ(often, 5);
  EXPECT_EQ(seldom, 2);
  EXPECT_EQ(chores.wait(start + milliseconds(500)), milliseconds(100));
}

TEST(Chores, OneThatIsLateIsNotMadeUpFor) {
  int done = 0;
  Chores chores({{100, [&] { ++done; }}}, start);
  EXPECT_EQ(chores.wait(start + milliseconds(350)), milliseconds(0)) << "overdue";
  chores.run(start + milliseconds(350));
  chores.run(start + milliseconds(449));
  EXPECT_EQ(done, 1);
  chores.run(start + milliseconds(450));
  EXPECT_EQ(done, 2);
}

TEST(Chores, NobodyIsWokenTooEarly) {
  Chores chores({{100, [] {}}}, start);
  EXPECT_EQ(chores.wait(start + microseconds(99'500)), milliseconds(1));
}

}  // namespace
}  // namespace ringside::app
