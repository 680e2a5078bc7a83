// The chunked coding (RFC 9112 §7.1).
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "ringside/http/parser.h"
#include "ringside/http/writer.h"

namespace ringside::http {
namespace {

using namespace std::string_view_literals;
using Event = ChunkedDecoder::Event;

struct Decoded {
  Event end = Event::need_more;
  std::string body;
  std::size_t consumed = 0;
  std::string fault;
  friend bool operator==(const Decoded&, const Decoded&) = default;
};

std::ostream& operator<<(std::ostream& out, const Decoded& d) {
  return out << int(d.end) << " [" << d.body << "] " << d.consumed << ' ' << d.fault;
}

// Feeds `piece` from memory of exactly its size. True when the decoder wants more.
bool feed(ChunkedDecoder& decoder, std::string_view piece, Decoded& result) {
  auto exact = std::make_unique<char[]>(piece.size());
  if (!piece.empty()) std::memcpy(exact.get(), piece.data(), piece.size());
  std::string_view rest(exact.get(), piece.size());
  for (;;) {
    ChunkedDecoder::Step step = decoder.next(rest);
    EXPECT_LE(step.consumed, rest.size());
    result.consumed += step.consumed;
    result.body += step.piece;
    result.end = step.event;
    rest.remove_prefix(step.consumed);
    if (step.event != Event::data) break;
    EXPECT_FALSE(step.piece.empty());
  }
  result.fault = decoder.fault();
  if (result.end == Event::need_more) {
    EXPECT_TRUE(rest.empty());
  }
  return result.end == Event::need_more;
}

// Whole, split in two at every place, and byte by byte: all must agree.
Decoded decode(std::string_view input) {
  Decoded whole;
  ChunkedDecoder decoder;
  feed(decoder, input, whole);
  for (std::size_t split = 0; split <= input.size(); ++split) {
    Decoded two;
    ChunkedDecoder other;
    if (feed(other, input.substr(0, split), two)) feed(other, input.substr(split), two);
    EXPECT_EQ(two, whole) << "split at " << split << " of " << input;
  }
  Decoded bytewise;
  ChunkedDecoder slow;
  for (char c : input) {
    if (!feed(slow, {&c, 1}, bytewise)) break;
  }
  EXPECT_EQ(bytewise, whole) << "byte by byte: " << input;
  return whole;
}

TEST(Chunked, GoodBodies) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"0\r\n", ""},
      {"5\r\nhello\r\n0\r\n", "hello"},
      {"5\r\nhello\r\n6\r\n world\r\n0\r\n", "hello world"},
      {"1\r\n\r\r\n1\r\n\n\r\n0\r\n", "\r\n"},
      {"0000000000000005\r\nhello\r\n0000000000000000\r\n", "hello"},
      {"a\r\n0123456789\r\n0\r\n", "0123456789"},
      {"A\r\n0123456789\r\n00\r\n", "0123456789"},
      {"1;a\r\nZ\r\n0;b=c\r\n", "Z"},
      {"1;a;b;c=d;e=\"f\"\r\nZ\r\n0\r\n", "Z"},
      {"1 ; a = b\t;\tc\r\nZ\r\n0\r\n", "Z"},
      {"1;a=\"x;y\\\"z \t\x80\"\r\nZ\r\n0\r\n", "Z"},
      {"1;a=\"\" ;b\r\nZ\r\n0\r\n", "Z"},
  };
  for (const auto& [input, body] : cases) {
    Decoded result = decode(input);
    EXPECT_EQ(result.end, Event::last_chunk) << input;
    EXPECT_EQ(result.body, body) << input;
    EXPECT_EQ(result.consumed, input.size()) << input;
  }
}

TEST(Chunked, StopsBehindTheLastChunk) {
  Decoded result = decode("1\r\nZ\r\n0\r\nX-Trailer: 1\r\n\r\nGET /");
  EXPECT_EQ(result.end, Event::last_chunk);
  EXPECT_EQ(result.consumed, 9U);
  ChunkedDecoder decoder;
  EXPECT_EQ(decoder.next("0\r\n").event, Event::last_chunk);
  ChunkedDecoder::Step again = decoder.next("5\r\n");
  EXPECT_EQ(again.event, Event::last_chunk);
  EXPECT_EQ(again.consumed, 0U);
}

TEST(Chunked, FaultyBodies) {
  const std::string_view cases[] = {
      "\r\n"sv,
      "1these-are-not-hex\r\nZ\r\n0\r\n"sv,
      "1g\r\nZ\r\n0\r\n"sv,
      "0x1\r\nZ\r\n0\r\n"sv,
      "x1\r\n"sv,
      "+1\r\n"sv,
      "-1\r\n"sv,
      " 1\r\n"sv,
      "\t1\r\n"sv,
      "1 \r\nZ\r\n"sv,
      "1\t\r\n"sv,
      "1 1\r\n"sv,
      "1_0\r\n"sv,
      "1,\r\n"sv,
      "\"1\"\r\n"sv,
      "10000000000000001\r\n"sv,  // 17 digits
      "00000000000000001\r\n"sv,
      "fffffffffffffffff\r\n"sv,
      ";a\r\n"sv,
      "1\nZ\r\n0\r\n"sv,  // bare LF
      "1;a\nZ\r\n"sv,
      "1;a=b\nZ\r\n"sv,
      "1;a=\"b\n\"\r\nZ"sv,
      "1\rZ"sv,  // bare CR
      "1\r;a\r\nZ"sv,
      "1;a\rb\r\nZ"sv,
      "1;a=\"\r\"\r\nZ"sv,
      "1\r\r\nZ"sv,
      "1;\r\nZ"sv,  // extensions
      "1; \r\nZ"sv,
      "1;;a\r\nZ"sv,
      "1;=b\r\nZ"sv,
      "1;a=\r\nZ"sv,
      "1;a= \r\nZ"sv,
      "1;a \r\nZ"sv,
      "1;a b\r\nZ"sv,
      "1;a=b c\r\nZ"sv,
      "1;a=\"b\"c\r\nZ"sv,
      "1;a=b \r\nZ"sv,
      "1;a=\"b\r\nZ"sv,
      "1;a=\"\x01\"\r\nZ"sv,
      "1;a=\"\x7f\"\r\nZ"sv,
      "1;a=\"\\\r\"\r\nZ"sv,
      "1;a=\0\r\nZ"sv,
      "1;a=\"\0\"\r\nZ"sv,
      "1;a[b]\r\nZ"sv,
      "1;\x80\r\nZ"sv,
      "5\r\nhello\n0\r\n"sv,  // after the data
      "5\r\nhello0\r\n"sv,
      "5\r\nhello\r0\r\n"sv,
      "5\r\nhello\r\r\n0\r\n"sv,
      "5\r\nhelloworld\r\n0\r\n"sv,
      "4\r\nhello\r\n0\r\n"sv,
      "0\n\r\n"sv,
      "0\r\r\n"sv,
      "\0"sv,
  };
  for (std::string_view input : cases) {
    Decoded result = decode(input);
    EXPECT_EQ(result.end, Event::failed) << input;
    EXPECT_FALSE(result.fault.empty()) << input;
  }
}

TEST(Chunked, FaultsShowAtTheirByte) {
  EXPECT_EQ(decode("1\n").consumed, 1U);
  EXPECT_EQ(decode("g").end, Event::failed);
  EXPECT_EQ(decode("1\r ").end, Event::failed);
  EXPECT_EQ(decode("1\r\nZZ").end, Event::failed);
  EXPECT_EQ(decode("6\r\nhello\r").end, Event::need_more);
  EXPECT_EQ(decode("").end, Event::need_more);
  ChunkedDecoder decoder;
  EXPECT_EQ(decoder.next("g").event, Event::failed);
  EXPECT_EQ(decoder.next("1\r\n").event, Event::failed) << "for good";
  EXPECT_EQ(decoder.next("1\r\n").consumed, 0U);
}

TEST(Chunked, TheSizeLineIsBounded) {
  std::string fits = "1;" + std::string(4096 - 4, 'a') + "\r\n";
  ASSERT_EQ(fits.size(), 4096U);
  ChunkedDecoder decoder;
  EXPECT_EQ(decoder.next(fits + "Z").event, Event::data);
  ChunkedDecoder other;
  EXPECT_EQ(other.next("1;" + std::string(4096 - 3, 'a') + "\r\n").event, Event::failed);
  // Each line has its own count.
  ChunkedDecoder third;
  std::string second = fits + "Z\r\n" + fits + "Z";
  ChunkedDecoder::Step first = third.next(second);
  ASSERT_EQ(first.event, Event::data);
  EXPECT_EQ(third.next(std::string_view(second).substr(first.consumed)).event, Event::data);
}

TEST(Chunked, LargestSizeAndBulkMoving) {
  ChunkedDecoder decoder;
  EXPECT_EQ(decoder.chunk_remaining(), 0U);
  EXPECT_EQ(decoder.next("ffffffffffffffff\r\n").event, Event::need_more);
  EXPECT_EQ(decoder.chunk_remaining(), 0xffffffffffffffffU);
  ChunkedDecoder::Step step = decoder.next("abc");
  EXPECT_EQ(step.piece, "abc");
  EXPECT_EQ(decoder.chunk_remaining(), 0xfffffffffffffffcU);
  decoder.skip(0xfffffffffffffffbU);
  EXPECT_EQ(decoder.chunk_remaining(), 1U);
  decoder.skip(1);
  EXPECT_EQ(decoder.chunk_remaining(), 0U);
  EXPECT_EQ(decoder.next("\r\n0\r\n").event, Event::last_chunk);
}

TEST(Chunked, PiecesAreViewsIntoTheInput) {
  std::string input = "3\r\nabc\r\n0\r\n";
  ChunkedDecoder decoder;
  ChunkedDecoder::Step step = decoder.next(input);
  EXPECT_EQ(step.piece.data(), input.data() + 3);
}

TEST(Chunked, WhatTheWriterFramesIsReadBack) {
  std::string input, body;
  for (std::size_t bytes : {1UL, 15UL, 16UL, 255UL, 4096UL, 70000UL}) {
    char line[18];
    input.append(line, write_chunk_size(bytes, line));
    std::string data(bytes, static_cast<char>('a' + bytes % 26));
    input += data + "\r\n";
    body += data;
  }
  input += "0\r\n";
  ChunkedDecoder decoder;
  Decoded result;
  feed(decoder, input, result);
  EXPECT_EQ(result.end, Event::last_chunk);
  EXPECT_EQ(result.body, body);
}

}  // namespace
}  // namespace ringside::http
