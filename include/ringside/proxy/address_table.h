// How many client connections each address has, over all rings of the process.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "ringside/net/address.h"

namespace ringside::proxy {

// Whom a connection is counted for: an IPv4 address, or the /64 of an IPv6 one, since whoever has
// an IPv6 address has 2^64 of them as a rule.
struct AddressKey {
  enum class Kind : std::uint32_t { none, v4, v6 };
  std::uint64_t bits = 0;
  Kind kind = Kind::none;
  friend bool operator==(const AddressKey&, const AddressKey&) = default;
  // IPv4 inside IPv6 (::ffff:10.0.0.1) is the IPv4 address. Nothing for unix sockets.
  static std::optional<AddressKey> of(const net::Address& address);
};

// Owner: whoever starts the rings; it outlives them. Every call may come from any thread: what it
// locks is one part of many, for as long as a short search takes. An address is in the table as
// long as it has a connection, so there are never more of them than connections; memory grows to
// the most that were there at once, and stays.
class AddressTable {
 public:
  // An attacker who does not know the seed cannot choose addresses that fall together.
  explicit AddressTable(std::uint64_t seed) : seed_(seed) {}
  AddressTable(const AddressTable&) = delete;
  AddressTable& operator=(const AddressTable&) = delete;

  // Counts one connection more. False, and nothing is counted: the address has `most` already, or
  // memory ran out.
  bool enter(const AddressKey& key, std::uint32_t most);
  // Takes back one that was counted.
  void leave(const AddressKey& key);

  std::uint32_t connections(const AddressKey& key) const;
  std::size_t addresses() const;
  // What one address takes at most, with the free places that keep searches short.
  static constexpr std::size_t bytes_each_max = 64;

 private:
  struct Slot {
    std::uint64_t bits;
    AddressKey::Kind kind;  // none: free
    std::uint32_t connections;
  };
  // Open addressing with linear probing. Parts are on cache lines of their own, since rings write
  // them all the time.
  struct alignas(64) Part {
    mutable std::mutex mutex;  // guards the rest
    std::unique_ptr<Slot[]> slots;
    std::size_t capacity = 0;  // a power of two, or 0
    std::size_t used = 0;
  };
  static constexpr unsigned part_bits = 6;

  std::uint64_t hash(const AddressKey& key) const;
  static std::size_t place_of(std::uint64_t hash, std::size_t capacity);
  static std::size_t find(const Part& part, const AddressKey& key, std::uint64_t hash);
  bool grow(Part& part);
  void erase(Part& part, std::size_t at);

  const std::uint64_t seed_;
  std::array<Part, std::size_t{1} << part_bits> parts_;
};

// One connection that is counted in a table, or none; what goes away takes the count back.
class AddressPlace {
 public:
  AddressPlace() = default;
  AddressPlace(AddressTable& table, const AddressKey& key) : table_(&table), key_(key) {}
  AddressPlace(AddressPlace&& other) noexcept
      : table_(std::exchange(other.table_, nullptr)), key_(other.key_) {}
  AddressPlace& operator=(AddressPlace&& other) noexcept {
    std::swap(table_, other.table_);
    std::swap(key_, other.key_);
    return *this;
  }
  ~AddressPlace() {
    if (table_ != nullptr) table_->leave(key_);
  }

 private:
  AddressTable* table_ = nullptr;
  AddressKey key_;
};

}  // namespace ringside::proxy
