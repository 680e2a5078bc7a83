// Early data is taken once (RFC 8446 §8.2): who has sent some lately, on all rings.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

namespace ringside::tls {

// Remembers the random numbers of ClientHellos for as long as they would pass for fresh. Bounded:
// who finds no room is told to do without early data, which costs a round trip.
// Owner: shared by the contexts of an entry on all rings. Threads: any; a lock is held for the look
// at one bucket.
class ReplayGuard {
 public:
  // OpenSSL takes a ticket for fresh from one second before to nine seconds after the age that its
  // client states, and counts in whole seconds.
  static constexpr std::uint64_t memory_ms = 12'000;
  static constexpr std::size_t random_bytes = 32;

  // Times are in milliseconds of any steady clock. `others`: tickets may be from before this guard,
  // so that what came then is not known; nothing is first until memory_ms are over.
  explicit ReplayGuard(std::uint64_t now_ms, bool others = false);

  // Whether it has not been seen yet, and is remembered now. To be asked when the ClientHello has
  // been found genuine.
  bool first(std::span<const unsigned char, random_bytes> random, std::uint64_t now_ms);

 private:
  struct Key {
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    bool operator==(const Key&) const = default;
  };
  static constexpr std::size_t parts = 64;
  static constexpr std::size_t buckets = 64;
  static constexpr std::size_t bucket_keys = 8;
  using Bucket = std::array<Key, bucket_keys>;  // zero: free
  using Generation = std::array<Bucket, buckets>;
  struct Part {
    std::mutex mutex;
    std::uint64_t began_ms = 0;  // of the newer generation
    unsigned newer = 0;
    std::array<Generation, 2> generations{};
  };

  static void age(Part& part, std::uint64_t now_ms);

  std::uint64_t from_ms_;
  std::unique_ptr<std::array<Part, parts>> parts_;
};

}  // namespace ringside::tls
