// Request targets in their four forms (RFC 9112 §3.2).
#pragma once

#include <string_view>

#include "ringside/http/message.h"

namespace ringside::http::detail {

// Sets form, authority, host, path and query of `head` from head.target, which holds only bytes of
// `target_bytes` and is not empty; head.method must be set. Returns what is wrong; "" when nothing
// is.
std::string_view split_target(RequestHead& head);

}  // namespace ringside::http::detail
