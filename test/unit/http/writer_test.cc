#include "ringside/http/writer.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "ringside/http/parser.h"

namespace ringside::http {
namespace {

class WriterTest : public ::testing::Test {
 protected:
  base::ChunkPool pool_;
  base::Arena arena_{pool_};
};

TEST_F(WriterTest, Request) {
  HeadWriter writer(arena_, 128);
  writer.request_line("GET", "/a?b");
  writer.field("Host", "a.test");
  writer.field("Content-Length", std::uint64_t{42});
  writer.begin_field("Via");
  writer.append("1.1 ");
  writer.append(std::uint64_t{7});
  writer.append("");
  writer.append(" ringside");
  writer.end_field();
  writer.field("X-Empty", "");
  EXPECT_EQ(writer.finish(),
            "GET /a?b HTTP/1.1\r\nHost: a.test\r\nContent-Length: 42\r\nVia: 1.1 7 ringside\r\n"
            "X-Empty: \r\n\r\n");
}

TEST_F(WriterTest, StatusLines) {
  const std::tuple<std::uint16_t, std::string_view, std::string_view> cases[] = {
      {200, "", "HTTP/1.1 200 OK\r\n\r\n"},
      {200, "Fine", "HTTP/1.1 200 Fine\r\n\r\n"},
      {299, "", "HTTP/1.1 299 \r\n\r\n"},
      {502, "", "HTTP/1.1 502 Bad Gateway\r\n\r\n"},
  };
  for (const auto& [status, reason, expected] : cases) {
    HeadWriter writer(arena_, 0);
    writer.status_line(status, reason);
    EXPECT_EQ(writer.finish(), expected);
  }
}

// Whatever the first guess was, and wherever the room ends.
TEST_F(WriterTest, GrowsPastItsHint) {
  for (std::size_t hint : {0UL, 1UL, 256UL, 300UL, 5000UL}) {
    for (std::size_t first = 200; first < 260; ++first) {
      HeadWriter writer(arena_, hint);
      std::string expected = "HTTP/1.1 200 OK\r\n";
      writer.status_line(200, "OK");
      std::string value(first, 'v');
      writer.field("A", value);
      expected += "A: " + value + "\r\n";
      writer.field("N", std::numeric_limits<std::uint64_t>::max());
      expected += "N: 18446744073709551615\r\n";
      std::string large(6000, 'w');
      writer.begin_field("B");
      writer.append(large);
      writer.end_field();
      expected += "B: " + large + "\r\n\r\n";
      ASSERT_EQ(writer.finish(), expected) << hint << ' ' << first;
    }
    arena_.release();
  }
}

TEST_F(WriterTest, GivesBackWhatItDidNotNeed) {
  HeadWriter writer(arena_, 1024);
  writer.status_line(200, "OK");
  const std::string_view head = writer.finish();
  const char* end = head.data() + head.size();
  EXPECT_TRUE(arena_.extend(end, 1)) << "a small body finds no room behind its head";
}

TEST_F(WriterTest, WhatIsWrittenIsParsed) {
  HeadWriter writer(arena_, 64);
  writer.request_line("PATCH", "/x");
  writer.field("Host", "a.test");
  for (int i = 0; i < 90; ++i)
    writer.field("X-Field", "value with blanks");
  HeadLimits limits;
  RequestParser parser(arena_, limits);
  std::string_view head = writer.finish();
  ASSERT_EQ(parser.parse(head), ParseState::done);
  EXPECT_EQ(parser.consumed(), head.size());
  EXPECT_EQ(parser.head().fields.size(), 91U);
  EXPECT_EQ(parser.head().method, Method::patch);
}

TEST(ChunkSize, IsLowerCaseHexWithCrlf) {
  const std::pair<std::uint64_t, std::string_view> cases[] = {
      {0, "0\r\n"},       {9, "9\r\n"},
      {10, "a\r\n"},      {255, "ff\r\n"},
      {4096, "1000\r\n"}, {std::numeric_limits<std::uint64_t>::max(), "ffffffffffffffff\r\n"},
  };
  for (const auto& [bytes, expected] : cases) {
    char out[18];
    std::size_t length = write_chunk_size(bytes, out);
    EXPECT_EQ(std::string_view(out, length), expected);
  }
}

TEST(ChunkLine, ends_the_chunk_before_it_unless_it_is_the_first) {
  EXPECT_EQ(ChunkLine(0x1a2b, true).text(), "1a2b\r\n");
  EXPECT_EQ(ChunkLine(0x1a2b, false).text(), "\r\n1a2b\r\n");
  EXPECT_EQ(ChunkLine(~std::uint64_t{0}, false).text(), "\r\nffffffffffffffff\r\n");
}

}  // namespace
}  // namespace ringside::http
