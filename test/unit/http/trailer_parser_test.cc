// Trailer sections (RFC 9112 §7.1.2, RFC 9110 §6.5).
#include "parse_all_ways.h"

namespace ringside::http::test {
namespace {

TEST(Trailers, EmptyOrWithFields) {
  auto empty = parse_trailers("\r\nNEXT");
  ASSERT_EQ(empty->state, ParseState::done);
  EXPECT_EQ(empty->parser.consumed(), 2U);
  EXPECT_TRUE(empty->parser.fields().empty());

  auto run = parse_trailers("X-Checksum: abc \r\ngrpc-status:0\r\n\r\n");
  ASSERT_EQ(run->state, ParseState::done);
  ASSERT_EQ(run->parser.fields().size(), 2U);
  EXPECT_EQ(run->parser.fields()[0].value, "abc");
  EXPECT_EQ(run->parser.fields()[1].name, "grpc-status");
  EXPECT_FALSE(run->parser.fields()[0].hop_by_hop);
  EXPECT_FALSE(run->parser.fields()[1].hop_by_hop);
}

TEST(Trailers, FramingFieldsFailTheMessage) {
  for (std::string_view line : {"Content-Length: 100", "content-length: 0",
                                "Transfer-Encoding: chunked", "TRANSFER-ENCODING: x"}) {
    auto run = parse_trailers("X: y\r\n" + std::string(line) + "\r\n\r\n");
    ASSERT_EQ(run->state, ParseState::failed) << line;
    EXPECT_EQ(run->parser.fault().status, 400);
  }
}

TEST(Trailers, FieldsThatMayNotBeTrailersAreDropped) {
  const std::string_view dropped[] = {
      "Host",
      "Connection",
      "Keep-Alive",
      "Proxy-Connection",
      "TE",
      "Trailer",
      "Upgrade",
      "HTTP2-Settings",
      "Expect",
      "Max-Forwards",
      "Content-Type",
      "Content-Encoding",
      "Content-Range",
      "Authorization",
      "Cookie",
      "Set-Cookie",
      "Cache-Control",
      "Forwarded",
      "X-Forwarded-For",
      "X-Forwarded-Host",
      "X-Forwarded-Proto",
      "Via",
      "Location",
      "Range",
      "If-None-Match",
      "Proxy-Authorization",
      "WWW-Authenticate",
      "Vary",
      "Age",
      "Expires",
  };
  for (std::string_view name : dropped) {
    auto run = parse_trailers(std::string(name) + ": 6.6.6.6\r\n\r\n");
    ASSERT_EQ(run->state, ParseState::done) << name;
    EXPECT_TRUE(run->parser.fields()[0].hop_by_hop) << name;
  }
  for (std::string_view name : {"ETag", "Digest", "Server-Timing", "X-Anything", "Date"}) {
    auto run = parse_trailers(std::string(name) + ": v\r\n\r\n");
    ASSERT_EQ(run->state, ParseState::done) << name;
    EXPECT_FALSE(run->parser.fields()[0].hop_by_hop) << name;
  }
}

TEST(Trailers, AreAsStrictAsHeaders) {
  for (std::string_view lines :
       {"X : y\r\n"sv, "X: y\r\n folded\r\n"sv, "X: a\rb\r\n"sv, "X: a\n"sv, "nocolon\r\n"sv,
        ": v\r\n"sv, "X: \0\r\n"sv, " X: y\r\n"sv, "\n"sv}) {
    auto run = parse_trailers(std::string(lines) + "\r\n");
    ASSERT_EQ(run->state, ParseState::failed) << lines;
    EXPECT_EQ(run->parser.fault().status, 400) << lines;
  }
}

TEST(Trailers, Limits) {
  HeadLimits limits;
  limits.fields_max = 1;
  EXPECT_EQ(parse_trailers("A: 1\r\n\r\n", limits)->state, ParseState::done);
  EXPECT_EQ(parse_trailers("A: 1\r\nB: 2\r\n", limits)->parser.fault().status, 431);
  limits.head_bytes_max = 10;
  EXPECT_EQ(parse_trailers("A: 1234567890", limits)->parser.fault().status, 431);
}

}  // namespace
}  // namespace ringside::http::test
