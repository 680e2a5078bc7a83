// Endpoints, host patterns and address ranges as they are written in a configuration. Pure.
#pragma once

#include <string>
#include <string_view>

#include "ringside/config/snapshot.h"

#include "values.h"

namespace ringside::config {

// What an endpoint is for: listeners take literal addresses only and may leave the port to the
// kernel (0); upstream servers may be names and need a port.
enum class EndpointUse : std::uint8_t { listener, server };

Parsed<Endpoint> parse_endpoint(std::string_view text, EndpointUse use);

// "a.test", "*.a.test", "*", "10.0.0.1", "[::1]": lower-case, without a trailing dot.
Parsed<std::string> parse_host_pattern(std::string_view text);

// "10.0.0.0/8", "2001:db8::/32", a single address, or "unix".
Parsed<std::string> parse_range(std::string_view text);

}  // namespace ringside::config
