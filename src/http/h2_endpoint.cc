#include "ringside/http/h2_endpoint.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <utility>

#include "h2_fields.h"

namespace ringside::http {

namespace {

// A browser that leaves a page takes back what it had asked for, and a server under load refuses;
// but nobody does that all the time.
constexpr std::uint32_t resets_max = 256;
constexpr std::uint32_t resets_per_second = 20;
constexpr std::uint32_t idle_frames_max = 4096;
constexpr std::uint32_t idle_frames_per_second = 500;

}  // namespace

// ---- H2Allowance

bool H2Allowance::take(std::uint64_t now_ms) {
  // Only whole seconds count: so a flood that comes at once is not rounded up.
  const std::uint64_t seconds = (now_ms - filled_ms_) / 1000;
  if (seconds != 0) {
    filled_ms_ += seconds * 1000;
    const std::uint64_t filled = left_ + std::min<std::uint64_t>(seconds, most_) * per_second_;
    left_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(filled, most_));
  }
  if (left_ == 0) return false;
  --left_;
  return true;
}

void H2Allowance::give_back(std::uint32_t times) {
  left_ = std::min(left_ + times, most_);
}

// ---- H2Endpoint

H2Endpoint::H2Endpoint(H2Shared& shared)
    : shared_(shared),
      resets_(resets_max, resets_per_second),
      idle_frames_(idle_frames_max, idle_frames_per_second) {}

H2Endpoint::~H2Endpoint() {
  nghttp2_session_del(session_);
}

bool H2Endpoint::give_up(H2Code code, std::string_view why) {
  if (!ended_) {
    nghttp2_session_terminate_session(session_, static_cast<std::uint32_t>(code));
    failure_ = why;
  }
  ended_ = true;
  return false;
}

bool H2Endpoint::receive_part(std::string_view bytes) {
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

std::optional<bool> H2Endpoint::send_next(H2FrameSink& sink) {
  const std::uint8_t* data = nullptr;
  const ssize_t bytes = nghttp2_session_mem_send(session_, &data);
  if (bytes == 0)
    return nghttp2_session_want_read(session_) != 0 || nghttp2_session_want_write(session_) != 0;
  if (bytes > 0 &&
      sink.write({reinterpret_cast<const char*>(data), static_cast<std::size_t>(bytes)}))
    return std::nullopt;
  ended_ = true;
  return false;
}

bool H2Endpoint::resume(H2StreamState& stream) {
  if (stream.closed_) return true;
  // An error says that it was not waiting.
  return nghttp2_session_resume_data(session_, stream.id_) != NGHTTP2_ERR_NOMEM;
}

bool H2Endpoint::send_trailers(H2StreamState& stream, const FieldList& trailers) {
  stream.trailers_ = detail::fields_of_trailers(*stream.arena_, trailers);
  if (stream.trailers_ == nullptr) return false;
  if (stream.trailers_->count == 0) stream.trailers_ = nullptr;
  return true;
}

void H2Endpoint::reset(H2StreamState& stream, H2Code code) {
  if (stream.id_ == 0 || stream.closed_ || std::exchange(stream.reset_, true)) return;
  nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream.id_,
                            static_cast<std::uint32_t>(code));
}

}  // namespace ringside::http
