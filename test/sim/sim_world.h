// A whole simulated machine with its network. The same seed and the same calls give the same run.
#pragma once

#include <cstdint>

#include "core.h"
#include "sim_kernel.h"
#include "sim_sys.h"

namespace ringside::sim {

class SimWorld {
 public:
  explicit SimWorld(std::uint64_t seed, const KernelAbilities& abilities = {})
      : core_(seed), kernel_(core_, abilities), sys_(core_) {}

  ring::KernelPort& kernel() { return kernel_; }
  SimKernel& sim_kernel() { return kernel_; }
  net::SysPort& sys() { return sys_; }
  Core& core() { return core_; }
  Clock& clock() { return core_.clock; }
  const Clock& clock() const { return core_.clock; }
  Faults& faults() { return core_.faults; }
  Network& network() { return core_.network; }
  FileTable& files() { return core_.files; }

 private:
  Core core_;
  SimKernel kernel_;
  SimSys sys_;
};

}  // namespace ringside::sim
