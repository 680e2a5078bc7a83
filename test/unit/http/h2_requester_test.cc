#include "ringside/http/h2_requester.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "counting_allocator.h"
#include "h2_peer.h"

namespace ringside::http {
namespace {

using namespace test;
using Lines = std::vector<std::string>;

constexpr std::uint8_t type_data = 0;
constexpr std::uint8_t type_headers = 1;
constexpr std::uint8_t type_reset = 3;
constexpr std::uint8_t type_ping = 6;
constexpr std::uint8_t type_goaway = 7;
constexpr std::uint8_t type_window = 8;

// Writes down what it hears, and answers nothing.
class Requests final : public H2RequesterHandler {
 public:
  struct Stream final : H2RequestStream {
    explicit Stream(base::ChunkPool& pool) : arena(pool) {}
    base::Arena arena;
    std::string body;  // of the request, not sent yet
    bool last = false;
  };

  explicit Requests(const H2RequesterLimits& limits = {},
                    const std::string& first = h2_settings() + h2_frame(4, 1, 0, ""))
      : requester(shared, *this, limits) {
    EXPECT_TRUE(requester.start());
    EXPECT_TRUE(requester.send());
    greeting = std::exchange(output, {});
    EXPECT_TRUE(receive(first));
    output.clear();
    events.clear();
  }
  ~Requests() {
    for (auto& stream : streams)
      requester.forget(*stream);
  }

  Stream& ask(Method method = Method::get, bool whole = true, std::string fields = {}) {
    streams.push_back(std::make_unique<Stream>(pool));
    Stream& stream = *streams.back();
    auto* text = static_cast<char*>(stream.arena.allocate(fields.size() + 2, 1));
    fields.append("\r\n").copy(text, fields.size());
    const H2RequestLine line{.method = method == Method::head ? "HEAD" : "GET",
                             .scheme = "http",
                             .authority = "a.test",
                             .path = "/x"};
    EXPECT_TRUE(
        requester.send_head(stream, stream.arena, method, line, {text, fields.size()}, whole));
    EXPECT_TRUE(requester.send());
    return stream;
  }
  bool receive(std::string_view bytes) {
    const bool alive = requester.receive(bytes, now_ms);
    return requester.send() && alive;
  }
  std::vector<H2Frame> of(std::uint8_t type) {
    std::vector<H2Frame> out;
    for (const H2Frame& frame : h2_split(std::exchange(output, {}))) {
      if (frame.type == type) out.push_back(frame);
    }
    return out;
  }
  Lines news() { return std::exchange(events, {}); }

  void on_response_head(H2RequestStream& stream, ResponseHead& head) override {
    framing = head.framing;
    tell(stream, "head " + std::to_string(head.status));
    if (forget_at_head) requester.forget(stream);
  }
  void on_response_data(H2RequestStream& stream, std::string_view bytes) override {
    if (quiet) return;
    tell(stream, "data " + std::string(bytes));
    if (consume) requester.consume(stream, bytes.size());
  }
  void on_response_end(H2RequestStream& stream, FieldList* trailers) override {
    std::string text = "end";
    if (trailers != nullptr) {
      for (const Field& field : *trailers)
        text += " " + std::string(field.name) + "=" + std::string(field.value);
    }
    tell(stream, text);
  }
  void on_response_bad(H2RequestStream& stream, const ParseFault& fault) override {
    tell(stream, "bad");
    reason = fault.reason;
    requester.reset(stream, H2Code::protocol_error);
  }
  void on_stream_closed(H2RequestStream& stream, H2Code code) override {
    tell(stream, "closed " + std::to_string(static_cast<unsigned>(code)));
  }
  void on_settings() override { events.emplace_back("settings"); }
  void on_going_away() override { events.emplace_back("going away"); }
  void on_ping_answered() override { events.emplace_back("pong"); }
  Ready ready(H2RequestStream& stream) override {
    const auto& own = static_cast<Stream&>(stream);
    return {own.body.size(), own.last};
  }
  bool has_room() override { return true; }
  bool write(std::string_view bytes) override {
    output += bytes;
    return true;
  }
  bool write_data(H2RequestStream& stream, std::string_view header, std::size_t bytes) override {
    auto& own = static_cast<Stream&>(stream);
    output += header;
    output += own.body.substr(0, bytes);
    own.body.erase(0, bytes);
    return true;
  }
  void on_framed(H2RequestStream&, std::size_t, bool) override {}

  base::ChunkPool pool;
  H2Shared shared;
  std::vector<std::unique_ptr<Stream>> streams;
  Lines events;
  Framing framing;
  std::string reason;
  std::string greeting;
  std::string output;
  std::uint64_t now_ms = 1000;
  bool consume = true;
  bool forget_at_head = false;
  bool quiet = false;  // events are not written down, as that allocates
  H2Requester requester;

 private:
  void tell(const H2RequestStream& stream, const std::string& event) {
    if (!quiet) events.push_back(std::to_string(stream.id()) + " " + event);
  }
};

std::string answer(std::uint32_t stream, std::string status, const H2FieldList& more = {},
                   bool end = false) {
  H2FieldList fields = {{":status", std::move(status)}};
  fields.insert(fields.end(), more.begin(), more.end());
  return h2_headers(stream, fields, end);
}

TEST(H2Requester, GreetsAsAClient) {
  Requests server;
  ASSERT_TRUE(server.greeting.starts_with(h2_preface));
  const auto frames = h2_split(server.greeting.substr(h2_preface.size()));
  ASSERT_GE(frames.size(), 2U);
  EXPECT_EQ(frames[0].type, 4);
  EXPECT_EQ(frames[0].payload.substr(0, 6), std::string("\0\2\0\0\0\0", 6)) << "no push";
  EXPECT_EQ(frames[1].type, type_window);
}

TEST(H2Requester, SendsARequestAndReadsItsResponse) {
  Requests server;
  server.ask();
  const auto heads = server.of(type_headers);
  ASSERT_EQ(heads.size(), 1U);
  EXPECT_EQ(heads[0].flags, h2_end_headers | h2_end_stream);
  EXPECT_TRUE(server.receive(answer(1, "103") + answer(1, "200") + h2_data(1, "abc", false) +
                             h2_data(1, "", true)));
  EXPECT_EQ(server.news(), (Lines{"1 head 103", "1 head 200", "1 data abc", "1 end"}));
}

TEST(H2Requester, SplitInputIsTheSame) {
  const std::string in = answer(1, "200", {{"content-length", "3"}}) + h2_data(1, "abc", false) +
                         h2_headers(1, {{"sum", "7"}}, true);
  for (std::size_t at = 1; at < in.size(); ++at) {
    Requests server;
    server.ask();
    EXPECT_TRUE(server.receive(in.substr(0, at)) && server.receive(in.substr(at)));
    std::string data;
    for (const std::string& line : server.events) {
      if (line.starts_with("1 data ")) data += line.substr(7);
    }
    EXPECT_EQ(data, "abc");
    EXPECT_EQ(server.events.front(), "1 head 200");
    EXPECT_EQ(server.events.back(), "1 end sum=7") << at;
  }
}

TEST(H2Requester, SendsABodyAndTrailers) {
  Requests server;
  auto& stream = server.ask(Method::post, false);
  FieldList trailers;
  ASSERT_TRUE(trailers.add(stream.arena, {.name = "X-Sum", .value = "7"}));
  stream.body = "abc";
  stream.last = true;
  ASSERT_TRUE(server.requester.send_trailers(stream, trailers));
  EXPECT_TRUE(server.requester.resume(stream) && server.requester.send());
  const auto frames = h2_split(server.output);
  ASSERT_EQ(frames.size(), 3U);
  EXPECT_EQ(frames[1].payload, "abc");
  EXPECT_EQ(frames[1].flags, 0);
  EXPECT_EQ(frames[2].type, type_headers);
  EXPECT_EQ(frames[2].flags, h2_end_headers | h2_end_stream);
  EXPECT_TRUE(stream.request_ended());
}

TEST(H2Requester, KnowsHowLongABodyIs) {
  using Kind = Framing::Kind;
  const struct {
    Method method;
    const char* status;
    H2FieldList fields;
    bool end;
    Kind kind;
    std::uint64_t length;
  } cases[] = {
      {Method::get, "200", {}, false, Kind::chunked, 0},
      {Method::get, "200", {}, true, Kind::length, 0},
      {Method::get, "200", {{"content-length", "5"}}, false, Kind::length, 5},
      {Method::head, "200", {{"content-length", "5"}}, true, Kind::none, 0},
      {Method::get, "204", {}, true, Kind::none, 0},
      {Method::get, "304", {{"content-length", "5"}}, true, Kind::none, 0},
  };
  for (const auto& one : cases) {
    Requests server;
    server.ask(one.method);
    EXPECT_TRUE(server.receive(answer(1, one.status, one.fields, one.end)));
    EXPECT_EQ(server.events.front(), "1 head " + std::string(one.status));
    EXPECT_EQ(server.framing.kind, one.kind) << one.status;
    EXPECT_EQ(server.framing.length, one.length);
  }
}

TEST(H2Requester, RefusesWhatIsMalformed) {
  const std::pair<std::string, std::string> cases[] = {
      {h2_headers(1, {{"a", "b"}}, true), "no valid :status"},
      {answer(1, "99"), "no valid :status"},
      {answer(1, "2000"), "no valid :status"},
      {answer(1, "+20"), "no valid :status"},
      {answer(1, "600"), "no valid :status"},
      {answer(1, "101"), "status 101 in HTTP/2"},
      {answer(1, "100", {}, true), "an interim response that ends the stream"},
      {answer(1, "200", {{":status", "200"}}), "pseudo-header field sent twice"},
      {answer(1, "200", {{":path", "/"}}), "unknown pseudo-header field"},
      {answer(1, "200", {{"a", "b"}, {":x", "/"}}), "pseudo-header field behind others"},
      {answer(1, "200", {{"A", "b"}}), "invalid byte in a field name"},
      {answer(1, "200", {{"a", "b\r\nc"}}), "control character in a field value"},
      {answer(1, "200", {{"connection", "close"}}), "a field of HTTP/1.1 connections in HTTP/2"},
      {answer(1, "200", {{"content-length", "x"}}), "invalid Content-Length"},
      {answer(1, "200", {{"content-length", "5"}}, true), "less body than Content-Length says"},
      {answer(1, "200", {{"content-length", "5"}}) + h2_data(1, "abc", true),
       "less body than Content-Length says"},
      {answer(1, "200", {{"content-length", "1"}}) + h2_data(1, "abc", false),
       "more body than Content-Length says"},
      {answer(1, "204") + h2_data(1, "abc", true), "more body than Content-Length says"},
      {answer(1, "200") + answer(1, "200"), "a second head in a response"},
      {answer(1, "200") + h2_headers(1, {{":status", "200"}}, true),
       "pseudo-header field in the trailers"},
  };
  for (const auto& [bytes, reason] : cases) {
    Requests server;
    server.ask();
    server.output.clear();
    EXPECT_TRUE(server.receive(bytes)) << "others go on: " << reason;
    EXPECT_EQ(server.reason, reason);
    ASSERT_EQ(server.of(type_reset).size(), 1U) << reason;
  }
}

TEST(H2Requester, AWindowOfAStreamOpensOnlyAsBytesAreTaken) {
  Requests server({.stream_window_bytes = 100'000});
  server.consume = false;
  auto& stream = server.ask();
  server.output.clear();
  std::string in = answer(1, "200");
  for (int i = 0; i < 6; ++i)
    in += h2_data(1, std::string(16'000, 'x'), false);
  EXPECT_TRUE(server.receive(in));
  EXPECT_EQ(server.of(type_window).size(), 0U) << "nobody took a byte, and the connection has room";
  server.requester.consume(stream, 96'000);
  EXPECT_TRUE(server.requester.send());
  const auto windows = server.of(type_window);
  ASSERT_EQ(windows.size(), 1U);
  EXPECT_EQ(windows[0].stream, 1U);
  EXPECT_EQ(windows[0].number(0), 96'000U);
}

TEST(H2Requester, TheConnectionsWindowOpensWhoeverTakesBytes) {
  Requests server({.stream_window_bytes = 1 << 20});
  server.consume = false;
  server.quiet = true;
  bool opened = false;
  for (std::uint32_t id = 1; id <= 19; id += 2) {
    server.ask();
    server.output.clear();
    std::string in = answer(id, "200");
    for (int i = 0; i < 64; ++i)
      in += h2_data(id, std::string(16'000, 'x'), false);
    EXPECT_TRUE(server.receive(in));
    for (const H2Frame& window : server.of(type_window))
      opened = opened || window.stream == 0;
  }
  EXPECT_TRUE(opened);
}

TEST(H2Requester, GoawayClosesWhatTheServerDidNotTake) {
  Requests server;
  server.ask();
  server.ask();
  EXPECT_TRUE(server.requester.takes_requests());
  server.receive(h2_frame(type_goaway, 0, 0, h2_number(1, 4) + h2_number(0, 4)));
  EXPECT_EQ(server.news(), (Lines{"going away", "3 closed 7"}));
  EXPECT_FALSE(server.requester.takes_requests());
  server.receive(answer(1, "200", {}, true));
  EXPECT_EQ(server.news(), (Lines{"1 head 200", "1 end"}));
}

TEST(H2Requester, AResetEndsAStream) {
  Requests server;
  server.ask();
  EXPECT_TRUE(server.receive(h2_reset(1, 8)));
  EXPECT_EQ(server.news(), (Lines{"1 closed 8"}));
  auto& stream = server.ask(Method::post, false);
  EXPECT_TRUE(server.receive(answer(3, "200", {}, true) + h2_reset(3, 0)));
  EXPECT_EQ(server.news(), (Lines{"3 head 200", "3 end", "3 closed 0"}));
  EXPECT_TRUE(stream.response_ended());
}

TEST(H2Requester, AStreamThatIsForgottenWhileItIsToldHearsNoMore) {
  Requests server;
  server.forget_at_head = true;
  server.ask();
  server.ask();
  EXPECT_TRUE(server.receive(answer(1, "200", {}, true) + answer(3, "200") +
                             h2_data(3, "abc", false) + h2_headers(3, {{"sum", "7"}}, true)));
  EXPECT_EQ(server.news(), (Lines{"1 head 200", "3 head 200"}));
}

TEST(H2Requester, PingsAreAnsweredBothWays) {
  Requests server;
  EXPECT_TRUE(server.requester.ping() && server.requester.send());
  EXPECT_EQ(server.of(type_ping).size(), 1U);
  EXPECT_TRUE(server.receive(h2_frame(type_ping, 1, 0, "12345678")));
  EXPECT_EQ(server.news(), (Lines{"pong"}));
  EXPECT_TRUE(server.receive(h2_frame(type_ping, 0, 0, "12345678")));
  EXPECT_EQ(server.of(type_ping)[0].flags, 1);
}

// RFC 9113 §8.4: nobody pushes to who has forbidden it with the first frame.
TEST(H2Requester, APushEndsTheConnectionBeforeOurSettingsAreAcknowledged) {
  Requests server({}, h2_settings());
  server.ask();
  server.output.clear();
  EXPECT_FALSE(server.receive(h2_frame(5, h2_end_headers, 1, h2_number(2, 4) + "\x88")));
  EXPECT_EQ(server.requester.failure(), "a push, which was forbidden");
  const auto frames = h2_split(server.output);
  ASSERT_FALSE(frames.empty());
  EXPECT_EQ(frames.back().type, type_goaway);
  EXPECT_EQ(frames.back().number(4), 1U);
}

TEST(H2Requester, FloodsEndTheConnection) {
  const std::string floods[] = {
      h2_frame(type_ping, 0, 0, "12345678"),
      h2_settings(),
      h2_frame(type_data, 0, 1, ""),
      h2_window(0, 1),
      h2_frame(200, 0, 0, ""),
  };
  for (const std::string& frame : floods) {
    Requests server;
    server.ask();
    bool alive = server.receive(answer(1, "200"));
    for (int i = 0; i < 5000 && alive; ++i)
      alive = server.receive(frame);
    EXPECT_FALSE(alive);
    EXPECT_EQ(server.requester.failure(), "too many frames that bring nothing");
    EXPECT_EQ(server.of(type_goaway).back().number(4), 11U);
  }
}

TEST(H2Requester, AServerThatResetsAllTheTimeLosesTheConnection) {
  Requests server;
  server.quiet = true;
  std::uint32_t id = 1;
  for (int i = 0; i < 2000; ++i, id += 2) {  // each is made up for
    server.ask();
    server.ask();
    ASSERT_TRUE(server.receive(answer(id, "200", {}, true) + h2_reset(id + 2, 8)));
    id += 2;
  }
  bool alive = true;
  int resets = 0;
  for (; alive && resets < 1000; ++resets, id += 2) {
    server.ask();
    alive = server.receive(h2_reset(id, 8));
  }
  EXPECT_FALSE(alive);
  EXPECT_GT(resets, 200);
  EXPECT_EQ(server.requester.failure(), "too many requests reset");
}

TEST(H2Requester, SteadyStateAllocatesNothing) {
  Requests server;
  server.quiet = true;
  const std::string data(1000, 'x');
  const auto exchange = [&](std::uint32_t id, std::string_view in) {
    Requests::Stream& stream = *server.streams[id / 2];
    char text[] = "X-Case: yes\r\n\r\n";
    const H2RequestLine line{
        .method = "GET", .scheme = "http", .authority = "a.test", .path = "/x"};
    const test::AllocationCount count;
    EXPECT_TRUE(server.requester.send_head(stream, stream.arena, Method::get, line,
                                           {text, sizeof text - 1}, true));
    EXPECT_TRUE(server.requester.send());
    EXPECT_TRUE(server.receive(in));
    stream.arena.release();
    return count.count();
  };
  std::vector<std::string> answers;
  for (std::uint32_t id = 1; id < 400; id += 2) {
    answers.push_back(answer(id, "200", {{"content-length", "1000"}}) + h2_data(id, data, true));
    server.streams.push_back(std::make_unique<Requests::Stream>(server.pool));
  }
  server.output.reserve(1 << 20);
  std::uint64_t late = 0;
  for (std::uint32_t id = 1; id < 400; id += 2) {
    const std::uint64_t count = exchange(id, answers[id / 2]);
    if (id > 200) late += count;
  }
  EXPECT_EQ(late, 0U);
}

}  // namespace
}  // namespace ringside::http
