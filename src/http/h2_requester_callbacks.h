// What nghttp2 calls on a connection to a server.
#pragma once

#include <nghttp2/nghttp2.h>

#include "ringside/http/h2_requester.h"

#include "h2_frame_walk.h"

namespace ringside::http::detail {

// What is looked after beside nghttp2.
struct H2RequesterChecks {
  H2FrameWalk walk{0};
};

// `user` is the H2Requester in all of them.
struct H2RequesterCallbacks {
  static void set(nghttp2_session_callbacks* callbacks);
  static nghttp2_data_provider body();

 private:
  static int on_begin_headers(nghttp2_session* session, const nghttp2_frame* frame, void* user);
  static int on_header(nghttp2_session* session, const nghttp2_frame* frame,
                       const std::uint8_t* name, std::size_t name_bytes, const std::uint8_t* value,
                       std::size_t value_bytes, std::uint8_t flags, void* user);
  static int on_frame(nghttp2_session* session, const nghttp2_frame* frame, void* user);
  static int on_data(nghttp2_session* session, std::uint8_t flags, std::int32_t id,
                     const std::uint8_t* data, std::size_t bytes, void* user);
  static int on_stream_close(nghttp2_session* session, std::int32_t id, std::uint32_t code,
                             void* user);
  static int on_frame_sent(nghttp2_session* session, const nghttp2_frame* frame, void* user);
  static int on_frame_not_sent(nghttp2_session* session, const nghttp2_frame* frame, int error,
                               void* user);
  static ssize_t read_body(nghttp2_session* session, std::int32_t id, std::uint8_t* room,
                           std::size_t bytes_max, std::uint32_t* flags, nghttp2_data_source*,
                           void* user);
  static int send_data(nghttp2_session* session, nghttp2_frame* frame, const std::uint8_t* header,
                       std::size_t bytes, nghttp2_data_source*, void* user);

  static void on_headers(H2Requester& of, H2RequestStream& stream, bool end_stream);
  static void head_complete(H2Requester& of, H2RequestStream& stream, bool end_stream);
  static void trailers_complete(H2Requester& of, H2RequestStream& stream, bool end_stream);
  static void response_complete(H2Requester& of, H2RequestStream& stream, FieldList* trailers);
  static void bad_response(H2Requester& of, H2RequestStream& stream, const ParseFault& fault);
};

}  // namespace ringside::http::detail
