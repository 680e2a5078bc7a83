#include "ringside/proxy/address_table.h"

#include <netinet/in.h>

#include <cassert>
#include <cstring>
#include <new>

namespace ringside::proxy {

namespace {
constexpr std::size_t first_capacity = 16;

// Every bit of the input reaches every bit of the result: a product carries bits up, a shift down.
std::uint64_t mix(std::uint64_t value) {
  constexpr std::uint64_t multiplier = 0x9e3779b97f4a7c15ULL;  // 2^64 by the golden ratio; odd
  value = (value ^ (value >> 32)) * multiplier;
  value = (value ^ (value >> 29)) * multiplier;
  return value ^ (value >> 32);
}
}  // namespace

std::optional<AddressKey> AddressKey::of(const net::Address& address) {
  AddressKey key;
  if (address.family() == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address.raw());
    key.bits = v4->sin_addr.s_addr;
    key.kind = Kind::v4;
    return key;
  }
  if (address.family() != AF_INET6) return std::nullopt;
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6*>(address.raw())->sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&v6)) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, v6.s6_addr + 12, sizeof bits);
    key.bits = bits;
    key.kind = Kind::v4;
    return key;
  }
  std::memcpy(&key.bits, v6.s6_addr, sizeof key.bits);
  key.kind = Kind::v6;
  return key;
}

std::uint64_t AddressTable::hash(const AddressKey& key) const {
  return mix(mix(key.bits ^ seed_) + static_cast<std::uint64_t>(key.kind) + seed_);
}

// The high bits choose the part, so the low ones are still even inside of it.
std::size_t AddressTable::place_of(std::uint64_t hash, std::size_t capacity) {
  return static_cast<std::size_t>(hash) & (capacity - 1);
}

// Where the key is, or the free place where its search ended. The part is never full.
std::size_t AddressTable::find(const Part& part, const AddressKey& key, std::uint64_t hash) {
  std::size_t at = place_of(hash, part.capacity);
  while (part.slots[at].kind != AddressKey::Kind::none &&
         (part.slots[at].bits != key.bits || part.slots[at].kind != key.kind)) {
    at = (at + 1) & (part.capacity - 1);
  }
  return at;
}

bool AddressTable::grow(Part& part) {
  const std::size_t capacity = part.capacity == 0 ? first_capacity : part.capacity * 2;
  std::unique_ptr<Slot[]> slots(new (std::nothrow) Slot[capacity]());
  if (slots == nullptr) return false;
  part.slots.swap(slots);
  const std::size_t old_capacity = std::exchange(part.capacity, capacity);
  for (std::size_t i = 0; i < old_capacity; ++i) {
    if (slots[i].kind == AddressKey::Kind::none) continue;
    const AddressKey key{slots[i].bits, slots[i].kind};
    part.slots[find(part, key, hash(key))] = slots[i];
  }
  return true;
}

bool AddressTable::enter(const AddressKey& key, std::uint32_t most) {
  const std::uint64_t hashed = hash(key);
  Part& part = parts_[hashed >> (64 - part_bits)];
  const std::lock_guard lock(part.mutex);
  // Three quarters full at most: beyond that searches become long.
  if (part.used * 4 >= part.capacity * 3 && !grow(part)) return false;
  Slot& slot = part.slots[find(part, key, hashed)];
  if (slot.kind == AddressKey::Kind::none) {
    if (most == 0) return false;
    slot = {key.bits, key.kind, 1};
    ++part.used;
    return true;
  }
  if (slot.connections >= most) return false;
  ++slot.connections;
  return true;
}

void AddressTable::leave(const AddressKey& key) {
  const std::uint64_t hashed = hash(key);
  Part& part = parts_[hashed >> (64 - part_bits)];
  const std::lock_guard lock(part.mutex);
  if (part.capacity == 0) return;
  const std::size_t at = find(part, key, hashed);
  assert(part.slots[at].kind != AddressKey::Kind::none && "an address that was never counted");
  if (part.slots[at].kind == AddressKey::Kind::none) return;
  if (--part.slots[at].connections == 0) erase(part, at);
}

// Moves up those behind the gap whose search passes it, so that no search ends there too early.
void AddressTable::erase(Part& part, std::size_t at) {
  const std::size_t mask = part.capacity - 1;
  std::size_t gap = at;
  for (std::size_t next = (gap + 1) & mask; part.slots[next].kind != AddressKey::Kind::none;
       next = (next + 1) & mask) {
    const Slot& slot = part.slots[next];
    const std::size_t home = place_of(hash({slot.bits, slot.kind}), part.capacity);
    if (((next - home) & mask) < ((next - gap) & mask)) continue;  // begins behind the gap
    part.slots[gap] = slot;
    gap = next;
  }
  part.slots[gap] = {};
  --part.used;
}

std::uint32_t AddressTable::connections(const AddressKey& key) const {
  const std::uint64_t hashed = hash(key);
  const Part& part = parts_[hashed >> (64 - part_bits)];
  const std::lock_guard lock(part.mutex);
  return part.capacity == 0 ? 0 : part.slots[find(part, key, hashed)].connections;
}

std::size_t AddressTable::addresses() const {
  std::size_t sum = 0;
  for (const Part& part : parts_) {
    const std::lock_guard lock(part.mutex);
    sum += part.used;
  }
  return sum;
}

}  // namespace ringside::proxy
