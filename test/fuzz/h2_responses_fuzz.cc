// What a server sends as frames of HTTP/2, to requests that are under way. The input: a byte that
// says how many follow that steer, those, and what the server sends. Oracles: whole input equals
// split input; and steered (pieces of any size; streams begun, reset and forgotten, bodies taken
// and sent at any time, from within calls too; no room now and then): calls come in order and none
// for a stream that is over, windows are kept both ways, nothing wrong is sent, all memory comes
// back.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ringside/http/h2_requester.h"

#include "h2_server.h"

namespace {

using namespace ringside;
using fuzz::require;

constexpr std::uint32_t least_window_bytes = 65'535;  // until the server has seen our SETTINGS
constexpr std::size_t streams_max = 24;
constexpr std::size_t room_bytes = 200;

// Small enough that the fuzzer reaches them.
constexpr http::H2RequesterLimits tight_limits{
    .head = {.line_bytes_max = 40, .head_bytes_max = 400, .fields_max = 5},
    .stream_window_bytes = 100};

// Bytes that choose what is done, again and again.
class Steering {
 public:
  explicit Steering(std::string_view bytes) : bytes_(bytes) {}
  unsigned next() {
    if (bytes_.empty()) return 0;
    return static_cast<std::uint8_t>(bytes_[at_++ % bytes_.size()]);
  }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

struct Stream final : http::H2RequestStream {
  enum class Heard : std::uint8_t { nothing, head, end, bad };

  explicit Stream(base::ChunkPool& pool) : arena(pool) {}
  base::Arena arena;
  std::size_t body_bytes = 0;  // of the request, not sent yet
  bool last = false;
  bool head_framed = false;
  Heard heard = Heard::nothing;
  std::uint64_t received = 0;
  std::optional<std::uint64_t> length;
  std::size_t held = 0;  // received and not given back
  bool over = false;     // on_stream_closed was called
  bool forgotten = false;
};

class Client final : public http::H2RequesterHandler {
 public:
  Client(const http::H2RequesterLimits& limits, Steering steering, bool steered)
      : steering_(steering),
        window_bytes_(std::max(limits.stream_window_bytes, least_window_bytes)),
        steered_(steered) {
    requester_.emplace(shared_, *this, limits);
    require(requester_->start(), "there is memory");
    drain();
  }
  ~Client() {
    for (auto& stream : streams_)
      requester_->forget(*stream);
    requester_.reset();
    streams_.clear();
    require(shared_.memory().in_use() == 0, "memory of frames comes back");
    require(pool_.in_use() == 0, "memory of streams comes back");
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void ask(http::Method method, std::size_t body_bytes, bool whole) {
    if (streams_.size() >= streams_max || !requester_->takes_requests()) return;
    streams_.push_back(std::make_unique<Stream>(pool_));
    Stream& stream = *streams_.back();
    constexpr std::string_view fields = "Accept: x\r\nConnection: close\r\n\r\n";
    auto* text = static_cast<char*>(stream.arena.allocate(fields.size(), 1));
    fields.copy(text, fields.size());
    const http::H2RequestLine line{
        .method = whole ? (method == http::Method::head ? "HEAD" : "GET") : "POST",
        .scheme = "http",
        .authority = "a.test",
        .path = "/x"};
    stream.body_bytes = whole ? 0 : body_bytes;
    stream.last = true;
    require(requester_->send_head(stream, stream.arena, method, line, {text, fields.size()}, whole),
            "a request is taken");
  }
  void receive(std::string_view bytes) {
    model_.said(bytes);
    const fuzz::Exact piece(bytes);
    const bool was = alive_;
    const std::size_t calls = calls_;
    alive_ = requester_->receive(piece.view(), 1000) && alive_;
    require(was || calls_ == calls, "a connection that has ended takes nothing");
  }
  bool alive() const { return alive_; }
  // Whether it wrote something.
  bool drain() {
    if (sent_all_) return false;
    written_ = 0;
    sent_all_ = !requester_->send();
    require(model_.between_frames(), "whole frames are sent");
    std::erase_if(streams_, [](const auto& stream) { return stream->forgotten; });
    return written_ != 0;
  }
  void judge() const {
    if (alive_) model_.judge();
  }
  void act() { act(steering_.next()); }
  unsigned choose() { return steering_.next(); }
  std::string heard() const { return heard_; }

  void on_response_head(http::H2RequestStream& of, http::ResponseHead& head) override {
    Stream& stream = called(of);
    require(stream.heard == Stream::Heard::nothing, "one final head comes, and first");
    require(head.status >= 100 && head.status < 600 && head.status != 101, "a status is valid");
    fuzz::check_fields(head.fields);
    if (!head.interim()) {
      stream.heard = Stream::Heard::head;
      if (head.framing.kind == http::Framing::Kind::length) stream.length = head.framing.length;
      if (head.framing.kind == http::Framing::Kind::none) stream.length = 0;
    }
    tell(of, "head " + std::to_string(head.status));
    meddle();
  }
  void on_response_data(http::H2RequestStream& of, std::string_view bytes) override {
    Stream& stream = called(of);
    require(stream.heard == Stream::Heard::head, "a body follows its head");
    stream.received += bytes.size();
    stream.held += bytes.size();
    require(!stream.length || stream.received <= *stream.length, "no body is too long");
    require(stream.held <= window_bytes_, "no more comes than the window lets");
    tell(of, "data ", bytes);
    meddle();
  }
  void on_response_end(http::H2RequestStream& of, http::FieldList* trailers) override {
    Stream& stream = called(of);
    require(stream.heard == Stream::Heard::head, "the end follows a head");
    require(!stream.length || stream.received == *stream.length, "no body is too short");
    require(of.response_ended(), "the end is known");
    stream.heard = Stream::Heard::end;
    if (trailers != nullptr) fuzz::check_fields(*trailers);
    tell(of, trailers == nullptr ? "end" : "end with trailers");
    meddle();
  }
  void on_response_bad(http::H2RequestStream& of, const http::ParseFault&) override {
    Stream& stream = called(of);
    require(stream.heard <= Stream::Heard::head, "what is over is not bad");
    stream.heard = Stream::Heard::bad;
    tell(of, "bad");
    requester_->reset(of, http::H2Code::protocol_error);
    meddle();
  }
  void on_stream_closed(http::H2RequestStream& of, http::H2Code code) override {
    Stream& stream = called(of);
    stream.over = true;
    require(of.closed(), "it is known that it is closed");
    require(stream.head_framed || code == http::H2Code::refused_stream,
            "what never left may be sent again");
    require(!of.request_ended() || stream.heard != Stream::Heard::end, "nothing was cut");
    tell(of, "closed " + std::to_string(static_cast<unsigned>(code)));
    meddle();
  }
  void on_settings() override { connection_event("settings"); }
  void on_going_away() override {
    connection_event("going away");
    require(!requester_->takes_requests(), "a server that goes away takes nothing");
  }
  void on_ping_answered() override { connection_event("pong"); }

  Ready ready(http::H2RequestStream& of) override {
    Stream& stream = sending(of);
    return {stream.body_bytes, stream.last};
  }
  bool has_room() override { return !steered_ || written_ < room_bytes; }
  bool write(std::string_view bytes) override {
    written_ += bytes.size();
    model_.told(bytes);
    return true;
  }
  bool write_data(http::H2RequestStream& of, std::string_view header, std::size_t bytes) override {
    Stream& stream = sending(of);
    require(bytes <= stream.body_bytes, "no more is sent than there is");
    stream.body_bytes -= bytes;
    return write(std::string(header) + std::string(bytes, 'b'));
  }
  void on_framed(http::H2RequestStream& of, std::size_t, bool written) override {
    Stream& stream = called(of);
    if (!written && !std::exchange(stream.head_framed, true)) {
      // One that was forgotten does not hear that it is closed.
      const auto open = std::ranges::count_if(streams_, [](const auto& one) {
        return one->head_framed && !one->forgotten && !one->closed();
      });
      model_.check_open(static_cast<std::size_t>(open));
    }
  }

 private:
  Stream& called(http::H2RequestStream& of) {
    auto& stream = static_cast<Stream&>(of);
    ++calls_;
    require(!stream.over, "no call for a stream that is closed");
    require(!stream.forgotten, "no call for a stream that was forgotten");
    return stream;
  }
  Stream& sending(http::H2RequestStream& of) {
    Stream& stream = called(of);
    require(!of.closed() && !of.request_ended(), "what is over sends nothing");
    return stream;
  }
  void connection_event(const char* what) {
    ++calls_;
    heard_ += "\n";
    heard_ += what;
    last_.clear();
    meddle();
  }
  // Pieces of a body are joined.
  void tell(const http::H2RequestStream& of, const std::string& what, std::string_view bytes = {}) {
    const std::string event = std::to_string(of.id()) + " " + what;
    const bool joins = !bytes.empty() && event == last_;
    if (!joins) heard_ += "\n" + event;
    heard_ += bytes;
    last_ = bytes.empty() ? std::string() : event;
  }
  void meddle() {
    if (steered_) act(steering_.next());
  }

  // Whatever a handler may do at any time.
  void act(unsigned choice) {
    if (!alive_ || sent_all_) return;
    Stream* stream = streams_.empty() ? nullptr : streams_[choice / 16 % streams_.size()].get();
    if (stream != nullptr && stream->forgotten) stream = nullptr;
    switch (choice % 16) {
      case 1:
        return ask(http::Method::get, 0, true);
      case 2:
        return ask(http::Method::post, 300, false);
      case 3:
        return ask(http::Method::head, 0, true);
      case 4:
        return ask(http::Method::post, 70'000, false);
      case 5:
        return requester_->go_away();
      case 6:
        return require(requester_->ping(), "there is memory");
      default:
        if (stream != nullptr) act_on(*stream, choice % 16);
    }
  }
  void act_on(Stream& stream, unsigned choice) {
    switch (choice) {
      case 7:
      case 8:
        requester_->consume(stream, std::exchange(stream.held, 0));
        return;
      case 9:
        requester_->consume(stream, std::exchange(stream.held, stream.held / 2) - stream.held);
        return;
      case 10:
        return requester_->reset(stream, http::H2Code::cancel);
      case 11:
        requester_->reset(stream, http::H2Code::cancel);
        [[fallthrough]];
      case 12:
        requester_->forget(stream);
        stream.forgotten = true;
        return;
      case 13:
        stream.last = !stream.last;
        return require(requester_->resume(stream), "there is memory");
      case 14:
        return send_trailers(stream);
      default:
        return;
    }
  }
  void send_trailers(Stream& stream) {
    if (stream.request_ended() || stream.closed()) return;
    http::FieldList trailers;
    require(trailers.add(stream.arena, {.name = "X-Sum", .value = "7"}) &&
                requester_->send_trailers(stream, trailers) && requester_->resume(stream),
            "there is memory");
  }

  Steering steering_;
  std::size_t window_bytes_;
  bool steered_;
  base::ChunkPool pool_;
  http::H2Shared shared_;
  fuzz::H2ServerModel model_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::string heard_;
  std::string last_;  // the event before, if it was a piece of a body
  std::size_t written_ = 0;
  std::size_t calls_ = 0;
  bool alive_ = true;
  bool sent_all_ = false;
  std::optional<http::H2Requester> requester_;
};

void begin(Client& client) {
  client.ask(http::Method::get, 0, true);
  client.ask(http::Method::post, 40, false);
  client.ask(http::Method::head, 0, true);
  client.drain();
}

// Nothing is sent before all was received, since what is said depends on when.
std::string play(std::string_view input, const http::H2RequesterLimits& limits, bool split) {
  Client client(limits, Steering({}), false);
  begin(client);
  const std::size_t at = split ? fuzz::split_of(input) : input.size();
  client.receive(input.substr(0, at));
  client.receive(input.substr(at));
  const std::string out = client.heard();
  client.drain();
  return out;
}

void play_steered(std::string_view input, const http::H2RequesterLimits& limits,
                  std::string_view steering) {
  Client client(limits, Steering(steering), true);
  begin(client);
  // Beyond the first windows.
  if (client.choose() % 8 == 1) client.ask(http::Method::post, 70'000, false);
  while (!input.empty()) {
    const unsigned choice = client.choose();
    const std::size_t part =
        std::min<std::size_t>(input.size(), choice % 4 == 0 ? 1000 : 1 + choice / 4);
    client.receive(input.substr(0, part));
    input.remove_prefix(part);
    client.act();
    if (choice % 3 != 0) client.drain();
  }
  while (client.alive() && client.drain()) {
  }
  client.judge();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  std::string_view input(reinterpret_cast<const char*>(data), bytes);
  if (input.empty()) return 0;
  const std::size_t steering_bytes =
      std::min<std::size_t>(static_cast<std::uint8_t>(input[0]) % 64, input.size() - 1);
  const std::string_view steering = input.substr(1, steering_bytes);
  input.remove_prefix(1 + steering_bytes);
  for (const http::H2RequesterLimits& limits : {http::H2RequesterLimits{}, tight_limits}) {
    fuzz::require_equal(play(input, limits, false), play(input, limits, true),
                        "split input differs");
    play_steered(input, limits, steering);
  }
  return 0;
}
