#include "ringside/ring/features.h"

namespace ringside::ring {

std::string describe(const Features& features) {
  auto word = [](bool yes) { return yes ? "yes" : "no"; };
  std::string out = "ring: ";
  out += features.kernel.empty() ? "unknown" : features.kernel;
  out += " defer=";
  out += word(features.defer_taskrun);
  out += " multishot=";
  out += word(features.multishot_receive && features.multishot_accept);
  out += " bundles=";
  out += word(features.bundles);
  out += " incremental=";
  out += word(features.incremental);
  out += " zc=";
  out += word(features.send_zero_copy);
  out += " msg=";
  out += word(features.message_ring);
  return out;
}

}  // namespace ringside::ring
