// What became of the TLS connections, over all rings.
#pragma once

#include <cstdint>
#include <string>

#include "ringside/tls/counters.h"

namespace ringside::app {

// Not thread-safe; what it adds up may be written meanwhile.
struct TlsCounts {
  struct Role {
    std::uint64_t full = 0;
    std::uint64_t resumed = 0;
    std::uint64_t failed = 0;
    std::uint64_t early_data = 0;
    std::uint64_t floods = 0;
    std::uint64_t kernel_sends = 0;
    std::uint64_t kernel_receives = 0;
    std::uint64_t user_space[tls::user_space_reasons] = {};

    void add(const tls::RoleCounters& counters);
    bool none() const { return full + resumed + failed == 0; }
  };
  Role clients;
  Role servers;

  void add(const tls::Counters& counters);
};

// "clients: full=2 resumed=1 failed=0 kernel_sends=2 kernel_receives=1 user_space=2 (cipher=1
// ended=1)", with early_data=1 and floods=1 behind failed where there were any, and the same of
// servers behind "; ". Who there were none of is left out.
std::string to_string(const TlsCounts& counts);

}  // namespace ringside::app
