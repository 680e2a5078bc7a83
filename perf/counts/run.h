// The whole proxy under one scenario's traffic.
#pragma once

#include <cstdint>
#include <string>

#include "scenarios.h"

namespace ringside::budget {

// Totals of the measured rounds.
struct Counts {
  std::string error;  // empty: all is well
  std::uint64_t requests = 0;
  std::uint64_t allocations = 0;
  std::uint64_t enters = 0;
  std::uint64_t submissions = 0;
  std::uint64_t completions = 0;
};

// Before the `rounds` that are measured come the scenario's warm rounds: pools fill, buffers of
// every kind grow.
Counts run(const Scenario& scenario, unsigned rounds);

}  // namespace ringside::budget
