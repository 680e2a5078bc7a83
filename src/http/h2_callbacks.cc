#include "h2_callbacks.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "ringside/base/text.h"

#include "h2_endpoint_callbacks.h"
#include "h2_head.h"

namespace ringside::http::detail {
namespace {

H2Connection& connection(void* user) {
  return *static_cast<H2Connection*>(user);
}

H2Stream* stream_of(nghttp2_session* session, std::int32_t id) {
  return static_cast<H2Stream*>(state_of(session, id));
}

// A stream that we reset for what the client did.
bool clients_fault(std::uint32_t code) {
  switch (code) {
    case NGHTTP2_NO_ERROR:
    case NGHTTP2_INTERNAL_ERROR:
    case NGHTTP2_CANCEL:
      return false;
    default:
      return true;
  }
}

}  // namespace

void H2Callbacks::set(nghttp2_session_callbacks* callbacks) {
  nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
  nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_invalid_frame);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
  nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
  nghttp2_session_callbacks_set_send_data_callback(callbacks, send_data);
}

nghttp2_data_provider H2Callbacks::body() {
  nghttp2_data_provider out{};
  out.read_callback = read_body;
  return out;
}

// ---- receiving

int H2Callbacks::on_begin_frame(nghttp2_session*, const nghttp2_frame_hd* header, void* user) {
  H2Connection& to = connection(user);
  to.in_head_ = header->type == NGHTTP2_HEADERS || header->type == NGHTTP2_CONTINUATION;
  return 0;
}

H2Stream* H2Callbacks::begin_request(H2Connection& to, std::int32_t id) {
  ++to.streams_open_;
  H2Stream* stream = to.ended_ ? nullptr : to.handler_.on_stream();
  if (stream == nullptr) {
    nghttp2_submit_rst_stream(to.session_, NGHTTP2_FLAG_NONE, id, NGHTTP2_REFUSED_STREAM);
    return nullptr;
  }
  stream->id_ = id;
  stream->window_ = to.limits_.stream_window_bytes;
  nghttp2_session_set_stream_user_data(to.session_, id, static_cast<H2StreamState*>(stream));
  stream->prioritised_ = to.checks_->priorities.has(id);
  if (stream->prioritised_) return stream;
  // RFC 9218 §10 leaves it to us in which order streams go that have the same urgency, where their
  // clients did not say: in turn, so that none waits for another.
  const nghttp2_extpri priority{.urgency = NGHTTP2_EXTPRI_DEFAULT_URGENCY, .inc = 1};
  nghttp2_session_change_extpri_stream_priority(to.session_, id, &priority, 0);
  return stream;
}

int H2Callbacks::on_begin_headers(nghttp2_session* session, const nghttp2_frame* frame,
                                  void* user) {
  H2Connection& to = connection(user);
  to.block_bytes_ = 0;
  const bool request = frame->headers.cat == NGHTTP2_HCAT_REQUEST;
  H2Stream* stream =
      request ? begin_request(to, frame->hd.stream_id) : stream_of(session, frame->hd.stream_id);
  if (stream == nullptr) return 0;
  const H2Stream::Phase phase = stream->phase_;
  if (phase != H2Stream::Phase::head && phase != H2Stream::Phase::body) return 0;
  if (!H2EndpointCallbacks::begin_block(*stream, to.limits_.head,
                                        request ? Section::request : Section::trailer))
    bad_request(to, *stream, {503, "out of memory for fields"});
  return 0;
}

int H2Callbacks::on_header(nghttp2_session* session, const nghttp2_frame* frame,
                           const std::uint8_t* name, std::size_t name_bytes,
                           const std::uint8_t* value, std::size_t value_bytes, std::uint8_t,
                           void* user) {
  H2Connection& to = connection(user);
  return H2EndpointCallbacks::take_field(to, to.limits_.head,
                                         state_of(session, frame->hd.stream_id),
                                         text(name, name_bytes), text(value, value_bytes));
}

int H2Callbacks::on_frame(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
  H2Connection& to = connection(user);
  H2Stream* stream = frame->hd.stream_id == 0 ? nullptr : stream_of(session, frame->hd.stream_id);
  switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
      to.in_head_ = false;
      if (stream == nullptr || stream->reader_ == nullptr) break;
      if (stream->phase_ == H2Stream::Phase::head)
        head_complete(to, *stream, ends_stream(frame->hd));
      else
        trailers_complete(to, *stream, ends_stream(frame->hd));
      break;
    case NGHTTP2_DATA:
      if (stream != nullptr && ends_stream(frame->hd)) request_complete(to, *stream, nullptr);
      break;
    case NGHTTP2_PRIORITY_UPDATE:
      note_priority(to, session, *frame);
      break;
    case NGHTTP2_PING:
      if ((frame->hd.flags & NGHTTP2_FLAG_ACK) != 0) to.open_windows();
      break;
    case NGHTTP2_RST_STREAM:
      to.checks_->history.ended(frame->hd.stream_id);
      if (!to.resets_.take(to.now_ms_)) to.note_abuse("too many requests taken back");
      break;
    default:
      break;
  }
  return 0;
}

// It may come before the stream's head is complete, or before the stream.
void H2Callbacks::note_priority(H2Connection& to, nghttp2_session* session,
                                const nghttp2_frame& frame) {
  const auto& update = *static_cast<const nghttp2_ext_priority_update*>(frame.ext.payload);
  H2Stream* stream = stream_of(session, update.stream_id);
  if (stream != nullptr)
    stream->prioritised_ = true;
  else
    to.checks_->priorities.note(update.stream_id);
}

int H2Callbacks::on_invalid_frame(nghttp2_session*, const nghttp2_frame*, int, void* user) {
  connection(user).in_head_ = false;
  return 0;
}

void H2Callbacks::bad_request(H2Connection& to, H2Stream& stream, const ParseFault& fault) {
  stream.phase_ = H2Stream::Phase::broken;
  stream.reader_ = nullptr;
  to.handler_.on_request_bad(stream, fault);
}

void H2Callbacks::head_complete(H2Connection& to, H2Stream& stream, bool end_stream) {
  H2HeadReader& reader = *std::exchange(stream.reader_, nullptr);
  if (!reader.finish_request(stream.head_, end_stream))
    return bad_request(to, stream, reader.fault());
  nghttp2_extpri priority{};
  if (!stream.prioritised_ && parse_priority(reader.priority(), priority))
    nghttp2_session_change_extpri_stream_priority(to.session_, stream.id_, &priority, 0);
  stream.phase_ = end_stream ? H2Stream::Phase::ended : H2Stream::Phase::body;
  Framing& framing = stream.head_.framing;
  if (framing.kind == Framing::Kind::length)
    stream.length_ = static_cast<std::int64_t>(framing.length);
  // Whether nothing follows is not known before the end of the stream: until then no server may
  // take the request for whole.
  if (!end_stream && stream.length_ == 0) framing = {Framing::Kind::chunked, 0};
  to.handler_.on_request_head(stream, stream.head_);
}

void H2Callbacks::trailers_complete(H2Connection& to, H2Stream& stream, bool end_stream) {
  H2HeadReader& reader = *std::exchange(stream.reader_, nullptr);
  if (!end_stream) return bad_request(to, stream, {400, "a second head in a request"});
  if (stream.head_.websocket) return bad_request(to, stream, {400, "trailers in a tunnel"});
  if (!reader.finish_trailers()) return bad_request(to, stream, reader.fault());
  request_complete(to, stream, &reader.fields());
}

void H2Callbacks::request_complete(H2Connection& to, H2Stream& stream, FieldList* trailers) {
  if (stream.phase_ != H2Stream::Phase::body) return;
  if (stream.length_ >= 0 && stream.body_bytes_ != stream.length_)
    return bad_request(to, stream, {400, "less body than Content-Length says"});
  stream.phase_ = H2Stream::Phase::ended;
  to.handler_.on_request_end(stream, trailers);
}

int H2Callbacks::on_data(nghttp2_session* session, std::uint8_t, std::int32_t id,
                         const std::uint8_t* data, std::size_t bytes, void* user) {
  H2Connection& to = connection(user);
  H2Stream* stream = stream_of(session, id);
  if (stream == nullptr || stream->phase_ != H2Stream::Phase::body) {
    nghttp2_session_consume(session, id, bytes);
    return 0;
  }
  stream->body_bytes_ += static_cast<std::int64_t>(bytes);
  if (stream->length_ >= 0 && stream->body_bytes_ > stream->length_) {
    nghttp2_session_consume(session, id, bytes);
    bad_request(to, *stream, {400, "more body than Content-Length says"});
    return 0;
  }
  to.note_data(bytes);
  to.handler_.on_request_data(*stream, text(data, bytes));
  return 0;
}

int H2Callbacks::on_stream_close(nghttp2_session* session, std::int32_t id, std::uint32_t code,
                                 void* user) {
  connection(user).checks_->history.closed(id);
  connection(user).stream_closed();
  H2Stream* stream = stream_of(session, id);
  if (stream == nullptr) return 0;
  nghttp2_session_set_stream_user_data(session, id, nullptr);
  stream->closed_ = true;
  if (!stream->end_framed_ || !stream->request_ended())
    connection(user).handler_.on_stream_reset(*stream, static_cast<H2Code>(code));
  return 0;
}

// ---- sending

int H2Callbacks::on_frame_sent(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
  H2Connection& to = connection(user);
  switch (frame->hd.type) {
    case NGHTTP2_RST_STREAM:
      to.checks_->history.reset(frame->hd.stream_id);
      if (clients_fault(frame->rst_stream.error_code) && !to.resets_.take(to.now_ms_))
        to.note_abuse("too many requests that had to be reset");
      return 0;
    case NGHTTP2_GOAWAY:
      H2EndpointCallbacks::note_end(to, frame->goaway.error_code);
      return 0;
    case NGHTTP2_DATA:
      to.idle_frames_.give_back(2);
      break;
    case NGHTTP2_HEADERS:
      break;
    default:
      return 0;
  }
  H2Stream* stream = stream_of(session, frame->hd.stream_id);
  if (stream == nullptr) return 0;
  if (frame->hd.type == NGHTTP2_HEADERS) --stream->heads_due_;
  if (ends_stream(frame->hd)) {
    stream->end_framed_ = true;
    to.resets_.give_back(1);
  }
  const std::size_t bytes = h2_frame_header_bytes + frame->hd.length;
  // DATA is written by now; what anything else is comes with the return to send().
  if (frame->hd.type == NGHTTP2_DATA)
    to.handler_.on_framed(*stream, bytes);
  else
    to.framed_ = {stream, bytes};
  return 0;
}

ssize_t H2Callbacks::read_body(nghttp2_session* session, std::int32_t id, std::uint8_t*,
                               std::size_t bytes_max, std::uint32_t* flags, nghttp2_data_source*,
                               void* user) {
  H2Stream* stream = stream_of(session, id);
  if (stream == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  return H2EndpointCallbacks::read_body(session, *stream, connection(user).handler_.ready(*stream),
                                        bytes_max, flags);
}

int H2Callbacks::send_data(nghttp2_session* session, nghttp2_frame* frame,
                           const std::uint8_t* header, std::size_t bytes, nghttp2_data_source*,
                           void* user) {
  H2Connection& to = connection(user);
  H2Stream* stream = stream_of(session, frame->hd.stream_id);
  if (stream == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  if (!to.handler_.has_room()) return NGHTTP2_ERR_WOULDBLOCK;
  if (to.handler_.write_data(*stream, text(header, h2_frame_header_bytes), bytes)) return 0;
  return NGHTTP2_ERR_CALLBACK_FAILURE;
}

bool parse_priority(std::string_view field, nghttp2_extpri& priority) {
  if (field.empty()) return false;
  priority = {.urgency = NGHTTP2_EXTPRI_DEFAULT_URGENCY, .inc = 0};
  while (!field.empty()) {
    const std::size_t comma = std::min(field.find(','), field.size());
    const std::string_view item = base::trim_ows(field.substr(0, comma));
    if (item.size() == 3 && item.starts_with("u=") && item[2] >= '0' && item[2] <= '7')
      priority.urgency = static_cast<std::uint32_t>(item[2] - '0');
    else if (item == "i" || item == "i=?1")
      priority.inc = 1;
    field.remove_prefix(std::min(comma + 1, field.size()));
  }
  return true;
}

}  // namespace ringside::http::detail
