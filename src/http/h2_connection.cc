#include "ringside/http/h2_connection.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "h2_callbacks.h"
#include "h2_fields.h"
#include "h2_parts.h"

namespace ringside::http {

H2Connection::H2Connection(H2Shared& shared, H2Handler& handler, const H2Limits& limits)
    : H2Endpoint(shared),
      handler_(handler),
      limits_(limits),
      checks_(std::make_unique<detail::H2Checks>(limits)),
      connection_window_(limits.connection_window_bytes) {}

H2Connection::~H2Connection() {
  shared_.window_bytes_used_ -= connection_window_ - limits_.connection_window_bytes;
}

bool H2Connection::start() {
  nghttp2_mem memory = detail::memory_from(shared_.memory_);
  const detail::H2Parts& parts = *shared_.parts_;
  if (parts.callbacks == nullptr || parts.option == nullptr) return false;
  if (nghttp2_session_server_new3(&session_, parts.callbacks, this, parts.option, &memory) != 0)
    return false;
  const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits_.streams_max},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits_.stream_window_bytes},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, limits_.head.head_bytes_max},
      {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
      {NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1},
  };
  return nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, std::size(settings)) == 0 &&
         nghttp2_session_set_local_window_size(
             session_, NGHTTP2_FLAG_NONE, 0,
             static_cast<std::int32_t>(limits_.connection_window_bytes)) == 0;
}

// False: it ends the connection, as one that comes in floods does, or one that opens or feeds a
// stream that is over.
bool H2Connection::check_header() {
  using Fate = detail::H2StreamHistory::Fate;
  if (checks_->walk.idle() && !idle_frames_.take(now_ms_))
    return give_up(H2Code::enhance_your_calm, "too many frames that bring nothing");
  const std::uint8_t type = checks_->walk.type();
  if (type != NGHTTP2_HEADERS && type != NGHTTP2_DATA) return true;
  const std::int32_t id = checks_->walk.stream();
  const Fate fate = checks_->history.of(id);
  // nghttp2 does not say which it refuses because they are too many.
  if (fate == Fate::unknown && type == NGHTTP2_HEADERS && id % 2 == 1) checks_->history.opened(id);
  if (fate != Fate::skipped && fate != Fate::ended) return true;
  if (fate == Fate::skipped)
    return give_up(H2Code::protocol_error, "a stream number that is too low");
  return give_up(H2Code::stream_closed, "a frame for a stream that is over");
}

bool H2Connection::receive(std::string_view bytes, std::uint64_t now_ms) {
  now_ms_ = now_ms;
  while (!bytes.empty() && !ended_) {
    const detail::H2FrameWalk::Step step = checks_->walk.next(bytes);
    if (step.malformed) return give_up(H2Code::protocol_error, "a malformed PRIORITY frame");
    if (step.header && !check_header()) return false;
    if (!receive_part(bytes.substr(0, step.bytes))) return false;
    bytes.remove_prefix(step.bytes);
  }
  return !ended_;
}

bool H2Connection::send() {
  while (handler_.has_room()) {
    if (const std::optional<bool> end = send_next(handler_)) return *end;
    const Framed framed = std::exchange(framed_, {});
    if (framed.stream != nullptr) handler_.on_framed(*framed.stream, framed.bytes);
  }
  return true;
}

bool H2Connection::send_head(H2Stream& stream, std::uint16_t status, std::span<char> text,
                             Head kind) {
  if (stream.closed_) return true;
  const detail::H2Fields* fields = detail::fields_of_head(*stream.arena_, status, text);
  if (fields == nullptr) return false;
  int result = 0;
  if (kind == Head::interim) {
    result = nghttp2_submit_headers(session_, NGHTTP2_FLAG_NONE, stream.id_, nullptr, fields->items,
                                    fields->count, nullptr);
  } else {
    const nghttp2_data_provider body = detail::H2Callbacks::body();
    result = nghttp2_submit_response(session_, stream.id_, fields->items, fields->count,
                                     kind == Head::whole ? nullptr : &body);
  }
  if (result == 0) ++stream.heads_due_;
  return result == 0;
}

void H2Connection::forget(H2Stream& stream) {
  if (!stream.closed_) nghttp2_session_set_stream_user_data(session_, stream.id_, nullptr);
}

void H2Connection::consume(H2Stream& stream, std::size_t bytes) {
  if (stream.closed_) return consume_forgotten(bytes);
  nghttp2_session_consume(session_, stream.id_, bytes);
  stream.consumed_ += bytes;
  if (stream.window_ < checks_->windows.window()) open_window(stream);
}

void H2Connection::consume_forgotten(std::size_t bytes) {
  nghttp2_session_consume_connection(session_, bytes);
}

// ---- windows

void H2Connection::note_data(std::size_t bytes) {
  if (limits_.window_bytes_max == 0 || !checks_->windows.received(bytes)) return;
  static constexpr std::uint8_t opaque[8] = {'w', 'i', 'n', 'd', 'o', 'w', 's', 0};
  nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, opaque);
}

// A PING was answered: the connection's first, and each stream's when its server takes what comes.
void H2Connection::open_windows() {
  detail::H2Windows& windows = checks_->windows;
  std::uint32_t wanted = windows.answered();
  if (wanted == windows.window()) return;
  const std::size_t left =
      shared_.window_bytes_ - std::min(shared_.window_bytes_, shared_.window_bytes_used_);
  wanted = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(wanted, std::uint64_t{connection_window_} + left));
  if (wanted > connection_window_ && !set_connection_window(wanted)) return;
  windows.set(std::max(wanted, windows.window()));
}

bool H2Connection::set_connection_window(std::uint32_t bytes) {
  if (nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0,
                                            static_cast<std::int32_t>(bytes)) != 0)
    return false;
  shared_.window_bytes_used_ += bytes;
  shared_.window_bytes_used_ -= connection_window_;
  connection_window_ = bytes;
  return true;
}

void H2Connection::open_window(H2Stream& stream) {
  if (stream.consumed_ < stream.window_) return;
  const std::uint32_t wanted = checks_->windows.window();
  if (nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, stream.id_,
                                            static_cast<std::int32_t>(wanted)) == 0)
    stream.window_ = wanted;
}

// With the last stream the windows are given back to the other connections.
void H2Connection::stream_closed() {
  if (--streams_open_ != 0 || connection_window_ == limits_.connection_window_bytes) return;
  set_connection_window(limits_.connection_window_bytes);
  checks_->windows.begin_anew();
}

// ---- the end

void H2Connection::announce_end() {
  nghttp2_submit_shutdown_notice(session_);
}

void H2Connection::go_away(H2Code code) {
  nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE,
                        nghttp2_session_get_last_proc_stream_id(session_),
                        static_cast<std::uint32_t>(code), nullptr, 0);
}

}  // namespace ringside::http
