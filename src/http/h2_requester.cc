#include "ringside/http/h2_requester.h"

#include <nghttp2/nghttp2.h>

#include <iterator>
#include <utility>

#include "h2_fields.h"
#include "h2_parts.h"
#include "h2_requester_callbacks.h"

namespace ringside::http {

namespace {

// Each stream has a window of its own; this one is given back as soon as bytes come.
constexpr std::int32_t connection_window_bytes = 1 << 24;

}  // namespace

H2Requester::H2Requester(H2Shared& shared, H2RequesterHandler& handler,
                         const H2RequesterLimits& limits)
    : H2Endpoint(shared),
      handler_(handler),
      limits_(limits),
      checks_(std::make_unique<detail::H2RequesterChecks>()) {}

H2Requester::~H2Requester() = default;

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

bool H2Requester::send() {
  while (handler_.has_room()) {
    if (const std::optional<bool> end = send_next(handler_)) return *end;
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
  const std::int32_t id =
      nghttp2_submit_request(session_, nullptr, fields->items, fields->count,
                             whole ? nullptr : &body, static_cast<H2StreamState*>(&stream));
  if (id < 0) return false;
  stream.id_ = id;
  ++stream.heads_due_;
  return true;
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
