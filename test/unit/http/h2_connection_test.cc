#include "ringside/http/h2_connection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "counting_allocator.h"
#include "h2_peer.h"

namespace ringside::http {
namespace {

using namespace test;
using Lines = std::vector<std::string>;

constexpr std::uint8_t data = 0;
constexpr std::uint8_t headers = 1;
constexpr std::uint8_t rst_stream = 3;
constexpr std::uint8_t goaway = 7;
constexpr std::uint8_t window_update = 8;

std::vector<H2Frame> of_type(const std::vector<H2Frame>& frames, std::uint8_t type) {
  std::vector<H2Frame> out;
  std::copy_if(frames.begin(), frames.end(), std::back_inserter(out),
               [type](const H2Frame& frame) { return frame.type == type; });
  return out;
}

// Of the first GOAWAY.
std::optional<std::uint32_t> end_code(const std::vector<H2Frame>& frames) {
  const auto found = of_type(frames, goaway);
  if (found.empty()) return std::nullopt;
  return found.front().number(4);
}

TEST(H2Connection, BeginsWithOurSettings) {
  H2Recorder peer({.streams_max = 7, .stream_window_bytes = 100'000});
  ASSERT_TRUE(peer.started);
  ASSERT_TRUE(peer.greet());
  const auto frames = peer.take_frames();
  ASSERT_GE(frames.size(), 3U);
  EXPECT_EQ(frames[0].type, 4);
  EXPECT_EQ(frames[0].payload, h2_number(3, 2) + h2_number(7, 4) + h2_number(4, 2) +
                                   h2_number(100'000, 4) + h2_number(6, 2) + h2_number(32'768, 4) +
                                   h2_number(9, 2) + h2_number(1, 4) + h2_number(8, 2) +
                                   h2_number(1, 4));
  const auto windows = of_type(frames, window_update);
  ASSERT_EQ(windows.size(), 1U);
  EXPECT_EQ(windows[0].number(0), 1024U * 1024 - 65'535);
}

TEST(H2Connection, ReadsTheSameHoweverTheInputIsSplit) {
  const std::string input =
      std::string(h2_preface) + h2_settings() + h2_headers(1, h2_request("POST", "/a"), false) +
      h2_data(1, "xy", false) + h2_frame(2, 0, 1, h2_number(3, 4) + "\x05") +
      h2_headers(3, h2_request("GET", "/b"), true) + h2_headers(1, {{"t", "1"}}, true);
  const Lines expected = {"1 head POST /a", "1 data xy", "3 head GET /b", "1 end t=1"};
  for (std::size_t at = 1; at < input.size(); ++at) {
    H2Recorder peer;
    ASSERT_TRUE(peer.receive(input.substr(0, at)));
    ASSERT_TRUE(peer.receive(input.substr(at)));
    Lines joined;  // a split body comes in two pieces
    for (const std::string& event : peer.events) {
      if (event == "1 data y" && joined.back() == "1 data x")
        joined.back() = "1 data xy";
      else
        joined.push_back(event);
    }
    ASSERT_EQ(joined, expected) << "split at " << at;
  }
}

TEST(H2Connection, BodiesAreCountedAgainstContentLength) {
  const auto post = h2_request("POST", "/", {{"content-length", "5"}});
  H2Recorder peer;
  ASSERT_TRUE(peer.greet());
  EXPECT_TRUE(peer.receive(h2_headers(1, post, false) + h2_data(1, "hello", true)));
  EXPECT_TRUE(peer.receive(h2_headers(3, post, false) + h2_data(3, "hell", true)));
  EXPECT_TRUE(peer.receive(h2_headers(5, post, false) + h2_data(5, "hello!", false)));
  EXPECT_TRUE(
      peer.receive(h2_headers(7, h2_request("POST", "/", {{"content-length", "0"}}), false) +
                   h2_data(7, "", true)));
  EXPECT_TRUE(
      peer.receive(h2_headers(9, h2_request("POST", "/", {{"content-length", "0"}}), false) +
                   h2_data(9, "GET /smuggled", true)));
  EXPECT_EQ(peer.events,
            (Lines{"1 head POST /", "1 data hello", "1 end", "3 head POST /", "3 data hell",
                   "3 bad 400", "3 reset 1", "5 head POST /", "5 bad 400", "5 reset 1",
                   "7 head POST /", "7 end", "9 head POST /", "9 bad 400", "9 reset 1"}));
  for (const H2Frame& frame : of_type(peer.take_frames(), rst_stream))
    EXPECT_EQ(frame.number(0), 1U);
}

TEST(H2Connection, ASecondHeadInARequestIsMalformed) {
  H2Recorder peer;
  ASSERT_TRUE(peer.greet());
  EXPECT_TRUE(peer.receive(h2_headers(1, h2_request("POST", "/"), false) +
                           h2_headers(1, {{"a", "b"}}, false)));
  EXPECT_EQ(peer.events, (Lines{"1 head POST /", "1 bad 400", "1 reset 1"}));
}

TEST(H2Connection, ATunnelHasDataAndNoTrailers) {
  H2Recorder peer;
  ASSERT_TRUE(peer.greet());
  H2FieldList fields = h2_request("CONNECT", "/chat", {{"sec-websocket-version", "13"}});
  fields.insert(fields.begin(), {":protocol", "websocket"});
  ASSERT_TRUE(peer.receive(h2_headers(1, fields, false) + h2_headers(3, fields, false)));
  ASSERT_TRUE(peer.receive(h2_data(1, "hello", false) + h2_data(1, "", true)));
  ASSERT_TRUE(peer.receive(h2_headers(3, {{"x-a", "b"}}, true)));
  EXPECT_EQ(peer.events, (Lines{"1 head GET /chat", "3 head GET /chat", "1 data hello", "1 end",
                                "3 bad 400", "3 reset 1"}));
}

TEST(H2Connection, ResponsesAreFieldsAndFramesWithoutTheConnectionsOwn) {
  H2Recorder peer;
  ASSERT_TRUE(peer.greet());
  ASSERT_TRUE(peer.receive(h2_headers(1, h2_request("GET", "/"), true)));
  peer.take_frames();
  ASSERT_TRUE(peer.respond(1, "body"));
  const auto frames = peer.take_frames();
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(frames[0].type, headers);
  EXPECT_EQ(frames[0].flags, h2_end_headers);
  EXPECT_EQ(frames[1].type, data);
  EXPECT_EQ(frames[1].flags, h2_end_stream);
  EXPECT_EQ(frames[1].payload, "body");
  EXPECT_TRUE(peer.stream(1).closed());
  EXPECT_TRUE(peer.stream(1).response_ended());
  EXPECT_EQ(peer.events, Lines{"1 head GET /"}) << "it was not reset";
  // :status 200 is index 8; x-case is a literal; connection is not there.
  EXPECT_EQ(frames[0].payload[0], '\x88');
  EXPECT_EQ(frames[0].payload.size(), 1 + 1 + 1 + std::size_t{5} + 1 + 3);
}

// Who does not know the limit yet may send the body of a request that was refused by it.
TEST(H2Connection, ABodyMayFollowARequestThatWasOneTooMany) {
  H2Recorder peer({.streams_max = 1});
  ASSERT_TRUE(peer.greet());
  ASSERT_TRUE(peer.receive(h2_headers(1, h2_request("GET", "/a"), true) +
                           h2_headers(3, h2_request("POST", "/b"), false)));
  const auto resets = of_type(peer.take_frames(), rst_stream);
  ASSERT_EQ(resets.size(), 1U);
  EXPECT_EQ(resets[0].stream, 3U);
  EXPECT_EQ(resets[0].number(0), static_cast<std::uint32_t>(H2Code::refused_stream));
  ASSERT_TRUE(peer.respond(1, "ok"));
  EXPECT_TRUE(peer.receive(h2_headers(5, h2_request("GET", "/c"), true) + h2_data(3, "x", true)));
  const Lines wanted = {"1 head GET /a", "5 head GET /c"};
  EXPECT_EQ(peer.events, wanted);
}

// Else a response would be taken for sent whose last frame has not left yet.
TEST(H2Connection, AFrameIsToldOfBehindItsBytes) {
  H2Recorder peer;
  ASSERT_TRUE(peer.greet());
  ASSERT_TRUE(peer.receive(h2_headers(1, h2_request("GET", "/"), true)));
  peer.take_frames();
  base::Arena arena(peer.pool);
  FieldList trailers;
  ASSERT_TRUE(trailers.add(arena, {.name = "a", .value = "b"}));
  ASSERT_TRUE(peer.respond(1, "ok", &trailers));
  ASSERT_EQ(peer.framed.size(), 3U);
  std::size_t at = 0;
  for (const auto& [end, bytes] : peer.framed) {
    at += bytes;
    EXPECT_EQ(end, at);
  }
  EXPECT_EQ(at, peer.output.size());
}

TEST(H2Connection, TrailersEndTheStream) {
  H2Recorder peer;
  ASSERT_TRUE(peer.greet());
  ASSERT_TRUE(peer.receive(h2_headers(1, h2_request("GET", "/"), true)));
  peer.take_frames();
  base::Arena arena(peer.pool);
  FieldList trailers;
  ASSERT_TRUE(trailers.add(arena, {.name = "Grpc-Status", .value = "0"}));
  ASSERT_TRUE(trailers.add(arena, {.name = "te", .value = "x", .hop_by_hop = true}));
  ASSERT_TRUE(peer.respond(1, "ok", &trailers));
  const auto frames = peer.take_frames();
  ASSERT_EQ(frames.size(), 3U);
  EXPECT_EQ(frames[1].flags, 0) << "no END_STREAM on the body";
  EXPECT_EQ(frames[2].type, headers);
  EXPECT_EQ(frames[2].flags, h2_end_headers | h2_end_stream);
}

TEST(H2Connection, NothingIsSentBeyondTheClientsWindow) {
  H2Recorder peer;
  ASSERT_TRUE(
      peer.receive(std::string(h2_preface) + h2_settings(h2_number(4, 2) + h2_number(0, 4))));
  ASSERT_TRUE(peer.receive(h2_headers(1, h2_request("GET", "/"), true)));
  ASSERT_TRUE(peer.respond(1, std::string(10, 'x')));
  EXPECT_TRUE(of_type(peer.take_frames(), data).empty());
  ASSERT_TRUE(peer.receive(h2_window(1, 4)));
  auto sent = of_type(peer.take_frames(), data);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].payload, "xxxx");
  ASSERT_TRUE(peer.receive(h2_window(1, 6)));
  sent = of_type(peer.take_frames(), data);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].flags, h2_end_stream);
}

TEST(H2Connection, ClientsMaySendMoreOnlyForWhatWasConsumed) {
  H2Recorder peer({.stream_window_bytes = 65'535, .connection_window_bytes = 65'535});
  peer.consume = false;
  ASSERT_TRUE(peer.greet());
  const std::string piece(16'384, 'x');
  ASSERT_TRUE(peer.receive(h2_headers(1, h2_request("POST", "/"), false) +
                           h2_data(1, piece, false) + h2_data(1, piece, false) +
                           h2_data(1, piece, false)));
  EXPECT_TRUE(of_type(peer.take_frames(), window_update).empty());
  peer.connection.consume(peer.stream(1), 3 * piece.size());
  ASSERT_TRUE(peer.connection.send());
  const auto windows = of_type(peer.take_frames(), window_update);
  ASSERT_EQ(windows.size(), 2U) << "of the stream and of the connection";
  EXPECT_EQ(windows[0].number(0), 3 * piece.size());
}

TEST(H2Connection, StreamsTakeTurns) {
  H2Recorder peer;
  ASSERT_TRUE(peer.greet());
  ASSERT_TRUE(peer.receive(h2_headers(1, h2_request("GET", "/"), true) +
                           h2_headers(3, h2_request("GET", "/"), true)));
  peer.take_frames();
  peer.room = 0;  // nothing is framed before both are there
  ASSERT_TRUE(peer.respond(1, std::string(32'000, 'a')));
  ASSERT_TRUE(peer.respond(3, std::string(32'000, 'b')));
  peer.room = std::size_t{1} << 24;
  ASSERT_TRUE(peer.connection.send());
  std::vector<std::uint32_t> order;
  for (const H2Frame& frame : of_type(peer.take_frames(), data))
    order.push_back(frame.stream);
  EXPECT_EQ(order, (std::vector<std::uint32_t>{1, 3, 1, 3}));
}

TEST(H2Connection, AnUrgentStreamGoesFirst) {
  H2Recorder peer;
  ASSERT_TRUE(peer.greet());
  ASSERT_TRUE(peer.receive(h2_headers(1, h2_request("GET", "/"), true) +
                           h2_headers(3, h2_request("GET", "/", {{"priority", "u=1, i"}}), true)));
  peer.take_frames();
  peer.room = 0;
  ASSERT_TRUE(peer.respond(1, std::string(20'000, 'a')));
  ASSERT_TRUE(peer.respond(3, std::string(20'000, 'b')));
  peer.room = std::size_t{1} << 24;
  ASSERT_TRUE(peer.connection.send());
  std::vector<std::uint32_t> order;
  for (const H2Frame& frame : of_type(peer.take_frames(), data))
    order.push_back(frame.stream);
  EXPECT_EQ(order, (std::vector<std::uint32_t>{3, 3, 1, 1}));
}

std::string priority_update(std::uint32_t stream, std::string_view value) {
  return h2_frame(0x10, 0, 0, h2_number(stream, 4) + std::string(value));
}

// The order of the streams' DATA frames, of two bodies of two frames each that are ready at once.
std::vector<std::uint32_t> order_after(std::string_view before, std::string_view after,
                                       const H2FieldList& more_of_3 = {}) {
  H2Recorder peer;
  EXPECT_TRUE(peer.greet());
  EXPECT_TRUE(peer.receive(std::string(before) + h2_headers(1, h2_request("GET", "/"), true) +
                           h2_headers(3, h2_request("GET", "/", more_of_3), true) +
                           std::string(after)));
  peer.take_frames();
  peer.room = 0;
  EXPECT_TRUE(peer.respond(1, std::string(20'000, 'a')));
  EXPECT_TRUE(peer.respond(3, std::string(20'000, 'b')));
  peer.room = std::size_t{1} << 24;
  EXPECT_TRUE(peer.connection.send());
  std::vector<std::uint32_t> order;
  for (const H2Frame& frame : of_type(peer.take_frames(), data))
    order.push_back(frame.stream);
  return order;
}

// RFC 9218 §7: also of a stream that is not there yet, and before the field says something else.
TEST(H2Connection, APriorityUpdateCounts) {
  using Order = std::vector<std::uint32_t>;
  EXPECT_EQ(order_after("", ""), (Order{1, 3, 1, 3}));
  EXPECT_EQ(order_after("", priority_update(3, "u=1")), (Order{3, 3, 1, 1}));
  EXPECT_EQ(order_after(priority_update(3, "u=1"), ""), (Order{3, 3, 1, 1}));
  EXPECT_EQ(order_after(priority_update(3, "u=1"), "", {{"priority", "u=6"}}), (Order{3, 3, 1, 1}));
  EXPECT_EQ(order_after(priority_update(1, "u=7"), ""), (Order{3, 3, 1, 1}));
  EXPECT_EQ(order_after("", priority_update(1, "u=2") + priority_update(3, "u=2")),
            (Order{1, 1, 3, 3}))
      << "not incremental: one after the other";
  EXPECT_EQ(order_after("", priority_update(1, "u=2, i") + priority_update(3, "u=2, i")),
            (Order{1, 3, 1, 3}));
}

TEST(H2Connection, WithoutRoomNothingIsFramed) {
  H2Recorder peer;
  ASSERT_TRUE(peer.greet());
  ASSERT_TRUE(peer.receive(h2_headers(1, h2_request("GET", "/"), true)));
  peer.take_frames();
  peer.room = 20'000;
  ASSERT_TRUE(peer.respond(1, std::string(60'000, 'x')));
  EXPECT_LE(peer.output.size(), 20'000U + 16'384 + 9);
  EXPECT_GE(peer.output.size(), 20'000U);
}

TEST(H2Connection, ARefusedRequestIsReset) {
  H2Recorder peer;
  ASSERT_TRUE(peer.greet());
  peer.refuse = true;
  ASSERT_TRUE(peer.receive(h2_headers(1, h2_request("POST", "/"), false) + h2_data(1, "x", true)));
  const auto resets = of_type(peer.take_frames(), rst_stream);
  ASSERT_EQ(resets.size(), 1U);
  EXPECT_EQ(resets[0].number(0), 7U);
}

TEST(H2Connection, FramesForStreamsThatTheClientEndedEndTheConnection) {
  H2Recorder peer;
  ASSERT_TRUE(peer.greet());
  ASSERT_TRUE(peer.receive(h2_headers(1, h2_request("POST", "/"), false) + h2_reset(1, 8)));
  EXPECT_EQ(peer.events, (Lines{"1 head POST /", "1 reset 8"}));
  EXPECT_FALSE(peer.receive(h2_data(1, "x", false)));
  EXPECT_EQ(end_code(peer.take_frames()), 5U);
}

TEST(H2Connection, FramesForStreamsThatWeResetAreOnTheirWay) {
  H2Recorder peer;
  ASSERT_TRUE(peer.greet());
  ASSERT_TRUE(peer.receive(h2_headers(1, h2_request("POST", "/"), false)));
  peer.connection.reset(peer.stream(1), H2Code::no_error);
  ASSERT_TRUE(peer.connection.send());
  EXPECT_TRUE(peer.receive(h2_data(1, "x", false) + h2_headers(1, {{"t", "1"}}, true)));
  EXPECT_EQ(peer.events.back(), "1 reset 0") << "and nothing else of it";
}

TEST(H2Connection, NothingIsOnItsWayBehindAResetOfTheClient) {
  H2Recorder peer;
  ASSERT_TRUE(peer.greet());
  ASSERT_TRUE(peer.receive(h2_headers(1, h2_request("POST", "/"), false)));
  peer.connection.reset(peer.stream(1), H2Code::no_error);
  ASSERT_TRUE(peer.connection.send());
  ASSERT_TRUE(peer.receive(h2_data(1, "x", false) + h2_reset(1, 8)));
  EXPECT_FALSE(peer.receive(h2_data(1, "x", false)));
  EXPECT_EQ(end_code(peer.take_frames()), 5U);
}

TEST(H2Connection, StreamNumbersGoUp) {
  H2Recorder peer;
  ASSERT_TRUE(peer.greet());
  ASSERT_TRUE(peer.receive(h2_headers(5, h2_request("GET", "/"), true)));
  EXPECT_FALSE(peer.receive(h2_headers(3, h2_request("GET", "/"), true)));
  EXPECT_EQ(end_code(peer.take_frames()), 1U);
}

TEST(H2Connection, PriorityFramesAreCheckedThoughNobodyHeedsThem) {
  for (const std::string& bad :
       {h2_frame(2, 0, 0, h2_number(0, 4) + "\x01"), h2_frame(2, 0, 3, h2_number(3, 4) + "\x01")}) {
    H2Recorder peer;
    ASSERT_TRUE(peer.greet());
    EXPECT_FALSE(peer.receive(bad));
    EXPECT_EQ(end_code(peer.take_frames()), 1U);
  }
}

TEST(H2Connection, WhatIsNoPrefaceEndsIt) {
  H2Recorder peer;
  EXPECT_FALSE(peer.receive("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"));
  EXPECT_EQ(end_code(peer.take_frames()), 1U);
}

// ---- defence

// Feeds `round` until the connection ends; how often that was, at most `most`.
int rounds_until_the_end(H2Recorder& peer, int most, const std::function<std::string(int)>& round) {
  for (int i = 0; i < most; ++i) {
    if (!peer.receive(round(i))) return i;
    if (i % 64 == 0) peer.output.clear();
  }
  return most;
}

TEST(H2Connection, RapidResetsAreBounded) {
  H2Recorder peer;
  ASSERT_TRUE(peer.greet());
  const auto stream = [](int i) { return static_cast<std::uint32_t>(2 * i + 1); };
  const int rounds = rounds_until_the_end(peer, 5000, [&](int i) {
    return h2_headers(stream(i), h2_request("GET", "/"), true) + h2_reset(stream(i), 8);
  });
  EXPECT_EQ(rounds, 256);
  EXPECT_EQ(end_code(peer.take_frames()), 11U);
}

TEST(H2Connection, ResetsThatTheClientProvokesCountToo) {
  H2Recorder peer;
  ASSERT_TRUE(peer.greet());
  const auto stream = [](int i) { return static_cast<std::uint32_t>(2 * i + 1); };
  const int rounds = rounds_until_the_end(peer, 5000, [&](int i) {
    return h2_headers(stream(i), h2_request("GET", "/"), true) + h2_window(stream(i), 0x7fff'ffff);
  });
  EXPECT_EQ(rounds, 256);
  EXPECT_EQ(end_code(peer.take_frames()), 11U);
}

TEST(H2Connection, WhoTakesBackNoMoreThanWhatCompletesIsNoAttacker) {
  H2Recorder peer;
  ASSERT_TRUE(peer.greet());
  for (std::uint32_t i = 0; i < 2000; ++i) {
    const std::uint32_t id = 4 * i + 1;
    ASSERT_TRUE(peer.receive(h2_headers(id, h2_request("GET", "/"), true) +
                             h2_headers(id + 2, h2_request("GET", "/"), true) +
                             h2_reset(id + 2, 8)))
        << i;
    ASSERT_TRUE(peer.respond(static_cast<std::int32_t>(id), "")) << i;
    peer.streams.clear();  // both are closed
    peer.output.clear();
  }
}

TEST(H2Connection, FramesThatDoNothingAreBounded) {
  const std::pair<const char*, std::string> floods[] = {
      {"ping", h2_frame(6, 0, 0, "12345678")},
      {"settings", h2_settings()},
      {"empty data", h2_data(1, "", false)},
      {"window", h2_window(1, 1)},
      {"priority", h2_frame(2, 0, 1, h2_number(0, 4) + "\x05")},
      {"unknown", h2_frame(99, 0, 0, "")},
  };
  for (const auto& [name, frame] : floods) {
    H2Recorder peer;
    ASSERT_TRUE(peer.greet());
    ASSERT_TRUE(peer.receive(h2_headers(1, h2_request("POST", "/"), false)));
    const int rounds = rounds_until_the_end(peer, 10'000, [&](int) { return frame; });
    EXPECT_LE(rounds, 4100) << name;
    EXPECT_EQ(end_code(peer.take_frames()), 11U) << name;
  }
}

// Debian's nghttp2 1.52 takes eight; older ones take any number.
TEST(H2Connection, ContinuationsOfOneHeadAreBounded) {
  H2Recorder peer;
  ASSERT_TRUE(peer.greet());
  ASSERT_TRUE(peer.receive(h2_frame(1, h2_end_stream, 1, h2_fields(h2_request("GET", "/")))));
  const std::string empty = h2_frame(9, 0, 1, "");
  EXPECT_LE(rounds_until_the_end(peer, 10'000, [&](int) { return empty; }), 4096);
  EXPECT_NE(end_code(peer.take_frames()), 0U);
  EXPECT_FALSE(peer.connection.failure().empty());
}

// The same spread over many heads, each with as many as one may have.
TEST(H2Connection, ContinuationsOfManyHeadsAreBounded) {
  H2Recorder peer;
  ASSERT_TRUE(peer.greet());
  const int rounds = rounds_until_the_end(peer, 10'000, [&](int i) {
    if (i != 0) peer.respond(2 * i - 1, "");
    peer.streams.clear();
    const auto id = static_cast<std::uint32_t>(2 * i + 1);
    const std::string empty = h2_frame(9, 0, id, "");
    const std::string head = h2_frame(1, h2_end_stream, id, h2_fields(h2_request("GET", "/")));
    return head + empty + empty + empty + h2_frame(9, h2_end_headers, id, "");
  });
  EXPECT_LE(rounds, 2048) << "what is answered makes up for two of four";
  EXPECT_EQ(end_code(peer.take_frames()), 11U);
  EXPECT_EQ(peer.connection.failure(), "too many frames that bring nothing");
}

TEST(H2Connection, TheAllowanceComesBackWithTime) {
  H2Allowance allowance(2, 1);
  EXPECT_TRUE(allowance.take(5000));
  EXPECT_TRUE(allowance.take(5000));
  EXPECT_FALSE(allowance.take(5999));
  EXPECT_TRUE(allowance.take(6000));
  EXPECT_FALSE(allowance.take(6000));
  allowance.give_back(1);
  EXPECT_TRUE(allowance.take(6000));
}

TEST(H2Connection, AHeaderListThatUnfoldsIsStopped) {
  H2Recorder peer;
  ASSERT_TRUE(peer.greet());
  // Into the dynamic table, then named by one byte each: 3.5 KB, 12,000 times.
  const std::string value(3500, 'v');
  const std::string entry = "\x40" + h2_length(6) + "x-bomb" + h2_length(value.size()) + value;
  EXPECT_FALSE(peer.receive(
      h2_frame(1, h2_end_headers | h2_end_stream, 1,
               h2_fields(h2_request("GET", "/")) + entry + std::string(12'000, '\xbe'))));
  EXPECT_EQ(end_code(peer.take_frames()), 11U);
}

TEST(H2Connection, ALargeHeadIsTooLargeAndNoMore) {
  H2Recorder peer({.head = {.head_bytes_max = 1000}});
  ASSERT_TRUE(peer.greet());
  EXPECT_TRUE(
      peer.receive(h2_headers(1, h2_request("GET", "/", {{"a", std::string(2000, 'x')}}), true)));
  EXPECT_EQ(peer.events[0], "1 bad 431");
}

// ---- the end

TEST(H2Connection, GoingAwayFinishesWhatWasTaken) {
  H2Recorder peer;
  ASSERT_TRUE(peer.greet());
  ASSERT_TRUE(peer.receive(h2_headers(1, h2_request("GET", "/"), true)));
  peer.take_frames();
  peer.connection.announce_end();
  ASSERT_TRUE(peer.connection.send());
  auto frames = of_type(peer.take_frames(), goaway);
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].number(0), 0x7fff'ffffU);
  ASSERT_TRUE(peer.receive(h2_headers(3, h2_request("GET", "/"), true))) << "it may still come";
  peer.connection.go_away();
  ASSERT_TRUE(peer.connection.send());
  frames = of_type(peer.take_frames(), goaway);
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].number(0), 3U);
  EXPECT_TRUE(peer.receive(h2_headers(5, h2_request("GET", "/"), true)));
  EXPECT_EQ(peer.events.size(), 2U) << "no third request";
  ASSERT_TRUE(peer.respond(1, "a"));
  EXPECT_FALSE(peer.respond(3, "b")) << "nothing is left to be said";
}

// ---- memory

TEST(H2Connection, StreamsTakeNoMemoryAnew) {
  H2Recorder peer;
  ASSERT_TRUE(peer.greet());
  peer.streams.reserve(4);
  peer.events.reserve(4);
  peer.heads.reserve(200);
  peer.output.reserve(4096);
  std::uint64_t allocated = 0;
  for (std::uint32_t i = 0; i < 200; ++i) {
    const std::string input = h2_headers(2 * i + 1, h2_request("GET", "/"), true);
    const std::uint64_t blocks = peer.shared.memory().in_use();
    test::AllocationCount allocations;
    ASSERT_TRUE(peer.connection.receive(input, 0));
    // The recorder's own: the stream, and the event's text.
    const std::uint64_t own = 1;
    if (i >= 50) allocated += allocations.count() - std::min(allocations.count(), own);
    ASSERT_TRUE(peer.respond(static_cast<std::int32_t>(2 * i + 1), "x"));
    peer.streams.clear();
    peer.events.clear();
    peer.output.clear();
    if (i < 50) continue;
    EXPECT_EQ(peer.shared.memory().in_use(), blocks);
  }
  EXPECT_EQ(allocated, 0U);
}

TEST(H2Memory, BlocksAreUsedAgain) {
  H2Memory memory;
  for (std::size_t bytes : {1, 48, 49, 80, 81, 1000, 16'384, 32'752, 32'753, 100'000}) {
    void* block = memory.allocate(bytes);
    std::fill_n(static_cast<char*>(block), bytes, 'x');
    void* larger = memory.reallocate(block, bytes * 2);
    EXPECT_EQ(static_cast<char*>(larger)[bytes - 1], 'x');
    std::fill_n(static_cast<char*>(larger), bytes * 2, 'y');
    memory.release(larger);
  }
  EXPECT_EQ(memory.in_use(), 0U);
  test::AllocationCount allocations;
  for (int i = 0; i < 10; ++i)
    memory.release(memory.allocate(1000));
  EXPECT_EQ(allocations.count(), 0U);
}

}  // namespace
}  // namespace ringside::http
