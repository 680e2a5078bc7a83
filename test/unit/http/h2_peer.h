// A client's side of HTTP/2, frame by frame, and a handler that writes down what it hears.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ringside/base/arena.h"
#include "ringside/http/h2_connection.h"

namespace ringside::test {

inline constexpr std::string_view h2_preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

using H2FieldList = std::vector<std::pair<std::string, std::string>>;

inline std::string h2_number(std::uint32_t value, int bytes) {
  std::string out;
  for (int i = bytes - 1; i >= 0; --i)
    out += static_cast<char>(value >> (8 * i));
  return out;
}

inline std::string h2_frame(std::uint8_t type, std::uint8_t flags, std::uint32_t stream,
                            std::string_view payload) {
  return h2_number(static_cast<std::uint32_t>(payload.size()), 3) + static_cast<char>(type) +
         static_cast<char>(flags) + h2_number(stream, 4) + std::string(payload);
}

// An HPACK integer with a prefix of 7 bits, the eighth 0.
inline std::string h2_length(std::size_t value) {
  if (value < 127) return {static_cast<char>(value)};
  std::string out = "\x7f";
  for (value -= 127; value >= 128; value >>= 7)
    out += static_cast<char>(0x80 | (value & 0x7f));
  return out + static_cast<char>(value);
}

// Literals that no table is needed for (RFC 7541 §6.2.2).
inline std::string h2_fields(const H2FieldList& fields) {
  std::string out;
  for (const auto& [name, value] : fields) {
    out += '\0';
    out += h2_length(name.size()) + name + h2_length(value.size()) + value;
  }
  return out;
}

inline H2FieldList h2_request(std::string method, std::string path, const H2FieldList& more = {}) {
  H2FieldList out = {{":method", std::move(method)},
                     {":scheme", "http"},
                     {":authority", "a.test"},
                     {":path", std::move(path)}};
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

inline constexpr std::uint8_t h2_end_stream = 1;
inline constexpr std::uint8_t h2_end_headers = 4;

inline std::string h2_headers(std::uint32_t stream, const H2FieldList& fields, bool end) {
  return h2_frame(1, h2_end_headers | (end ? h2_end_stream : 0), stream, h2_fields(fields));
}
inline std::string h2_data(std::uint32_t stream, std::string_view bytes, bool end) {
  return h2_frame(0, end ? h2_end_stream : 0, stream, bytes);
}
inline std::string h2_reset(std::uint32_t stream, std::uint32_t code) {
  return h2_frame(3, 0, stream, h2_number(code, 4));
}
inline std::string h2_window(std::uint32_t stream, std::uint32_t bytes) {
  return h2_frame(8, 0, stream, h2_number(bytes, 4));
}
inline std::string h2_settings(std::string_view entries = {}) {
  return h2_frame(4, 0, 0, entries);
}

struct H2Frame {
  std::uint8_t type = 0;
  std::uint8_t flags = 0;
  std::uint32_t stream = 0;
  std::string payload;
  std::uint32_t number(std::size_t at) const {
    std::uint32_t out = 0;
    for (std::size_t i = at; i < at + 4; ++i)
      out = out << 8 | static_cast<std::uint8_t>(payload.at(i));
    return out;
  }
};

// All whole frames of `bytes`.
inline std::vector<H2Frame> h2_split(std::string_view bytes) {
  std::vector<H2Frame> out;
  auto byte = [&](std::size_t at) { return static_cast<std::uint8_t>(bytes[at]); };
  while (bytes.size() >= 9) {
    const std::size_t length = std::size_t{byte(0)} << 16 | byte(1) << 8 | byte(2);
    if (bytes.size() < 9 + length) break;
    const std::uint32_t stream =
        std::uint32_t{byte(5)} << 24 | byte(6) << 16 | byte(7) << 8 | byte(8);
    out.push_back({byte(3), byte(4), stream, std::string(bytes.substr(9, length))});
    bytes.remove_prefix(9 + length);
  }
  return out;
}

// Answers nothing by itself; `events` has one line for each call.
class H2Recorder final : public http::H2Handler {
 public:
  struct Stream final : http::H2Stream {
    explicit Stream(base::ChunkPool& pool) : arena(pool) { keep_in(arena); }
    base::Arena arena;
    std::string body;  // of the response, not sent yet
    bool last = false;
  };

  explicit H2Recorder(const http::H2Limits& limits = {}) : connection(shared, *this, limits) {
    started = connection.start();
  }
  ~H2Recorder() {
    for (auto& stream : streams)
      connection.forget(*stream);
  }

  // What a client sends; then everything that there is to say is written.
  bool receive(std::string_view bytes) {
    const bool alive = connection.receive(bytes, now_ms);
    return connection.send() && alive;
  }
  bool greet() { return receive(std::string(h2_preface) + h2_settings()); }
  Stream& stream(std::int32_t id) {
    for (auto& stream : streams) {
      if (stream->id() == id) return *stream;
    }
    std::abort();
  }
  // Answers with a body that is whole.
  bool respond(std::int32_t id, std::string body, const http::FieldList* trailers = nullptr) {
    Stream& to = stream(id);
    std::string text = "HTTP/1.1 200 OK\r\nX-Case: Yes\r\nConnection: close\r\n\r\n";
    if (!connection.send_head(to, 200, text, http::H2Connection::Head::followed)) return false;
    if (trailers != nullptr && !connection.send_trailers(to, *trailers)) return false;
    to.body = std::move(body);
    to.last = true;
    return connection.resume(to) && connection.send();
  }
  std::vector<H2Frame> take_frames() { return h2_split(std::exchange(output, {})); }

  http::H2Stream* on_stream() override {
    if (refuse) return nullptr;
    streams.push_back(std::make_unique<Stream>(pool));
    return streams.back().get();
  }
  void on_request_head(http::H2Stream& stream, http::RequestHead& head) override {
    heads.push_back(&head);
    events.push_back(name(stream) + "head " + std::string(head.method_text) + " " +
                     std::string(head.target));
  }
  void on_request_data(http::H2Stream& stream, std::string_view bytes) override {
    events.push_back(name(stream) + "data " + std::string(bytes));
    if (consume) connection.consume(stream, bytes.size());
  }
  void on_request_end(http::H2Stream& stream, http::FieldList* trailers) override {
    std::string text = name(stream) + "end";
    if (trailers != nullptr) {
      for (const http::Field& field : *trailers)
        text += " " + std::string(field.name) + "=" + std::string(field.value);
    }
    events.push_back(text);
  }
  void on_request_bad(http::H2Stream& stream, const http::ParseFault& fault) override {
    events.push_back(name(stream) + "bad " + std::to_string(fault.status));
    connection.reset(stream, http::H2Code::protocol_error);
  }
  void on_stream_reset(http::H2Stream& stream, http::H2Code code) override {
    events.push_back(name(stream) + "reset " + std::to_string(static_cast<unsigned>(code)));
  }
  Ready ready(http::H2Stream& stream) override {
    const auto& own = static_cast<Stream&>(stream);
    return {own.body.size(), own.last};
  }
  bool has_room() override { return output.size() < room; }
  bool write(std::string_view bytes) override {
    output += bytes;
    return true;
  }
  bool write_data(http::H2Stream& stream, std::string_view header, std::size_t bytes) override {
    auto& own = static_cast<Stream&>(stream);
    output += header;
    output += own.body.substr(0, bytes);
    own.body.erase(0, bytes);
    return true;
  }
  void on_framed(http::H2Stream&, std::size_t bytes) override {
    framed.emplace_back(output.size(), bytes);
  }

  static std::string name(const http::H2Stream& stream) {
    return std::to_string(stream.id()) + " ";
  }

  base::ChunkPool pool;
  http::H2Shared shared;
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<const http::RequestHead*> heads;  // as long as their streams
  std::vector<std::string> events;
  std::string output;
  std::vector<std::pair<std::size_t, std::size_t>> framed;  // where it ends, and its length
  std::size_t room = std::size_t{1} << 24;
  std::uint64_t now_ms = 1000;
  bool refuse = false;
  bool consume = true;
  bool started = false;
  http::H2Connection connection;
};

}  // namespace ringside::test
