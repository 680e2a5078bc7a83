// How many rings `rings = "auto"` means.
#pragma once

#include <string>

namespace ringside::app {

// Processors that this process may use, from its affinity mask; at least 1.
unsigned affinity_cpus();

// Processors' worth of time that the control group of this process is granted, rounded up; 0 when
// there is no quota. Both kinds of hierarchy are read, and every level up to the root, since the
// tightest one counts. `root` is put before /proc and /sys (tests give a made-up tree).
unsigned quota_cpus(const std::string& root = "");

// The smaller of both, at least 1.
unsigned auto_rings();

}  // namespace ringside::app
