#include "timestamp.h"

#include <ctime>

namespace ringside::control {
namespace {

constexpr std::uint64_t ns_per_second = 1'000'000'000;
constexpr std::uint64_t ns_per_ms = 1'000'000;

void put(char* out, unsigned value, unsigned width) {
  for (unsigned i = width; i-- > 0; value /= 10)
    out[i] = static_cast<char>('0' + value % 10);
}

}  // namespace

void Timestamp::refresh(std::uint64_t seconds) {
  if (seconds == seconds_) return;
  seconds_ = seconds;
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  const auto year = static_cast<unsigned>(parts.tm_year + 1900);
  const auto day = static_cast<unsigned>(parts.tm_mday);

  char* out = rfc3339_.data();
  __builtin_memcpy(out, "0000-00-00T00:00:00", rfc3339_.size());
  put(out, year, 4);
  put(out + 5, static_cast<unsigned>(parts.tm_mon + 1), 2);
  put(out + 8, day, 2);
  put(out + 11, static_cast<unsigned>(parts.tm_hour), 2);
  put(out + 14, static_cast<unsigned>(parts.tm_min), 2);
  put(out + 17, static_cast<unsigned>(parts.tm_sec), 2);

  constexpr char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
  char* line = combined_.data();
  __builtin_memcpy(line, "00/Mon/0000:00:00:00 +0000", combined_.size());
  put(line, day, 2);
  __builtin_memcpy(line + 3, months + 3 * parts.tm_mon, 3);
  put(line + 7, year, 4);
  __builtin_memcpy(line + 12, out + 11, 8);
}

void Timestamp::append_rfc3339(std::string& out, std::uint64_t realtime_ns) {
  refresh(realtime_ns / ns_per_second);
  out.append(rfc3339_.data(), rfc3339_.size());
  char fraction[] = ".000Z";
  put(fraction + 1, static_cast<unsigned>(realtime_ns % ns_per_second / ns_per_ms), 3);
  out.append(fraction, sizeof fraction - 1);
}

void Timestamp::append_combined(std::string& out, std::uint64_t realtime_ns) {
  refresh(realtime_ns / ns_per_second);
  out.append(combined_.data(), combined_.size());
}

}  // namespace ringside::control
