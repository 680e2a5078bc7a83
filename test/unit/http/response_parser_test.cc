// Responses: status lines, framing, and the same strictness as for requests (RFC 9112 §4, §6.3).
#include "parse_all_ways.h"

namespace ringside::http::test {
namespace {

std::string ok_with(std::string_view lines, std::string_view version = "1.1") {
  return "HTTP/" + std::string(version) + " 200 OK\r\n" + std::string(lines) + "\r\n";
}

bool is_refused(std::string_view input, const HeadLimits& limits = {}) {
  auto run = parse_response(input, Method::get, limits);
  if (run->state != ParseState::failed) return false;
  EXPECT_EQ(run->parser.fault().status, 502) << input;
  EXPECT_FALSE(run->parser.fault().reason.empty());
  return true;
}

TEST(ResponseLine, StatusAndReason) {
  struct Case {
    std::string_view line;
    int status;
    std::string_view reason;
    Version version;
  };
  const Case cases[] = {
      {"HTTP/1.1 200 OK", 200, "OK", Version::http11},
      {"HTTP/1.0 404 Not Found", 404, "Not Found", Version::http10},
      {"HTTP/1.1 200", 200, "", Version::http11},
      {"HTTP/1.1 200 ", 200, "", Version::http11},
      {"HTTP/1.1 200  two spaces ", 200, " two spaces ", Version::http11},
      {"HTTP/1.1 599 \t\x80\xff!", 599, "\t\x80\xff!", Version::http11},
      {"HTTP/1.1 299 x", 299, "x", Version::http11},
  };
  for (const Case& c : cases) {
    auto run = parse_response(std::string(c.line) + "\r\n\r\n");
    ASSERT_EQ(run->state, ParseState::done) << c.line;
    EXPECT_EQ(run->parser.head().status, c.status);
    EXPECT_EQ(run->parser.head().reason, c.reason);
    EXPECT_EQ(run->parser.head().version, c.version);
  }
}

TEST(ResponseLine, IsRefused) {
  const std::string_view lines[] = {
      "",  // an empty line before it
      "HTTP/1.1",
      "HTTP/1.1 ",
      "HTTP/1.1 20",
      "HTTP/1.1 2000 OK",
      "HTTP/1.1 20x OK",
      "HTTP/1.1 +20 OK",
      "HTTP/1.1 2 0 OK",
      "HTTP/1.1 099 OK",
      "HTTP/1.1 000 OK",
      "HTTP/1.1 600 OK",
      "HTTP/1.1 999 OK",
      "HTTP/1.1  200 OK",
      "HTTP/1.1\t200 OK",
      "HTTP/1.1 200\tOK",
      "HTTP/1.1 200OK",
      " HTTP/1.1 200 OK",
      "HTTP/1.2 200 OK",
      "HTTP/2.0 200 OK",
      "HTTP/0.9 200 OK",
      "http/1.1 200 OK",
      "ICY 200 OK",
      "HTTP/1.1x 200 OK",
      "HTTP/1.1 200 O\x01K",
      "HTTP/1.1 200 O\x7fK",
      "HTTP/1.1 200 O\rK",
      "HTTP/1.1 200 O\nK",
      "garbage",
      "<html>",
  };
  for (std::string_view line : lines) {
    EXPECT_TRUE(is_refused(std::string(line) + "\r\n\r\n")) << line;
  }
  EXPECT_TRUE(is_refused("HTTP/1.1 200 OK\n\n"));
  EXPECT_TRUE(is_refused("HTTP/1.1 200 O\0K\r\n\r\n"sv));
}

TEST(ResponseFraming, ByFields) {
  struct Case {
    std::string_view lines;
    Framing::Kind kind;
    std::uint64_t length;
    bool keep_alive;
  };
  const Case cases[] = {
      {"", Framing::Kind::until_close, 0, false},
      {"Connection: keep-alive\r\n", Framing::Kind::until_close, 0, false},
      {"Content-Length: 0\r\n", Framing::Kind::length, 0, true},
      {"Content-Length: 7\r\n", Framing::Kind::length, 7, true},
      {"Content-Length: 7\r\nConnection: close\r\n", Framing::Kind::length, 7, false},
      {"Transfer-Encoding: chunked\r\n", Framing::Kind::chunked, 0, true},
      {"Transfer-Encoding: Chunked \r\n", Framing::Kind::chunked, 0, true},
  };
  for (const Case& c : cases) {
    auto run = parse_response(ok_with(c.lines));
    ASSERT_EQ(run->state, ParseState::done) << c.lines;
    EXPECT_EQ(run->parser.head().framing.kind, c.kind) << c.lines;
    EXPECT_EQ(run->parser.head().framing.length, c.length) << c.lines;
    EXPECT_EQ(run->parser.head().keep_alive, c.keep_alive) << c.lines;
  }
}

TEST(ResponseFraming, Http10) {
  auto plain = parse_response(ok_with("Content-Length: 2\r\n", "1.0"));
  ASSERT_EQ(plain->state, ParseState::done);
  EXPECT_FALSE(plain->parser.head().keep_alive);
  auto kept = parse_response(ok_with("Content-Length: 2\r\nConnection: keep-alive\r\n", "1.0"));
  ASSERT_EQ(kept->state, ParseState::done);
  EXPECT_TRUE(kept->parser.head().keep_alive);
  EXPECT_TRUE(is_refused(ok_with("Transfer-Encoding: chunked\r\n", "1.0")));
}

TEST(ResponseFraming, NoBodyByStatusOrMethod) {
  struct Case {
    std::string_view status;
    Method method;
    std::string_view lines;
    Framing::Kind kind;
    bool keep_alive;
  };
  const Case cases[] = {
      {"100", Method::get, "", Framing::Kind::none, true},
      {"103", Method::get, "Link: </a>\r\n", Framing::Kind::none, true},
      {"101", Method::get, "Connection: upgrade\r\nUpgrade: x\r\n", Framing::Kind::none, true},
      {"103", Method::get, "Content-Length: 5\r\n", Framing::Kind::none, false},
      {"204", Method::get, "", Framing::Kind::none, true},
      {"204", Method::get, "Content-Length: 0\r\n", Framing::Kind::none, true},
      {"204", Method::get, "Content-Length: 44\r\n", Framing::Kind::none, false},
      {"204", Method::get, "Transfer-Encoding: chunked\r\n", Framing::Kind::none, false},
      {"304", Method::get, "", Framing::Kind::none, true},
      {"304", Method::get, "Content-Length: 44\r\n", Framing::Kind::none, true},
      {"304", Method::get, "Transfer-Encoding: chunked\r\n", Framing::Kind::none, true},
      {"200", Method::head, "", Framing::Kind::none, true},
      {"200", Method::head, "Content-Length: 44\r\n", Framing::Kind::none, true},
      {"404", Method::head, "Transfer-Encoding: chunked\r\n", Framing::Kind::none, true},
      {"200", Method::connect, "", Framing::Kind::none, true},
      {"299", Method::connect, "Content-Length: 4\r\n", Framing::Kind::none, true},
      {"300", Method::connect, "Content-Length: 4\r\n", Framing::Kind::length, true},
      {"407", Method::connect, "", Framing::Kind::until_close, false},
      {"205", Method::get, "Content-Length: 0\r\n", Framing::Kind::length, true},
      {"200", Method::get, "", Framing::Kind::until_close, false},
  };
  for (const Case& c : cases) {
    auto run = parse_response(
        "HTTP/1.1 " + std::string(c.status) + " x\r\n" + std::string(c.lines) + "\r\n", c.method);
    ASSERT_EQ(run->state, ParseState::done) << c.status << c.lines;
    EXPECT_EQ(run->parser.head().framing.kind, c.kind) << c.status << c.lines;
    EXPECT_EQ(run->parser.head().keep_alive, c.keep_alive) << c.status << c.lines;
  }
}

TEST(ResponseFraming, TheLengthOfAHeadAnswerStaysReadable) {
  auto run = parse_response(ok_with("Content-Length: 44\r\n"), Method::head);
  ASSERT_EQ(run->state, ParseState::done);
  EXPECT_EQ(run->parser.head().fields.find(FieldId::content_length)->value, "44");
}

TEST(ResponseFraming, WhatIsRefused) {
  const std::string_view cases[] = {
      "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
      "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
      "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
      "Transfer-Encoding: chunked, chunked\r\n",
      "Transfer-Encoding: gzip, chunked\r\n",
      "Transfer-Encoding: gzip\r\n",
      "Transfer-Encoding: identity\r\n",
      "Transfer-Encoding: ,chunked\r\n",
      "Transfer-Encoding:\r\n",
      "Content-Length: 3\r\nContent-Length: 3\r\n",
      "Content-Length: 3, 3\r\n",
      "Content-Length: +3\r\n",
      "Content-Length: 0x3\r\n",
      "Content-Length: -1\r\n",
      "Content-Length:\r\n",
      "Content-Length: 18446744073709551616\r\n",
      "X-A: b\rSet-Cookie: evil=1\r\n",
      "X-A: b\n",
      "X-A: b\x01\r\n",
      "X;B: c\r\n",
      "X-C : d\r\n",
      "X-A: b\r\n folded\r\n",
      "nocolon\r\n",
      ": x\r\n",
  };
  for (std::string_view lines : cases) {
    EXPECT_TRUE(is_refused(ok_with(lines))) << lines;
    // A body that is not there does not make a faulty head a good one.
    EXPECT_EQ(parse_response(ok_with(lines), Method::head)->state, ParseState::failed) << lines;
  }
}

TEST(ResponseHead_, InterimUpgradeAndHopByHop) {
  auto early =
      parse_response("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n\r\n");
  ASSERT_EQ(early->state, ParseState::done);
  EXPECT_TRUE(early->parser.head().interim());
  EXPECT_EQ(early->parser.consumed(), 40U);

  auto upgrade = parse_response(
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nraw");
  ASSERT_EQ(upgrade->state, ParseState::done);
  EXPECT_FALSE(upgrade->parser.head().interim());
  EXPECT_TRUE(upgrade->parser.head().upgrade);
  auto bare = parse_response("HTTP/1.1 101 x\r\nUpgrade: websocket\r\n\r\n");
  EXPECT_FALSE(bare->parser.head().upgrade);

  auto hop =
      parse_response(ok_with("Connection: X-Debug, content-type\r\nX-Debug: 1\r\nKeep-Alive: t\r\n"
                             "Content-Length: 0\r\nContent-Type: t\r\nProxy-Authenticate: p\r\n"
                             "Host: any\r\nHost: twice, even\r\n"));
  ASSERT_EQ(hop->state, ParseState::done);
  const bool expected[] = {true, true, true, true, false, false, false, false};
  ASSERT_EQ(hop->parser.head().fields.size(), std::size(expected));
  for (std::size_t i = 0; i < std::size(expected); ++i) {
    EXPECT_EQ(hop->parser.head().fields[i].hop_by_hop, expected[i]) << i;
  }
}

TEST(ResponseHead_, Limits) {
  HeadLimits limits;
  limits.line_bytes_max = 15;
  EXPECT_FALSE(is_refused("HTTP/1.1 200 OK\r\n\r\n", limits));
  EXPECT_TRUE(is_refused("HTTP/1.1 200 OK!", limits));
  limits.fields_max = 1;
  EXPECT_FALSE(is_refused(ok_with("A: 1\r\n"), limits));
  EXPECT_TRUE(is_refused(ok_with("A: 1\r\nB: 2\r\n"), limits));
  limits.head_bytes_max = 30;
  EXPECT_TRUE(is_refused("HTTP/1.1 200 OK\r\nA: 123456789012", limits));
}

TEST(ResponseHead_, StartedAtItsFirstByte) {
  ParserRun<ResponseParser> run{HeadLimits{}, Method::get};
  EXPECT_EQ(run.feed(""), ParseState::need_more);
  EXPECT_FALSE(run.parser.started());
  EXPECT_EQ(run.feed("H"), ParseState::need_more);
  EXPECT_TRUE(run.parser.started());
}

}  // namespace
}  // namespace ringside::http::test
