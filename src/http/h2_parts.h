// What H2Shared has for nghttp2.
#pragma once

#include <nghttp2/nghttp2.h>

#include "ringside/http/h2_memory.h"

namespace ringside::http::detail {

// Of the sessions with clients, and of those with servers. Null: there was no memory.
struct H2Parts {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_option* option = nullptr;
  nghttp2_session_callbacks* requester_callbacks = nullptr;
};

nghttp2_mem memory_from(H2Memory& memory);

}  // namespace ringside::http::detail
