#include "ringside/http/h2_requester.h"

#include <nghttp2/nghttp2.h>

#include <iterator>
#include <utility>

#include "h2_fields.h"
#include "h2_parts.h"
#include "h2_requester_callbacks.h"

namespace ringside::http {

namespace {

// A server under load refuses, but nobody does that all the time.
constexpr std::uint32_t resets_max = 256;
constexpr std::uint32_t resets_per_second = 20;
constexpr std::uint32_t idle_frames_max = 4096;
constexpr std::uint32_t idle_frames_per_second = 500;
// Each stream has a window of its own; this one is given back as soon as bytes come.
constexpr std::int32_t connection_window_bytes = 1 << 24;

}  // namespace

H2Requester::H2Requester(H2Shared& shared, H2RequesterHandler& handler,
                         const H2RequesterLimits& limits)
    : shared_(shared),
      handler_(handler),
      limits_(limits),
      checks_(std::make_unique<detail::H2RequesterChecks>()),
      resets_(resets_max, resets_per_second),
      idle_frames_(idle_frames_max, idle_frames_per_second) {}

H2Requester::~H2Requester() {
  nghttp2_session_del(session_);
}

bool H2Requester::start() {
  nghttp2_mem memory = detail::memory_from(shared_.memory_);
  const detail::H2Parts& parts = *shared_.parts_;
  if (parts.requester_callbacks == nullptr || parts.option == nullptr) return false;
  if (nghttp2_session_client_new3(&session_, parts.requester_callbacks, this, parts.option,
                                  &memory) != 0)
    return false;
  const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits_.stream_window_bytes},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE,
       static_cast<std::uint32_t>(limits_.head.head_bytes_max)},
      {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
  };
  return nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, std::size(settings)) == 0 &&
         nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0,
                                               connection_window_bytes) == 0;
}

bool H2Requester::give_up(H2Code code, std::string_view why) {
  if (!ended_) {
    nghttp2_session_terminate_session(session_, static_cast<std::uint32_t>(code));
    failure_ = why;
  }
  ended_ = true;
  return false;
}

bool H2Requester::receive(std::string_view bytes, std::uint64_t now_ms) {
  now_ms_ = now_ms;
  while (!bytes.empty() && !ended_) {
    const detail::H2FrameWalk::Step step = checks_->walk.next(bytes);
    if (step.malformed) return give_up(H2Code::protocol_error, "a malformed PRIORITY frame");
    // It has had our SETTINGS before any request, so it must not, whether it has acknowledged them
    // or not. nghttp2 would let it until then.
    if (step.header && checks_->walk.pushes())
      return give_up(H2Code::protocol_error, "a push, which was forbidden");
    if (step.header && checks_->walk.idle() && !idle_frames_.take(now_ms_))
      return give_up(H2Code::enhance_your_calm, "too many frames that bring nothing");
    if (!receive_part(bytes.substr(0, step.bytes))) return false;
    bytes.remove_prefix(step.bytes);
  }
  return !ended_;
}

// Of one frame.
bool H2Requester::receive_part(std::string_view bytes) {
  while (!bytes.empty() && !ended_) {
    const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
    const ssize_t taken = nghttp2_session_mem_recv(session_, data, bytes.size());
    switch (taken) {
      case NGHTTP2_ERR_NOMEM:
      case NGHTTP2_ERR_CALLBACK_FAILURE:
        return give_up(H2Code::internal_error, {});
      case NGHTTP2_ERR_FLOODED:
        return give_up(H2Code::enhance_your_calm, "too many frames that want an answer");
      default:
        if (taken < 0)
          return give_up(H2Code::protocol_error, nghttp2_strerror(static_cast<int>(taken)));
    }
    bytes.remove_prefix(static_cast<std::size_t>(taken));
  }
  return !ended_;
}

bool H2Requester::send() {
  while (handler_.has_room()) {
    const std::uint8_t* data = nullptr;
    const ssize_t bytes = nghttp2_session_mem_send(session_, &data);
    if (bytes < 0) {
      ended_ = true;
      return false;
    }
    if (bytes == 0)
      return nghttp2_session_want_read(session_) != 0 || nghttp2_session_want_write(session_) != 0;
    if (!handler_.write({reinterpret_cast<const char*>(data), static_cast<std::size_t>(bytes)})) {
      ended_ = true;
      return false;
    }
  }
  return true;
}

bool H2Requester::takes_requests() const {
  return !ended_ && nghttp2_session_check_request_allowed(session_) != 0;
}

std::uint32_t H2Requester::streams_max() const {
  return nghttp2_session_get_remote_settings(session_, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
}

bool H2Requester::send_head(H2RequestStream& stream, base::Arena& arena, Method method,
                            const H2RequestLine& line, std::span<char> text, bool whole) {
  stream.arena_ = &arena;
  stream.method_ = method;
  const detail::H2Fields* fields = detail::fields_of_request(arena, line, text);
  if (fields == nullptr) return false;
  const nghttp2_data_provider body = detail::H2RequesterCallbacks::body();
  const std::int32_t id = nghttp2_submit_request(session_, nullptr, fields->items, fields->count,
                                                 whole ? nullptr : &body, &stream);
  if (id < 0) return false;
  stream.id_ = id;
  ++stream.heads_due_;
  return true;
}

bool H2Requester::resume(H2RequestStream& stream) {
  if (stream.closed_) return true;
  // An error says that it was not waiting.
  return nghttp2_session_resume_data(session_, stream.id_) != NGHTTP2_ERR_NOMEM;
}

bool H2Requester::send_trailers(H2RequestStream& stream, const FieldList& trailers) {
  stream.trailers_ = detail::fields_of_trailers(*stream.arena_, trailers);
  if (stream.trailers_ == nullptr) return false;
  if (stream.trailers_->count == 0) stream.trailers_ = nullptr;
  return true;
}

void H2Requester::reset(H2RequestStream& stream, H2Code code) {
  if (stream.id_ == 0 || stream.closed_ || std::exchange(stream.reset_, true)) return;
  nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream.id_,
                            static_cast<std::uint32_t>(code));
}

void H2Requester::forget(H2RequestStream& stream) {
  if (stream.id_ == 0 || stream.closed_) return;
  stream.phase_ = H2RequestStream::Phase::broken;  // of a frame that is being told, nothing more
  nghttp2_session_set_stream_user_data(session_, stream.id_, nullptr);
}

void H2Requester::consume(H2RequestStream& stream, std::size_t bytes) {
  if (!stream.closed_) nghttp2_session_consume_stream(session_, stream.id_, bytes);
}

bool H2Requester::ping() {
  return nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr) == 0;
}

void H2Requester::go_away() {
  nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE,
                        nghttp2_session_get_last_proc_stream_id(session_), NGHTTP2_NO_ERROR,
                        nullptr, 0);
}

}  // namespace ringside::http
