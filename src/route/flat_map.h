// A read-only hash map from text to an index: open addressing, one cache line a probe or two.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

namespace ringside::route {

// Eight bytes a step. It needs no seed: strangers choose what is looked up, never what is stored,
// so they cannot make a chain longer.
inline std::uint64_t hash_text(std::string_view text) {
  constexpr std::uint64_t multiplier = 0x9FB21C651E98DF25ULL;
  std::uint64_t hash = text.size() * multiplier;
  const char* at = text.data();
  std::size_t left = text.size();
  auto mix = [&](std::uint64_t word) {
    hash = (hash ^ word) * multiplier;
    hash ^= hash >> 32;
  };
  for (; left >= 8; at += 8, left -= 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    mix(word);
  }
  if (left != 0) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, left);
    mix(word);
  }
  return hash;
}

// The texts belong to somebody else (the Snapshot) and must outlive the map.
class FlatMap {
 public:
  // All keys differ: `insert` of a known key returns the index that it has.
  std::uint32_t insert(std::string_view key, std::uint32_t index) {
    if ((size_ + 1) * 2 > slots_.size()) grow();
    Slot& slot = slots_[place(slots_, key, hash_text(key))];
    if (slot.used) return slot.index;
    slot = {key, index, true};
    ++size_;
    return index;
  }

  std::optional<std::uint32_t> find(std::string_view key) const {
    if (slots_.empty()) return std::nullopt;
    const Slot& slot = slots_[place(slots_, key, hash_text(key))];
    if (!slot.used) return std::nullopt;
    return slot.index;
  }

  bool empty() const { return size_ == 0; }

 private:
  struct Slot {
    std::string_view key;
    std::uint32_t index = 0;
    bool used = false;
  };

  // Where the key is, or the free slot where it would go. At most half of the slots are used.
  static std::size_t place(const std::vector<Slot>& slots, std::string_view key,
                           std::uint64_t hash) {
    const std::size_t mask = slots.size() - 1;
    std::size_t at = hash & mask;
    while (slots[at].used && slots[at].key != key)
      at = (at + 1) & mask;
    return at;
  }

  void grow() {
    std::vector<Slot> larger(std::bit_ceil((size_ + 1) * 4));
    for (const Slot& slot : slots_) {
      if (slot.used) larger[place(larger, slot.key, hash_text(slot.key))] = slot;
    }
    slots_.swap(larger);
  }

  std::vector<Slot> slots_;
  std::size_t size_ = 0;
};

}  // namespace ringside::route
