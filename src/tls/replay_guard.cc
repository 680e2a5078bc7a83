#include "ringside/tls/replay_guard.h"

#include <algorithm>
#include <cstring>

namespace ringside::tls {

ReplayGuard::ReplayGuard(std::uint64_t now_ms, bool others)
    : from_ms_(others ? now_ms + memory_ms : now_ms),
      parts_(std::make_unique<std::array<Part, parts>>()) {
  for (Part& part : *parts_)
    part.began_ms = now_ms;
}

// What is in the older generation has been there for memory_ms when that is given up.
void ReplayGuard::age(Part& part, std::uint64_t now_ms) {
  const std::uint64_t passed = now_ms < part.began_ms ? 0 : now_ms - part.began_ms;
  if (passed < memory_ms) return;
  part.newer ^= 1;
  part.generations[part.newer].fill({});
  if (passed >= 2 * memory_ms) part.generations[part.newer ^ 1].fill({});
  part.began_ms = now_ms;
}

bool ReplayGuard::first(std::span<const unsigned char, random_bytes> random, std::uint64_t now_ms) {
  if (now_ms < from_ms_) return false;
  Key key;
  std::memcpy(&key, random.data(), sizeof key);
  if (key == Key{}) return false;
  const std::size_t bucket = random[16] % buckets;
  Part& part = (*parts_)[random[17] % parts];
  const std::lock_guard lock(part.mutex);
  age(part, now_ms);
  const Bucket& older = part.generations[part.newer ^ 1][bucket];
  if (std::ranges::find(older, key) != older.end()) return false;
  for (Key& place : part.generations[part.newer][bucket]) {
    if (place == key) return false;
    if (place != Key{}) continue;
    place = key;
    return true;
  }
  return false;
}

}  // namespace ringside::tls
