// The parts of a simulated machine that kernel, system calls and peers share.
#pragma once

#include <cstdint>

#include "faults.h"
#include "file.h"
#include "network.h"
#include "random.h"
#include "sim_clock.h"

namespace ringside::sim {

struct Core {
  explicit Core(std::uint64_t seed)
      : random(seed),
        faults(random.next()),
        network(Medium{.clock = clock, .faults = faults, .random = random.fork()}) {}
  // Events hold streams and descriptors hold sockets: both must go before the network does.
  ~Core() {
    files = FileTable{};
    clock.clear();
  }
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  Clock clock;
  Random random;
  Faults faults;
  Network network;
  FileTable files;
};

}  // namespace ringside::sim
