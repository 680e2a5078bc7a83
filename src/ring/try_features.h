// What only trying tells about the real kernel's io_uring.
#pragma once

#include <string>

#include "ringside/ring/kernel_port.h"

namespace ringside::ring {

struct TriedFeatures {
  int error = 0;  // an errno: not all could be tried
  std::string kernel;
  bool multishot_receive = false;
  bool bundles = false;
  bool incremental = false;
  bool zero_copy_report = false;
  bool message_ring = false;
};

// Makes throw-away rings with `setup_flags` (two at a time) and a pair of sockets; under 2 ms.
TriedFeatures try_real_kernel(KernelPort& kernel, unsigned setup_flags);

}  // namespace ringside::ring
