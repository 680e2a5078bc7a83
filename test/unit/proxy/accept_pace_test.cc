#include "accept_pace.h"

#include <gtest/gtest.h>

namespace ringside::proxy {
namespace {

constexpr base::Millis window = AcceptPace::window_ms;

TEST(AcceptPace, many_in_a_window_are_fast) {
  AcceptPace pace(3);
  pace.note(1000, 1);
  pace.note(1000 + window - 1, 1);
  EXPECT_FALSE(pace.in_turns());
  pace.note(1000 + window - 1, 1);
  EXPECT_TRUE(pace.in_turns());
}

TEST(AcceptPace, what_came_in_two_windows_is_not_added_up) {
  AcceptPace pace(3);
  pace.note(1000, 2);
  pace.note(1000 + window, 2);
  EXPECT_FALSE(pace.in_turns());
}

TEST(AcceptPace, half_as_many_go_on_and_fewer_end_it) {
  AcceptPace pace(4);
  pace.note(1000, 4);
  pace.note(1000 + window, 2);
  EXPECT_TRUE(pace.in_turns());
  pace.note(1000 + 2 * window, 1);
  EXPECT_TRUE(pace.in_turns());
  pace.note(1000 + 3 * window, 0);
  EXPECT_FALSE(pace.in_turns());
}

TEST(AcceptPace, nothing_in_a_window_ends_it_whatever_is_fast) {
  AcceptPace pace(1);
  pace.note(1000, 1);
  pace.note(1000 + window, 0);
  EXPECT_TRUE(pace.in_turns());
  pace.note(1000 + 2 * window, 0);
  EXPECT_FALSE(pace.in_turns());
}

TEST(AcceptPace, zero_is_never) {
  AcceptPace pace(0);
  pace.note(1000, 1'000'000);
  EXPECT_FALSE(pace.in_turns());
}

TEST(AcceptPace, after_a_reset_it_begins_again) {
  AcceptPace pace(2);
  pace.note(1000, 2);
  pace.reset();
  EXPECT_FALSE(pace.in_turns());
  pace.note(1000, 1);
  EXPECT_FALSE(pace.in_turns());
  pace.note(1000, 1);
  EXPECT_TRUE(pace.in_turns());
}

}  // namespace
}  // namespace ringside::proxy
