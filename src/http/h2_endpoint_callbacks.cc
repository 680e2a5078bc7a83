#include "h2_endpoint_callbacks.h"

#include <algorithm>
#include <new>
#include <utility>

#include "h2_fields.h"

namespace ringside::http::detail {
namespace {

// A header block that unfolds to so many times what is allowed is no mistake.
constexpr std::size_t bomb_factor = 8;
constexpr std::size_t field_overhead_bytes = 32;  // RFC 9113 §6.5.2

}  // namespace

bool H2EndpointCallbacks::begin_block(H2StreamState& stream, const HeadLimits& limits,
                                      Section section) {
  void* place = stream.arena_->allocate(sizeof(H2HeadReader), alignof(H2HeadReader));
  if (place == nullptr) return false;
  stream.reader_ = new (place) H2HeadReader(*stream.arena_, limits, section);
  return true;
}

int H2EndpointCallbacks::take_field(H2Endpoint& of, const HeadLimits& limits, H2StreamState* stream,
                                    std::string_view name, std::string_view value) {
  of.block_bytes_ += name.size() + value.size() + field_overhead_bytes;
  if (of.block_bytes_ > bomb_factor * limits.head_bytes_max) {
    of.note_abuse("a header list that unfolds beyond all limits");
    return NGHTTP2_ERR_PAUSE;
  }
  if (stream != nullptr && stream->reader_ != nullptr) stream->reader_->field(name, value);
  return 0;
}

void H2EndpointCallbacks::note_end(H2Endpoint& of, std::uint32_t code) {
  // nghttp2 may have ended it by itself.
  if (code != NGHTTP2_NO_ERROR && of.failure_.empty()) of.failure_ = nghttp2_http2_strerror(code);
}

bool H2EndpointCallbacks::submit_trailers(nghttp2_session* session, H2StreamState& stream) {
  const H2Fields* fields = std::exchange(stream.trailers_, nullptr);
  ++stream.heads_due_;
  return nghttp2_submit_trailer(session, stream.id_, fields->items, fields->count) == 0;
}

ssize_t H2EndpointCallbacks::read_body(nghttp2_session* session, H2StreamState& stream,
                                       const H2Handler::Ready& ready, std::size_t bytes_max,
                                       std::uint32_t* flags) {
  if (ready.bytes == 0 && !ready.last) return NGHTTP2_ERR_DEFERRED;
  const std::size_t bytes = std::min(bytes_max, ready.bytes);
  *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
  if (!ready.last || bytes != ready.bytes) return static_cast<ssize_t>(bytes);
  *flags |= NGHTTP2_DATA_FLAG_EOF;
  if (stream.trailers_ != nullptr) {
    if (!submit_trailers(session, stream)) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
  }
  return static_cast<ssize_t>(bytes);
}

}  // namespace ringside::http::detail
