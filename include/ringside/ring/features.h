// What a kernel's io_uring offers.
#pragma once

#include <string>

namespace ringside::ring {

// Found by feature bits and by trying, never by version.
struct Features {
  std::string kernel;          // "6.18", for the log only
  bool defer_taskrun = false;  // else cooperative, else none
  bool coop_taskrun = false;
  bool single_issuer = false;
  bool multishot_accept = false;
  bool multishot_receive = false;
  bool buffer_ring = false;
  bool bundles = false;      // receive bundles, in order (6.10)
  bool incremental = false;  // incremental buffer consumption (6.12)
  bool send_zero_copy = false;
  bool zero_copy_report = false;  // a notification can say that the bytes were copied after all
  bool message_ring = false;      // MSG_RING wakes a ring of the kind we set up, on another thread
  int trial_errno = 0;  // what kept us from trying (no memory, no descriptors); 0: all was tried
};

// "ring: 6.18 defer=yes multishot=yes bundles=yes zc=yes msg=yes": the start-up line.
std::string describe(const Features& features);

}  // namespace ringside::ring
