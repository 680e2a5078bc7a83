#include "rate_limiter.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace ringside::control {
namespace {

using base::LogLevel;
constexpr std::uint64_t second = RateLimiter::interval_ns;
constexpr std::uint64_t start = 1000 * second;

TEST(RateLimiter, LetsABurstThroughThenOneASecond) {
  RateLimiter limiter;
  for (unsigned i = 0; i < RateLimiter::burst; ++i) {
    EXPECT_EQ(limiter.admit(LogLevel::warn, "accept", start), 0U) << i;
  }
  EXPECT_FALSE(limiter.admit(LogLevel::warn, "accept", start));
  EXPECT_FALSE(limiter.admit(LogLevel::warn, "accept", start + second - 1));
  EXPECT_EQ(limiter.admit(LogLevel::warn, "accept", start + second), 2U);
  EXPECT_FALSE(limiter.admit(LogLevel::warn, "accept", start + second));
  EXPECT_EQ(limiter.admit(LogLevel::warn, "accept", start + 2 * second), 1U);
}

TEST(RateLimiter, FillsUpAgainWhenQuiet) {
  RateLimiter limiter;
  while (limiter.admit(LogLevel::warn, "accept", start)) {
  }
  const std::uint64_t later = start + 100 * second;
  unsigned admitted = 0;
  while (limiter.admit(LogLevel::warn, "accept", later))
    ++admitted;
  EXPECT_EQ(admitted, RateLimiter::burst);
}

TEST(RateLimiter, KeepsEventsAndLevelsApart) {
  RateLimiter limiter;
  while (limiter.admit(LogLevel::warn, "accept", start)) {
  }
  EXPECT_EQ(limiter.admit(LogLevel::warn, "upstream", start), 0U);
  EXPECT_EQ(limiter.admit(LogLevel::error, "accept", start), 0U);
}

TEST(RateLimiter, AccountsForWhatWasLeftOut) {
  RateLimiter limiter;
  for (unsigned i = 0; i < RateLimiter::burst + 5; ++i) {
    limiter.admit(LogLevel::error, "accept", start);
  }
  std::vector<std::string> reports;
  const auto report = [&](LogLevel level, std::string_view event, std::uint32_t count) {
    reports.push_back(std::to_string(static_cast<int>(level)) + std::string(event) +
                      std::to_string(count));
  };
  limiter.settle(start + second, false, report);  // not quiet for long enough
  EXPECT_TRUE(reports.empty());
  limiter.settle(start + second, true, report);
  EXPECT_EQ(reports, std::vector<std::string>{"3accept5"});
  limiter.settle(start + 100 * second, false, report);  // told already
  EXPECT_EQ(reports.size(), 1U);

  for (unsigned i = 0; i < RateLimiter::burst; ++i) {
    limiter.admit(LogLevel::error, "accept", start + second);
  }
  limiter.settle(start + 100 * second, false, report);
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_EQ(reports[1], "3accept9");
}

TEST(RateLimiter, SharesOneEntryWhenTheTableIsFull) {
  RateLimiter limiter;
  for (int i = 0; i < 1000; ++i) {
    limiter.admit(LogLevel::info, "event-" + std::to_string(i), start);
  }
  EXPECT_FALSE(limiter.admit(LogLevel::info, "one-more", start));
}

TEST(RateLimiter, CountsExactlyWithManyThreads) {
  RateLimiter limiter;
  constexpr unsigned threads = 4;
  constexpr unsigned tries = 2000;
  std::atomic<std::uint64_t> admitted{0};
  std::atomic<std::uint64_t> told{0};
  std::vector<std::thread> group;
  for (unsigned i = 0; i < threads; ++i) {
    group.emplace_back([&] {
      for (unsigned n = 0; n < tries; ++n) {
        if (const auto left_out =
                limiter.admit(LogLevel::warn, "accept", start + n * second / 100)) {
          admitted += 1;
          told += *left_out;
        }
      }
    });
  }
  for (std::thread& thread : group)
    thread.join();
  limiter.settle(start, true,
                 [&](LogLevel, std::string_view, std::uint32_t count) { told += count; });
  EXPECT_EQ(admitted + told, threads * tries);
  EXPECT_LE(admitted, RateLimiter::burst + tries / 100);
}

}  // namespace
}  // namespace ringside::control
