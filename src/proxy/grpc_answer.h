// How a gRPC call is told of an error that is made here: a status of its own, in a response without
// messages ("Trailers-Only" of gRPC over HTTP/2).
#pragma once

#include <cstdint>
#include <string_view>

#include "ringside/base/arena.h"
#include "ringside/http/message.h"

namespace ringside::proxy {

// Whether its client reads such answers: gRPC over HTTP/2. (gRPC-Web is a protocol of its own.)
bool is_grpc(const http::RequestHead& head);

// grpc-status for what a client of HTTP would get with that status; in decimal.
std::string_view grpc_status_of(std::uint16_t http_status);

// A value of grpc-message: what is not printable ASCII, and "%", as %XX. nullptr data(): memory
// exhausted.
std::string_view grpc_message(std::string_view text, base::Arena& arena);

}  // namespace ringside::proxy
