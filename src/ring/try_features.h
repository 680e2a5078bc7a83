// What only trying tells about the real kernel's io_uring.
#pragma once

#include <string>

#include "ringside/ring/kernel_port.h"

namespace ringside::ring {

struct TriedFeatures {
  std::string kernel;
  bool multishot_receive = false;
  bool bundles = false;
  bool incremental = false;
  bool zero_copy_report = false;
  bool message_ring = false;
};

// Makes two throw-away rings with `setup_flags` and a pair of sockets; under 2 ms. What cannot be
// tried (no descriptors left, ...) counts as absent.
TriedFeatures try_real_kernel(KernelPort& kernel, unsigned setup_flags);

}  // namespace ringside::ring
