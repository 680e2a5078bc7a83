// The one source of chance in a simulation.
#pragma once

#include <cstdint>

namespace ringside::sim {

// A small counter-based generator: the same seed gives the same numbers on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  // 0 .. bound-1; bound > 0. The bias is far below what a simulation could notice.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  // low .. high, both included.
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + below(high - low + 1);
  }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  bool coin() { return (next() & 1) != 0; }
  template <typename T, std::uint64_t N>
  const T& pick(const T (&items)[N]) {
    return items[below(N)];
  }
  // A generator of its own for a part of the world, so that a change in one part does not reshuffle
  // the others.
  Random fork() { return Random(next()); }

 private:
  std::uint64_t state_;
};

}  // namespace ringside::sim
