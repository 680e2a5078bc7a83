// Request targets: hosts, ports, and the path that routes are matched on (RFC 3986, RFC 9110 §4.2).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "ringside/base/arena.h"

namespace ringside::http {

struct HostPort {
  std::string_view host;  // IPv6 literals with their brackets
  std::optional<std::uint16_t> port;
};

// Splits and validates "host[:port]" strictly (no userinfo, no empty port with garbage, valid IPv6
// literal characters, no bytes outside reg-name). An empty host is refused.
std::optional<HostPort> parse_authority(std::string_view authority);

// The form that routes are matched on: percent-encoded unreserved characters decoded, hex digits in
// upper case, dot segments removed (RFC 3986 §6.2.2), empty segments kept ("//x" stays "//x"). %2F
// and %5C are kept encoded and "\" is an ordinary byte, so that nothing becomes a separator that
// was none. Returns `path` itself when it is already normal (the usual case: one scan, nothing
// allocated). nullopt: malformed percent-encoding or %00; the answer is 400. A view with null
// data(): memory exhausted. A path that climbs above the root ("/../x") is normalised as RFC 3986
// says
// ("/x"). In what does not begin with "/" (as "*") dot segments have no meaning and stay.
std::optional<std::string_view> normalise_path(std::string_view path, base::Arena& arena);

// Lower-case, without a trailing dot. Returns `host` itself when nothing changes. nullptr data():
// memory exhausted.
std::string_view normalise_host(std::string_view host, base::Arena& arena);

}  // namespace ringside::http
