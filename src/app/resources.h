// What the process may take from the system, and how much of it this configuration wants.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ringside/config/snapshot.h"

namespace ringside::app {

constexpr std::uint64_t no_limit = ~std::uint64_t{0};

struct Limits {
  std::uint64_t descriptors = no_limit;       // RLIMIT_NOFILE, soft
  std::uint64_t descriptors_hard = no_limit;  // what it can be raised to
  std::uint64_t locked_bytes = no_limit;      // RLIMIT_MEMLOCK, soft
};
Limits current_limits();

// Raises the soft RLIMIT_NOFILE to the hard one.
void raise_descriptor_limit();

struct Plan {
  unsigned rings = 1;
  std::uint32_t connections_max = 1;  // client connections of one ring
  std::uint64_t descriptors = 0;      // the most that are open at once, by this plan
  std::uint64_t locked_bytes = 0;     // of all rings, as RLIMIT_MEMLOCK counts
  std::vector<std::string> advice;    // sentences: where a limit is too low, and what to do
};

// Pure. `limits.descriptors` should be what it will be at run time. A proxied client needs two
// descriptors, its own and one to a server, an idle one only its own; what the process needs
// besides is set apart first.
Plan make_plan(const config::Snapshot& snapshot, const Limits& limits, unsigned rings);

}  // namespace ringside::app
