#include "h2_session.h"

#include <algorithm>

namespace ringside::sim {

namespace {

constexpr std::int64_t least_window_bytes = 65'535;  // RFC 9113 §6.9.2
constexpr std::size_t preface_bytes = 24;
// As H2Client has them: in windows of a stream, and how far they are opened. H2Requester opens its
// connections' as far at once, and streams' never.
constexpr std::int64_t connection_windows = 4;
constexpr std::int64_t opened_window_bytes = 1 << 24;
constexpr std::size_t padding_max = 40;
constexpr std::size_t frame_header_bytes = 9;

H2Session& own(void* user) {
  return *static_cast<H2Session*>(user);
}

std::string text(const std::uint8_t* data, std::size_t bytes) {
  return {reinterpret_cast<const char*>(data), bytes};
}

std::vector<nghttp2_nv> names_and_values(const H2FieldList& fields) {
  auto bytes = [](const std::string& from) {
    return reinterpret_cast<std::uint8_t*>(const_cast<char*>(from.data()));
  };
  std::vector<nghttp2_nv> out;
  for (const auto& [name, value] : fields)
    out.push_back({bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE});
  return out;
}

bool ends_stream(const nghttp2_frame_hd& header) {
  const bool may = header.type == NGHTTP2_DATA || header.type == NGHTTP2_HEADERS;
  return may && (header.flags & NGHTTP2_FLAG_END_STREAM) != 0;
}

std::string describe(const nghttp2_frame_hd& header) {
  return "type " + std::to_string(header.type) + ", flags " + std::to_string(header.flags) +
         ", stream " + std::to_string(header.stream_id) + ", " + std::to_string(header.length) +
         " bytes";
}

}  // namespace

struct H2Session::Callbacks {
  static int on_begin_headers(nghttp2_session*, const nghttp2_frame*, void* user) {
    own(user).fields_.clear();  // of a stream that was reset meanwhile
    return 0;
  }
  static int on_header(nghttp2_session*, const nghttp2_frame*, const std::uint8_t* name,
                       std::size_t name_bytes, const std::uint8_t* value, std::size_t value_bytes,
                       std::uint8_t, void* user) {
    own(user).fields_.emplace_back(text(name, name_bytes), text(value, value_bytes));
    return 0;
  }
  static int on_data(nghttp2_session*, std::uint8_t, std::int32_t stream, const std::uint8_t* data,
                     std::size_t bytes, void* user) {
    own(user).listener_.on_stream_body(stream, {reinterpret_cast<const char*>(data), bytes});
    return 0;
  }
  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    own(user).frame_arrived(*frame);
    return 0;
  }
  static int on_invalid_frame(nghttp2_session*, const nghttp2_frame* frame, int error, void* user) {
    H2Session& session = own(user);
    if (session.others_ && frame->hd.type == NGHTTP2_RST_STREAM) return 0;
    if (error == NGHTTP2_ERR_REFUSED_STREAM) {
      session.scripted_.insert(frame->hd.stream_id);
      session.listener_.on_request_too_many(frame->hd.stream_id);
      return 0;
    }
    session.violation("an invalid frame: " + std::string(nghttp2_strerror(error)) + ": " +
                      describe(frame->hd));
    return 0;
  }
  static int on_stream_close(nghttp2_session*, std::int32_t stream, std::uint32_t code,
                             void* user) {
    own(user).listener_.on_stream_closed(stream, code);
    return 0;
  }
  static int before_frame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    const bool request =
        frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST;
    if (request) own(user).listener_.on_request_leaves(frame->hd.stream_id);
    return 0;
  }
  static int on_frame_sent(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    own(user).frame_left(*frame);
    return 0;
  }
  static int on_frame_not_sent(nghttp2_session*, const nghttp2_frame* frame, int, void* user) {
    const bool request =
        frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST;
    if (request) own(user).listener_.on_request_unsent(frame->hd.stream_id);
    return 0;
  }
  static ssize_t padding(nghttp2_session*, const nghttp2_frame* frame, std::size_t most,
                         void* user) {
    H2Session& self = own(user);
    if (!self.options_.padding || self.random_.coin())
      return static_cast<ssize_t>(frame->hd.length);
    const std::size_t some = frame->hd.length + self.random_.below(padding_max);
    return static_cast<ssize_t>(std::min(some, most));
  }
  static ssize_t read_body(nghttp2_session* session, std::int32_t stream, std::uint8_t* room,
                           std::size_t bytes, std::uint32_t* flags, nghttp2_data_source*,
                           void* user) {
    H2SessionListener& listener = own(user).listener_;
    const H2SessionListener::Piece piece =
        listener.on_body_wanted(stream, {reinterpret_cast<char*>(room), bytes});
    if (piece.wait) return NGHTTP2_ERR_DEFERRED;
    if (!piece.last) return static_cast<ssize_t>(piece.bytes);
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    const H2FieldList trailers = listener.trailers_of(stream);
    if (!trailers.empty()) {
      const auto fields = names_and_values(trailers);
      *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
      nghttp2_submit_trailer(session, stream, fields.data(), fields.size());
    }
    return static_cast<ssize_t>(piece.bytes);
  }
};

H2Session::H2Session(H2SessionListener& listener, const Options& options, Random random)
    : listener_(listener),
      options_(options),
      random_(random),
      payload_left_(serves() ? preface_bytes : 0) {
  create();
  say_settings();
  if (options_.connection_window_bytes > least_window_bytes) {
    nghttp2_session_set_local_window_size(
        session_, NGHTTP2_FLAG_NONE, 0,
        static_cast<std::int32_t>(options_.connection_window_bytes));
  }
}

void H2Session::create() {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, Callbacks::on_begin_headers);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, Callbacks::on_header);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Callbacks::on_data);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, Callbacks::on_frame);
  nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks,
                                                               Callbacks::on_invalid_frame);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, Callbacks::on_stream_close);
  nghttp2_session_callbacks_set_before_frame_send_callback(callbacks, Callbacks::before_frame);
  nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, Callbacks::on_frame_sent);
  nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, Callbacks::on_frame_not_sent);
  nghttp2_session_callbacks_set_select_padding_callback(callbacks, Callbacks::padding);
  nghttp2_option* option = nullptr;
  nghttp2_option_new(&option);
  nghttp2_option_set_no_auto_window_update(option, 1);
  if (serves())
    nghttp2_session_server_new2(&session_, callbacks, this, option);
  else
    nghttp2_session_client_new2(&session_, callbacks, this, option);
  nghttp2_option_del(option);
  nghttp2_session_callbacks_del(callbacks);
}

void H2Session::say_settings() {
  std::vector<nghttp2_settings_entry> settings;
  if (!serves()) settings.push_back({NGHTTP2_SETTINGS_ENABLE_PUSH, 0});
  if (options_.streams_max != 0)
    settings.push_back({NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, options_.streams_max});
  if (options_.stream_window_bytes != least_window_bytes)
    settings.push_back({NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, options_.stream_window_bytes});
  if (options_.table_bytes != NGHTTP2_DEFAULT_HEADER_TABLE_SIZE)
    settings.push_back({NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, options_.table_bytes});
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
}

H2Session::~H2Session() {
  nghttp2_session_del(session_);
}

// ---- what the other side says

// nghttp2 passes over frames of streams that it has forgotten; so each is looked at before.
void H2Session::receive(std::string_view bytes) {
  while (!bytes.empty()) {
    std::size_t part = std::min(bytes.size(), payload_left_);
    if (payload_left_ == 0) {
      part = std::min(bytes.size(), frame_header_bytes - header_.size());
      header_ += bytes.substr(0, part);
      if (header_.size() == frame_header_bytes) check_header();
    } else {
      payload_left_ -= part;
    }
    const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
    const ssize_t taken = nghttp2_session_mem_recv(session_, data, part);
    if (taken < 0) return violation(nghttp2_strerror(static_cast<int>(taken)));
    bytes.remove_prefix(part);
  }
}

// Of a stream that it has ended, a peer may only reset it, or let go on who still sends.
void H2Session::check_header() {
  const auto number = [this](std::size_t at, std::size_t count) {
    std::uint32_t out = 0;
    for (std::size_t i = at; i < at + count; ++i)
      out = out << 8 | static_cast<std::uint8_t>(header_[i]);
    return out;
  };
  payload_left_ = number(0, 3);
  const std::uint32_t type = number(3, 1);
  const auto stream = static_cast<std::int32_t>(number(5, 4));
  header_.clear();
  const auto at = ended_.find(stream);
  if (stream == 0 || at == ended_.end()) return;
  const bool harmless = type == NGHTTP2_RST_STREAM || type == NGHTTP2_WINDOW_UPDATE;
  if (at->second == Ended::by_end_stream && harmless) return;
  violation("a frame of a stream that was ended: type " + std::to_string(type) + " of " +
            std::to_string(stream));
}

// The proxy lets a peer send what it has taken, or what it opens its windows to for a long path.
void H2Session::check_windows(std::int32_t stream) {
  const auto initial = static_cast<std::int64_t>(
      nghttp2_session_get_remote_settings(session_, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE));
  const std::int64_t of_all =
      serves() ? opened_window_bytes
               : std::max(connection_windows * std::max(initial, least_window_bytes),
                          opened_window_bytes);
  if (nghttp2_session_get_remote_window_size(session_) > of_all)
    violation("a connection's window grew beyond its size");
  const std::int64_t of_one =
      serves() ? std::max(initial, least_window_bytes) : std::max(initial, opened_window_bytes);
  if (stream != 0 && nghttp2_session_get_stream_remote_window_size(session_, stream) > of_one)
    violation("a stream's window grew beyond its size");
}

void H2Session::frame_arrived(const nghttp2_frame& frame) {
  const std::int32_t stream = frame.hd.stream_id;
  switch (frame.hd.type) {
    case NGHTTP2_SETTINGS:
      settings_seen_ = true;
      greeted_ |= (frame.hd.flags & NGHTTP2_FLAG_ACK) != 0;
      break;
    case NGHTTP2_HEADERS:
      listener_.on_stream_head(stream, std::exchange(fields_, {}));
      break;
    case NGHTTP2_RST_STREAM:
      ended_[stream] = Ended::by_reset;
      break;
    case NGHTTP2_WINDOW_UPDATE:
      check_windows(stream);
      break;
    case NGHTTP2_GOAWAY:
      listener_.on_go_away(frame.goaway.error_code);
      break;
    default:
      break;
  }
  if (!ends_stream(frame.hd)) return;
  ended_[stream] = Ended::by_end_stream;
  listener_.on_stream_end(stream);
}

// ---- what this side says

std::string_view H2Session::next() {
  const std::uint8_t* data = nullptr;
  const ssize_t bytes = nghttp2_session_mem_send(session_, &data);
  if (bytes < 0) violation(nghttp2_strerror(static_cast<int>(bytes)));
  if (bytes <= 0) return {};
  return {reinterpret_cast<const char*>(data), static_cast<std::size_t>(bytes)};
}

// nghttp2 objects to mistakes by itself: to windows that are overrun among others.
void H2Session::frame_left(const nghttp2_frame& frame) {
  std::uint32_t code = NGHTTP2_NO_ERROR;
  if (frame.hd.type == NGHTTP2_RST_STREAM) code = frame.rst_stream.error_code;
  if (frame.hd.type == NGHTTP2_GOAWAY) code = frame.goaway.error_code;
  const bool objects = code != NGHTTP2_NO_ERROR && code != NGHTTP2_CANCEL && !others_;
  if (objects && !scripted_.contains(frame.hd.stream_id))
    violation(std::string(serves() ? "the server" : "the client") +
              " had to object: " + nghttp2_http2_strerror(code));
  if (ends_stream(frame.hd)) listener_.on_message_whole(frame.hd.stream_id);
}

std::int32_t H2Session::request(const H2FieldList& fields, bool bodied) {
  const auto items = names_and_values(fields);
  nghttp2_data_provider body{};
  body.read_callback = Callbacks::read_body;
  return nghttp2_submit_request(session_, nullptr, items.data(), items.size(),
                                bodied ? &body : nullptr, nullptr);
}

void H2Session::interim(std::int32_t stream, const H2FieldList& fields) {
  const auto items = names_and_values(fields);
  nghttp2_submit_headers(session_, NGHTTP2_FLAG_NONE, stream, nullptr, items.data(), items.size(),
                         nullptr);
}

void H2Session::respond(std::int32_t stream, const H2FieldList& fields, bool bodied) {
  const auto items = names_and_values(fields);
  nghttp2_data_provider body{};
  body.read_callback = Callbacks::read_body;
  nghttp2_submit_response(session_, stream, items.data(), items.size(), bodied ? &body : nullptr);
}

void H2Session::resume(std::int32_t stream) {
  nghttp2_session_resume_data(session_, stream);
}

void H2Session::reset(std::int32_t stream, std::uint32_t code) {
  if (serves()) scripted_.insert(stream);
  nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream, code);
}

void H2Session::consume(std::int32_t stream, std::size_t bytes) {
  nghttp2_session_consume(session_, stream, bytes);
}

void H2Session::set_stream_window(std::int32_t stream, std::uint32_t bytes) {
  nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, stream,
                                        static_cast<std::int32_t>(bytes));
}

void H2Session::change_initial_window(std::uint32_t bytes) {
  const nghttp2_settings_entry entry{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, bytes};
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, &entry, 1);
}

void H2Session::change_streams_max(std::uint32_t streams) {
  const nghttp2_settings_entry entry{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, streams};
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, &entry, 1);
}

void H2Session::notice_go_away() {
  nghttp2_submit_shutdown_notice(session_);
}

void H2Session::go_away(std::uint32_t code, std::int32_t last) {
  scripted_.insert(0);
  nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, last, code, nullptr, 0);
}

void H2Session::ping() {
  nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr);
}

}  // namespace ringside::sim
