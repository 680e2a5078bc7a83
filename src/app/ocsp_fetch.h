// One OCSP response, fetched over the network.
#pragma once

#include <chrono>
#include <expected>
#include <string>

#include "ringside/tls/ocsp.h"

#include "name_resolver.h"

namespace ringside::app {

// The response, or why there is none. Blocks for at most `limit`, name resolution included, and
// returns soon after `cancel` (a descriptor) has become readable. No proxy is asked, whatever the
// environment says.
std::expected<tls::Der, std::string> fetch_ocsp(const tls::OcspQuestion& question, int cancel,
                                                std::chrono::milliseconds limit,
                                                const Resolve& resolve = resolve_by_system);

}  // namespace ringside::app
