// How many bodies each mover has moved, over all rings.
#pragma once

#include <cstdint>
#include <string>

#include "ringside/net/piece.h"
#include "ringside/proxy/worker.h"

namespace ringside::app {

// By net::Mover. Not thread-safe.
struct MovedBodies {
  std::uint64_t bodies[net::movers] = {};
  std::uint64_t bytes[net::movers] = {};

  void add(const proxy::WorkerCounters& counters);
};

// "copy=3 (1.50 KiB) splice=1 (64 MiB)"; "none".
std::string to_string(const MovedBodies& moved);

}  // namespace ringside::app
