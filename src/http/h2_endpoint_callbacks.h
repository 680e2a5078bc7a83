// What nghttp2 calls at both ends of a connection, as far as it is the same.
#pragma once

#include <nghttp2/nghttp2.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ringside/http/h2_connection.h"
#include "ringside/http/h2_endpoint.h"

#include "h2_head.h"

namespace ringside::http::detail {

constexpr std::size_t h2_frame_header_bytes = 9;

inline std::string_view text(const std::uint8_t* data, std::size_t bytes) {
  return {reinterpret_cast<const char*>(data), bytes};
}

inline bool ends_stream(const nghttp2_frame_hd& header) {
  return (header.flags & NGHTTP2_FLAG_END_STREAM) != 0;
}

// nghttp2 keeps a stream as its H2StreamState.
inline H2StreamState* state_of(nghttp2_session* session, std::int32_t id) {
  return static_cast<H2StreamState*>(nghttp2_session_get_stream_user_data(session, id));
}

struct H2EndpointCallbacks {
  // Null: there is no memory.
  static bool begin_block(H2StreamState& stream, const HeadLimits& limits, Section section);
  // Of on_header, whose result it is.
  static int take_field(H2Endpoint& of, const HeadLimits& limits, H2StreamState* stream,
                        std::string_view name, std::string_view value);
  // Of a read callback of nghttp2, whose result it is: `ready` of the body goes out, of
  // `bytes_max`, and what ends it.
  static ssize_t read_body(nghttp2_session* session, H2StreamState& stream,
                           const H2Handler::Ready& ready, std::size_t bytes_max,
                           std::uint32_t* flags);
  // A GOAWAY was sent.
  static void note_end(H2Endpoint& of, std::uint32_t code);

 private:
  static bool submit_trailers(nghttp2_session* session, H2StreamState& stream);
};

}  // namespace ringside::http::detail
