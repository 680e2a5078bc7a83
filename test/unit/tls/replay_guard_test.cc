#include "ringside/tls/replay_guard.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

namespace ringside::tls {
namespace {

using Random = std::array<unsigned char, ReplayGuard::random_bytes>;

// Different for each number, in the same bucket for the same `bucket`.
Random random_of(unsigned number, unsigned char bucket = 0) {
  Random out{};
  out[0] = 1;
  out[8] = static_cast<unsigned char>(number >> 8);
  out[9] = static_cast<unsigned char>(number);
  out[16] = bucket;
  return out;
}

constexpr std::uint64_t memory = ReplayGuard::memory_ms;

TEST(ReplayGuard, TakesEachOnce) {
  ReplayGuard guard(0);
  EXPECT_TRUE(guard.first(random_of(1), 0));
  EXPECT_FALSE(guard.first(random_of(1), 0));
  EXPECT_TRUE(guard.first(random_of(2), 1));
  EXPECT_FALSE(guard.first(random_of(1), 1));
  EXPECT_FALSE(guard.first(Random{}, 1)) << "no client has such luck";
}

// Whatever the moment within a generation.
TEST(ReplayGuard, RemembersForAsLongAsItCouldBeFresh) {
  for (const std::uint64_t seen : {std::uint64_t{0}, memory / 2, memory - 1, memory, memory + 1}) {
    for (const std::uint64_t later : {std::uint64_t{1}, memory / 2, memory - 1}) {
      ReplayGuard guard(0);
      ASSERT_TRUE(guard.first(random_of(1), seen));
      for (std::uint64_t step = 1; step < 4; ++step)
        guard.first(random_of(1000 + static_cast<unsigned>(step)), seen + later * step / 4);
      EXPECT_FALSE(guard.first(random_of(1), seen + later)) << seen << " " << later;
    }
  }
}

TEST(ReplayGuard, ForgetsAfterwards) {
  ReplayGuard guard(0);
  for (unsigned round = 0; round < 5; ++round) {
    const std::uint64_t now = round * 2 * memory;
    EXPECT_TRUE(guard.first(random_of(1), now)) << round;
    EXPECT_FALSE(guard.first(random_of(1), now + 1));
  }
}

TEST(ReplayGuard, IsBoundedAndThenTakesNone) {
  ReplayGuard guard(0);
  unsigned taken = 0;
  for (unsigned number = 0; number < 100; ++number)
    taken += guard.first(random_of(number), 0) ? 1 : 0;
  EXPECT_EQ(taken, 8U);
  EXPECT_TRUE(guard.first(random_of(1, 1), 0)) << "another bucket has room";
  EXPECT_TRUE(guard.first(random_of(200), memory)) << "there is room again";
  EXPECT_FALSE(guard.first(random_of(0), memory)) << "what was taken is remembered still";
}

TEST(ReplayGuard, WithTicketsOfOthersItWaits) {
  ReplayGuard guard(1000, true);
  EXPECT_FALSE(guard.first(random_of(1), 1000));
  EXPECT_FALSE(guard.first(random_of(1), 1000 + memory - 1));
  EXPECT_TRUE(guard.first(random_of(1), 1000 + memory));
}

TEST(ReplayGuardThreads, OneOfAllRingsIsTheFirst) {
  ReplayGuard guard(0);
  constexpr unsigned numbers = 2000;
  std::atomic<unsigned> taken = 0;
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (unsigned number = 0; number < numbers; ++number) {
        Random random = random_of(number, static_cast<unsigned char>(number));
        random[17] = static_cast<unsigned char>(number >> 3);
        taken += guard.first(random, 0) ? 1U : 0U;
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(taken, numbers);
}

}  // namespace
}  // namespace ringside::tls
