#include "rate_limiter.h"

#include <algorithm>

namespace ringside::control {
namespace {

// FNV-1a; never 0.
std::uint64_t hash(base::LogLevel level, std::string_view event) {
  std::uint64_t value = 0xcbf29ce484222325 ^ static_cast<std::uint64_t>(level);
  for (const char c : event) {
    value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return value | 1;
}

}  // namespace

RateLimiter::Entry& RateLimiter::entry_of(base::LogLevel level, std::string_view event) {
  const std::uint64_t key = hash(level, event);
  for (std::size_t step = 0; step < entries_max; ++step) {
    Entry& entry = entries_[(key + step) % entries_max];
    std::uint64_t found = entry.key.load(std::memory_order_acquire);
    if (found == key) return entry;
    if (found != 0) continue;
    if (entry.key.compare_exchange_strong(found, key, std::memory_order_acq_rel)) {
      entry.level = level;
      entry.name_length = static_cast<std::uint8_t>(std::min(event.size(), entry.name.size()));
      std::copy_n(event.data(), entry.name_length, entry.name.data());
      entry.named.store(true, std::memory_order_release);
      return entry;
    }
    if (found == key) return entry;  // another thread took the place for the same event
  }
  return entries_[entries_max - 1];
}

std::optional<std::uint32_t> RateLimiter::admit(base::LogLevel level, std::string_view event,
                                                std::uint64_t monotonic_ns) {
  Entry& entry = entry_of(level, event);
  std::uint64_t empty_at = entry.empty_at.load(std::memory_order_relaxed);
  std::uint64_t next;
  do {
    if (empty_at > monotonic_ns + (burst - 1) * interval_ns) {
      entry.left_out.fetch_add(1, std::memory_order_relaxed);
      return std::nullopt;
    }
    next = std::max(empty_at, monotonic_ns) + interval_ns;
  } while (!entry.empty_at.compare_exchange_weak(empty_at, next, std::memory_order_relaxed));
  return entry.left_out.exchange(0, std::memory_order_relaxed);
}

}  // namespace ringside::control
