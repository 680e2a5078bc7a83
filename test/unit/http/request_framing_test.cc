// How long a request's body is: where smuggling lives (RFC 9112 §6, RFC 9110 §8.6).
#include "parse_all_ways.h"

namespace ringside::http::test {
namespace {

std::string post_with(std::string_view lines, std::string_view version = "1.1") {
  return "POST / HTTP/" + std::string(version) + "\r\nHost: a.test\r\n" + std::string(lines) +
         "\r\n";
}

TEST(RequestFraming, NoneLengthOrChunked) {
  struct Case {
    std::string_view lines;
    Framing::Kind kind;
    std::uint64_t length;
  };
  const Case cases[] = {
      {"", Framing::Kind::none, 0},
      {"Content-Length: 0\r\n", Framing::Kind::length, 0},
      {"content-length:5\r\n", Framing::Kind::length, 5},
      {"Content-Length: \t5 \r\n", Framing::Kind::length, 5},
      {"Content-Length: 0005\r\n", Framing::Kind::length, 5},
      {"Content-Length: 9223372036854775807\r\n", Framing::Kind::length, 9223372036854775807U},
      {"Transfer-Encoding: chunked\r\n", Framing::Kind::chunked, 0},
      {"transfer-encoding:CHUNKED\r\n", Framing::Kind::chunked, 0},
      {"Transfer-Encoding: \t chunked\t \r\n", Framing::Kind::chunked, 0},
      {"X-Content-Length: 5\r\nContent_Length: 6\r\n", Framing::Kind::none, 0},
  };
  for (const Case& c : cases) {
    auto run = parse_request(post_with(c.lines));
    ASSERT_EQ(run->state, ParseState::done) << c.lines;
    EXPECT_EQ(run->parser.head().framing.kind, c.kind) << c.lines;
    EXPECT_EQ(run->parser.head().framing.length, c.length) << c.lines;
  }
}

TEST(RequestFraming, FramingFieldsAreMarkedSinceTheSenderFramesAnew) {
  auto length = parse_request(post_with("Content-Length: 5\r\n"));
  EXPECT_TRUE(length->parser.head().fields.find(FieldId::content_length)->hop_by_hop);
  auto chunked = parse_request(post_with("Transfer-Encoding: chunked\r\n"));
  EXPECT_TRUE(chunked->parser.head().fields.find(FieldId::transfer_encoding)->hop_by_hop);
}

TEST(RequestFraming, ContentLengthMustBeOneNumber) {
  const std::string_view values[] = {
      "",
      "+5",
      "-5",
      "-0",
      "0x5",
      "5x",
      "x5",
      "5 5",
      "5,5",
      "5, 5",
      "5,",
      ",5",
      "5;",
      "\"5\"",
      "5.0",
      "1e3",
      "1_0",
      "0b1",
      "five",
      "\xb2",
      "\xd9\xa5",
      "18446744073709551616",
      "18446744073709551615",
      "9223372036854775808",
      "99999999999999999999999999",
  };
  for (std::string_view value : values) {
    EXPECT_EQ(status_of(post_with("Content-Length: " + std::string(value) + "\r\n")), 400) << value;
  }
}

TEST(RequestFraming, LengthTwiceIsRefusedEvenWhenEqual) {
  EXPECT_EQ(status_of(post_with("Content-Length: 5\r\nContent-Length: 5\r\n")), 400);
  EXPECT_EQ(status_of(post_with("Content-Length: 5\r\nX: y\r\ncontent-length: 6\r\n")), 400);
  EXPECT_EQ(status_of(post_with("Content-Length: 0\r\nContent-Length: 5\r\n", "1.0")), 400);
}

TEST(RequestFraming, BothLengthsInEitherOrder) {
  EXPECT_EQ(status_of(post_with("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n")), 400);
  EXPECT_EQ(status_of(post_with("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n")), 400);
  EXPECT_EQ(status_of(post_with("Transfer-Encoding: chunked\t\r\nContent-Length: 5\r\n")), 400);
  // At the second of the two lines, not only at the end.
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n"),
            400);
}

TEST(RequestFraming, OtherTransferEncodings) {
  const std::pair<std::string_view, int> cases[] = {
      {"", 400},
      {",chunked", 400},
      {"chunked,", 400},
      {"chunked, ,", 400},
      {",", 400},
      {"gzip,,chunked", 400},
      {"gzip,", 400},
      {"chunked, identity", 400},
      {"chunked, gzip", 400},
      {"chunked, chunked", 400},
      {"chunked,chunked", 400},
      {"gzip, chunked, gzip", 400},
      {"\"chunked\"", 400},
      {"chunked;q=1", 400},
      {"chunked chunked", 400},
      {"chun ked", 400},
      {"chunked\x85", 400},
      {"\xa0"
       "chunked",
       400},
      {"chunked/", 400},
      {"xchunked", 501},
      {"chunkedx", 501},
      {"identity", 501},
      {"gzip", 501},
      {"gzip, chunked", 501},
      {"identity, chunked", 501},
      {"deflate,gzip,\tchunked", 501},
  };
  for (const auto& [value, status] : cases) {
    EXPECT_EQ(status_of(post_with("Transfer-Encoding: " + std::string(value) + "\r\n")), status)
        << value;
  }
  EXPECT_EQ(status_of(post_with("Transfer-Encoding:\r\n chunked\r\n")), 400) << "folded";
  EXPECT_EQ(status_of(post_with("Transfer-Encoding: chunked\x0b\r\n")), 400);
  EXPECT_EQ(status_of(post_with("Transfer-Encoding: \x00"
                                "chunked\r\n"sv)),
            400);
}

TEST(RequestFraming, TransferEncodingTwice) {
  EXPECT_EQ(status_of(post_with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n")),
            400);
  EXPECT_EQ(status_of(post_with("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n")),
            400);
  EXPECT_EQ(status_of(post_with("Transfer-Encoding: chunked\r\ntransfer-encoding:\r\n")), 400);
}

TEST(RequestFraming, TransferEncodingInHttp10) {
  EXPECT_EQ(status_of(post_with("Transfer-Encoding: chunked\r\n", "1.0")), 400);
  EXPECT_EQ(status_of(post_with("Transfer-Encoding: gzip\r\n", "1.0")), 400);
  EXPECT_EQ(status_of(post_with("Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n"
                                "Content-Length: 4\r\n",
                                "1.0")),
            400);
  EXPECT_EQ(status_of(post_with("Content-Length: 4\r\n", "1.0")), 0);
}

TEST(RequestFraming, WhatFollowsTheHeadIsLeftAlone) {
  std::string first = post_with("Content-Length: 0\r\n");
  std::string second = "GET /second HTTP/1.1\r\nHost: a.test\r\n\r\n";
  auto run = parse_request(first + second);
  ASSERT_EQ(run->state, ParseState::done);
  ASSERT_EQ(run->parser.consumed(), first.size());
  auto next = parse_request((first + second).substr(run->parser.consumed()));
  ASSERT_EQ(next->state, ParseState::done);
  EXPECT_EQ(next->parser.head().path, "/second");
  EXPECT_EQ(next->parser.consumed(), second.size());
}

TEST(RequestFraming, CallsAfterTheEndChangeNothing) {
  ParserRun<RequestParser> done{HeadLimits{}};
  EXPECT_EQ(done.feed(get_with("")), ParseState::done);
  std::string before = done.outcome();
  EXPECT_EQ(done.parser.parse({done.buffer.get(), get_with("").size()}), ParseState::done);
  EXPECT_EQ(done.outcome(), before);
  ParserRun<RequestParser> failed{HeadLimits{}};
  EXPECT_EQ(failed.feed("GET /#"sv), ParseState::need_more);
  EXPECT_EQ(failed.feed("GET /# HTTP/1.1\r\n"sv), ParseState::failed);
  EXPECT_EQ(failed.feed(get_with("")), ParseState::failed);
}

// RFC 9112 §3.1 and RFC 9110 §3.9 give these.
TEST(RequestFraming, ExamplesOfTheRfcs) {
  auto run = parse_request(
      "GET /hello.txt HTTP/1.1\r\nUser-Agent: curl/7.64.1\r\nHost: www.example.com\r\n"
      "Accept-Language: en, mi\r\n\r\n");
  ASSERT_EQ(run->state, ParseState::done);
  EXPECT_EQ(run->parser.head().path, "/hello.txt");
  EXPECT_EQ(run->parser.head().host, "www.example.com");
  EXPECT_EQ(run->parser.head().fields[0].id, FieldId::user_agent);
  auto where = parse_request("GET /where?q=now HTTP/1.1\r\nHost: www.example.org\r\n\r\n");
  ASSERT_EQ(where->state, ParseState::done);
  EXPECT_EQ(where->parser.head().query, "q=now");
}

}  // namespace
}  // namespace ringside::http::test
