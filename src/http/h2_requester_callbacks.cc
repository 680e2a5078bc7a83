#include "h2_requester_callbacks.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "h2_endpoint_callbacks.h"
#include "h2_head.h"

namespace ringside::http::detail {
namespace {

H2Requester& requester(void* user) {
  return *static_cast<H2Requester*>(user);
}

H2RequestStream* stream_of(nghttp2_session* session, std::int32_t id) {
  return static_cast<H2RequestStream*>(state_of(session, id));
}

}  // namespace

void H2RequesterCallbacks::set(nghttp2_session_callbacks* callbacks) {
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
  nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
  nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, on_frame_not_sent);
  nghttp2_session_callbacks_set_send_data_callback(callbacks, send_data);
}

nghttp2_data_provider H2RequesterCallbacks::body() {
  nghttp2_data_provider out{};
  out.read_callback = read_body;
  return out;
}

// ---- receiving

int H2RequesterCallbacks::on_begin_headers(nghttp2_session* session, const nghttp2_frame* frame,
                                           void* user) {
  H2Requester& of = requester(user);
  of.block_bytes_ = 0;
  H2RequestStream* stream = stream_of(session, frame->hd.stream_id);
  if (stream == nullptr || stream->response_ended()) return 0;
  stream->answered_ = true;
  const bool head = stream->phase_ == H2RequestStream::Phase::head;
  if (!H2EndpointCallbacks::begin_block(*stream, of.limits_.head,
                                        head ? Section::response : Section::trailer))
    bad_response(of, *stream, {503, "out of memory for fields"});
  return 0;
}

int H2RequesterCallbacks::on_header(nghttp2_session* session, const nghttp2_frame* frame,
                                    const std::uint8_t* name, std::size_t name_bytes,
                                    const std::uint8_t* value, std::size_t value_bytes,
                                    std::uint8_t, void* user) {
  H2Requester& of = requester(user);
  return H2EndpointCallbacks::take_field(of, of.limits_.head,
                                         state_of(session, frame->hd.stream_id),
                                         text(name, name_bytes), text(value, value_bytes));
}

int H2RequesterCallbacks::on_frame(nghttp2_session* session, const nghttp2_frame* frame,
                                   void* user) {
  H2Requester& of = requester(user);
  H2RequestStream* stream =
      frame->hd.stream_id == 0 ? nullptr : stream_of(session, frame->hd.stream_id);
  switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
      if (stream != nullptr && stream->reader_ != nullptr)
        on_headers(of, *stream, ends_stream(frame->hd));
      break;
    case NGHTTP2_DATA:
      if (stream != nullptr && ends_stream(frame->hd)) response_complete(of, *stream, nullptr);
      break;
    case NGHTTP2_RST_STREAM:
      if (!of.resets_.take(of.now_ms_)) of.note_abuse("too many requests reset");
      break;
    case NGHTTP2_SETTINGS:
      if ((frame->hd.flags & NGHTTP2_FLAG_ACK) == 0) of.handler_.on_settings();
      break;
    case NGHTTP2_GOAWAY:
      of.handler_.on_going_away();
      break;
    case NGHTTP2_PING:
      if ((frame->hd.flags & NGHTTP2_FLAG_ACK) != 0) of.handler_.on_ping_answered();
      break;
    default:
      break;
  }
  return 0;
}

void H2RequesterCallbacks::bad_response(H2Requester& of, H2RequestStream& stream,
                                        const ParseFault& fault) {
  stream.phase_ = H2RequestStream::Phase::broken;
  stream.reader_ = nullptr;
  if (!of.resets_.take(of.now_ms_)) of.note_abuse("too many responses that are malformed");
  of.handler_.on_response_bad(stream, fault);
}

void H2RequesterCallbacks::on_headers(H2Requester& of, H2RequestStream& stream, bool end_stream) {
  if (stream.phase_ == H2RequestStream::Phase::head)
    head_complete(of, stream, end_stream);
  else
    trailers_complete(of, stream, end_stream);
}

void H2RequesterCallbacks::head_complete(H2Requester& of, H2RequestStream& stream,
                                         bool end_stream) {
  H2HeadReader& reader = *std::exchange(stream.reader_, nullptr);
  stream.head_ = {};
  if (!reader.finish_response(stream.head_, stream.method_, end_stream))
    return bad_response(of, stream, reader.fault());
  if (stream.head_.interim()) return of.handler_.on_response_head(stream, stream.head_);
  stream.phase_ = H2RequestStream::Phase::body;
  if (stream.head_.framing.kind != Framing::Kind::chunked)
    stream.length_ = static_cast<std::int64_t>(stream.head_.framing.length);
  of.handler_.on_response_head(stream, stream.head_);
  if (end_stream) response_complete(of, stream, nullptr);
}

void H2RequesterCallbacks::trailers_complete(H2Requester& of, H2RequestStream& stream,
                                             bool end_stream) {
  H2HeadReader& reader = *std::exchange(stream.reader_, nullptr);
  if (!end_stream) return bad_response(of, stream, {400, "a second head in a response"});
  if (!reader.finish_trailers()) return bad_response(of, stream, reader.fault());
  response_complete(of, stream, &reader.fields());
}

void H2RequesterCallbacks::response_complete(H2Requester& of, H2RequestStream& stream,
                                             FieldList* trailers) {
  if (stream.phase_ == H2RequestStream::Phase::head)
    return bad_response(of, stream, {400, "a body before the head"});
  if (stream.phase_ != H2RequestStream::Phase::body) return;
  if (stream.length_ >= 0 && stream.body_bytes_ != stream.length_)
    return bad_response(of, stream, {400, "less body than Content-Length says"});
  stream.phase_ = H2RequestStream::Phase::ended;
  of.resets_.give_back(1);
  of.handler_.on_response_end(stream, trailers);
}

int H2RequesterCallbacks::on_data(nghttp2_session* session, std::uint8_t, std::int32_t id,
                                  const std::uint8_t* data, std::size_t bytes, void* user) {
  H2Requester& of = requester(user);
  nghttp2_session_consume_connection(session, bytes);
  H2RequestStream* stream = stream_of(session, id);
  if (stream == nullptr || stream->response_ended()) {
    nghttp2_session_consume_stream(session, id, bytes);
    return 0;
  }
  stream->body_bytes_ += static_cast<std::int64_t>(bytes);
  const bool early = stream->phase_ == H2RequestStream::Phase::head;
  if (early || (stream->length_ >= 0 && stream->body_bytes_ > stream->length_)) {
    nghttp2_session_consume_stream(session, id, bytes);
    bad_response(of, *stream,
                 {400, early ? "a body before the head" : "more body than Content-Length says"});
    return 0;
  }
  of.handler_.on_response_data(*stream, text(data, bytes));
  return 0;
}

int H2RequesterCallbacks::on_stream_close(nghttp2_session* session, std::int32_t id,
                                          std::uint32_t code, void* user) {
  H2RequestStream* stream = stream_of(session, id);
  if (stream == nullptr) return 0;
  nghttp2_session_set_stream_user_data(session, id, nullptr);
  stream->closed_ = true;
  if (stream->end_framed_ && stream->phase_ == H2RequestStream::Phase::ended) return 0;
  const H2Code why = stream->head_framed_ ? static_cast<H2Code>(code) : H2Code::refused_stream;
  requester(user).handler_.on_stream_closed(*stream, why);
  return 0;
}

// ---- sending

int H2RequesterCallbacks::on_frame_sent(nghttp2_session* session, const nghttp2_frame* frame,
                                        void* user) {
  H2Requester& of = requester(user);
  switch (frame->hd.type) {
    case NGHTTP2_GOAWAY:
      H2EndpointCallbacks::note_end(of, frame->goaway.error_code);
      return 0;
    case NGHTTP2_DATA:
      of.idle_frames_.give_back(2);
      break;
    case NGHTTP2_HEADERS:
      break;
    default:
      return 0;
  }
  H2RequestStream* stream = stream_of(session, frame->hd.stream_id);
  if (stream == nullptr) return 0;
  if (frame->hd.type == NGHTTP2_HEADERS) {
    --stream->heads_due_;
    stream->head_framed_ = true;
  }
  if (ends_stream(frame->hd)) stream->end_framed_ = true;
  of.handler_.on_framed(*stream, h2_frame_header_bytes + frame->hd.length,
                        frame->hd.type == NGHTTP2_DATA);
  return 0;
}

// A head that the server's GOAWAY was faster than; its stream closes now. Trailers of a stream that
// is closing are no loss.
int H2RequesterCallbacks::on_frame_not_sent(nghttp2_session* session, const nghttp2_frame* frame,
                                            int, void*) {
  if (frame->hd.type != NGHTTP2_HEADERS) return 0;
  H2RequestStream* stream = stream_of(session, frame->hd.stream_id);
  if (stream != nullptr && stream->heads_due_ != 0) --stream->heads_due_;
  return 0;
}

ssize_t H2RequesterCallbacks::read_body(nghttp2_session* session, std::int32_t id, std::uint8_t*,
                                        std::size_t bytes_max, std::uint32_t* flags,
                                        nghttp2_data_source*, void* user) {
  H2RequestStream* stream = stream_of(session, id);
  if (stream == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  return H2EndpointCallbacks::read_body(session, *stream, requester(user).handler_.ready(*stream),
                                        bytes_max, flags);
}

int H2RequesterCallbacks::send_data(nghttp2_session* session, nghttp2_frame* frame,
                                    const std::uint8_t* header, std::size_t bytes,
                                    nghttp2_data_source*, void* user) {
  H2Requester& of = requester(user);
  H2RequestStream* stream = stream_of(session, frame->hd.stream_id);
  if (stream == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  if (!of.handler_.has_room()) return NGHTTP2_ERR_WOULDBLOCK;
  if (of.handler_.write_data(*stream, text(header, h2_frame_header_bytes), bytes)) return 0;
  return NGHTTP2_ERR_CALLBACK_FAILURE;
}

}  // namespace ringside::http::detail
