// Paths as routes and prefixes name them, brought into the form that requests are matched in. Pure.
#pragma once

#include <string>
#include <string_view>

#include "values.h"

namespace ringside::config {

// "/x" or "/x/*". Normalised as requests are (RFC 3986 §6.2.2): unreserved characters decoded, hex
// digits in upper case, dot segments removed; bytes that no client sends raw (blanks, non-ASCII)
// are percent-encoded.
Parsed<std::string> parse_route_path(std::string_view text);

// A path for strip_prefix and add_prefix: as above, without "*" and without a slash at its end.
Parsed<std::string> parse_prefix(std::string_view text);

// True for "/x/*".
bool is_prefix_path(std::string_view path);

// Whether a request whose normalised path is `path` can be taken by the route path `pattern`;
// "/x/*" takes "/x" and all below it.
bool path_matches(std::string_view pattern, std::string_view path);

}  // namespace ringside::config
