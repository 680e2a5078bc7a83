// Keeps one kind of event from flooding the log.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

#include "ringside/base/logger.h"

namespace ringside::control {

// For each pair of event word and level: a burst, then one line a second. Lock-free; any thread.
// The algorithm is a leaky bucket kept as one number, the time at which the bucket would be empty.
class RateLimiter {
 public:
  static constexpr std::uint64_t interval_ns = 1'000'000'000;
  static constexpr std::uint64_t burst = 10;

  // Nothing: the line is to be left out, which was counted. Else how many lines of its kind were
  // left out since the last one.
  std::optional<std::uint32_t> admit(base::LogLevel level, std::string_view event,
                                     std::uint64_t monotonic_ns);

  // Calls `report(level, event, count)` for every kind that left lines out and has been quiet for
  // so long that its bucket is empty; with `all`, for every kind that left lines out.
  template <typename Report>
  void settle(std::uint64_t monotonic_ns, bool all, Report report) {
    for (Entry& entry : entries_) {
      if (!entry.named.load(std::memory_order_acquire)) continue;
      if (!all && entry.empty_at.load(std::memory_order_relaxed) > monotonic_ns) continue;
      if (const std::uint32_t count = entry.left_out.exchange(0, std::memory_order_relaxed)) {
        report(entry.level, std::string_view(entry.name.data(), entry.name_length), count);
      }
    }
  }

 private:
  struct Entry {
    std::atomic<std::uint64_t> key{0};  // 0: free
    std::atomic<std::uint64_t> empty_at{0};
    std::atomic<std::uint32_t> left_out{0};
    std::atomic<bool> named{false};  // the three below were written, by the thread that took `key`
    base::LogLevel level = base::LogLevel::info;
    std::uint8_t name_length = 0;
    std::array<char, 24> name{};
  };
  // Events are fixed words in the program, a few dozen of them; should they ever outgrow the table,
  // the rest share its last entry.
  static constexpr std::size_t entries_max = 128;

  Entry& entry_of(base::LogLevel level, std::string_view event);

  std::array<Entry, entries_max> entries_{};
};

}  // namespace ringside::control
