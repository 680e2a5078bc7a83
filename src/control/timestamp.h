// Times of log lines, in UTC.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace ringside::control {

// Formats times that mostly lie in the same second as the one before. Not thread-safe.
class Timestamp {
 public:
  // "2026-11-30T12:00:00.123Z" (RFC 3339).
  void append_rfc3339(std::string& out, std::uint64_t realtime_ns);
  // "30/Nov/2026:12:00:00 +0000" (the `combined` format).
  void append_combined(std::string& out, std::uint64_t realtime_ns);

 private:
  void refresh(std::uint64_t seconds);

  std::uint64_t seconds_ = ~std::uint64_t{0};
  std::array<char, 19> rfc3339_{};  // up to the seconds
  std::array<char, 26> combined_{};
};

}  // namespace ringside::control
