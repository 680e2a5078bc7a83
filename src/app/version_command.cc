#include <sys/utsname.h>

#include <cstdio>

#include "ringside/ring/kernel_port.h"
#include "ringside/ring/ring.h"

#include "commands.h"

namespace ringside::app {

int version_command(const Arguments& arguments) {
  std::printf("ringside %s\n", RINGSIDE_VERSION);
  if (!arguments.verbose) return exit_ok;

  std::printf("compiler %s\n", __VERSION__);
  std::printf("libraries %s\n", RINGSIDE_LIBRARIES);
  utsname system{};
  if (::uname(&system) == 0) std::printf("kernel %s %s\n", system.release, system.machine);
  ring::RingOptions options;
  options.entries = 8;
  options.completion_entries = 32;
  options.owners_max = 64;
  const auto ring = ring::Ring::open(ring::real_kernel(), options);
  std::printf("%s\n", ring ? ring::describe((*ring)->features()).c_str()
                           : ring::Ring::explain(ring.error()).c_str());
  return exit_ok;
}

}  // namespace ringside::app
