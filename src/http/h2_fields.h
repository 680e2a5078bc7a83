// Fields in the form in which nghttp2 takes them.
#pragma once

#include <nghttp2/nghttp2.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "ringside/base/arena.h"
#include "ringside/http/h2_requester.h"
#include "ringside/http/message.h"

namespace ringside::http::detail {

struct H2Fields {
  nghttp2_nv* items = nullptr;
  std::size_t count = 0;
};

// In `arena`, as is everything below. Null: no memory.
// The fields of an HTTP/1 head (H2Connection::send_head says which), behind ":status".
H2Fields* fields_of_head(base::Arena& arena, std::uint16_t status, std::span<char> text);
// Field lines as H2Requester::send_head takes them, behind those that stand for the line.
H2Fields* fields_of_request(base::Arena& arena, const H2RequestLine& line, std::span<char> text);
// Those that are not hop-by-hop.
H2Fields* fields_of_trailers(base::Arena& arena, const FieldList& trailers);

}  // namespace ringside::http::detail
