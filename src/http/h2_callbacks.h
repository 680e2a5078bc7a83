// What nghttp2 calls.
#pragma once

#include <nghttp2/nghttp2.h>

#include "ringside/http/h2_connection.h"

#include "h2_early_priorities.h"
#include "h2_frame_walk.h"
#include "h2_stream_history.h"
#include "h2_windows.h"

namespace ringside::http::detail {

// What is looked after beside nghttp2.
struct H2Checks {
  explicit H2Checks(const H2Limits& limits)
      : windows(limits.stream_window_bytes, limits.window_bytes_max) {}
  H2FrameWalk walk{H2FrameWalk::preface_bytes};
  H2StreamHistory history;
  H2Windows windows;
  H2EarlyPriorities priorities;
};

// `user` is the H2Connection in all of them.
struct H2Callbacks {
  static void set(nghttp2_session_callbacks* callbacks);
  static nghttp2_data_provider body();

 private:
  static int on_begin_frame(nghttp2_session*, const nghttp2_frame_hd* header, void* user);
  static int on_begin_headers(nghttp2_session* session, const nghttp2_frame* frame, void* user);
  static int on_header(nghttp2_session* session, const nghttp2_frame* frame,
                       const std::uint8_t* name, std::size_t name_bytes, const std::uint8_t* value,
                       std::size_t value_bytes, std::uint8_t flags, void* user);
  static int on_frame(nghttp2_session* session, const nghttp2_frame* frame, void* user);
  static int on_invalid_frame(nghttp2_session*, const nghttp2_frame*, int, void* user);
  static int on_data(nghttp2_session* session, std::uint8_t flags, std::int32_t id,
                     const std::uint8_t* data, std::size_t bytes, void* user);
  static int on_stream_close(nghttp2_session* session, std::int32_t id, std::uint32_t code,
                             void* user);
  static int on_frame_sent(nghttp2_session* session, const nghttp2_frame* frame, void* user);
  static ssize_t read_body(nghttp2_session* session, std::int32_t id, std::uint8_t* room,
                           std::size_t bytes_max, std::uint32_t* flags, nghttp2_data_source*,
                           void* user);
  static int send_data(nghttp2_session* session, nghttp2_frame* frame, const std::uint8_t* header,
                       std::size_t bytes, nghttp2_data_source*, void* user);

  static void note_priority(H2Connection& to, nghttp2_session* session, const nghttp2_frame& frame);
  static H2Stream* begin_request(H2Connection& to, std::int32_t id);
  static void head_complete(H2Connection& to, H2Stream& stream, bool end_stream);
  static void trailers_complete(H2Connection& to, H2Stream& stream, bool end_stream);
  static void request_complete(H2Connection& to, H2Stream& stream, FieldList* trailers);
  static void bad_request(H2Connection& to, H2Stream& stream, const ParseFault& fault);
};

// RFC 9218 §4: what a Priority field says. False: it says nothing.
bool parse_priority(std::string_view field, nghttp2_extpri& priority);

}  // namespace ringside::http::detail
