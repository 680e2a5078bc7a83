// Feeds one input to a parser in every way that bytes may arrive, and insists that all agree.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "ringside/base/arena.h"
#include "ringside/http/parser.h"

#include "outcome.h"

namespace ringside::http::test {

// A parser, its arena, and the memory that its views point into: exactly as large as the input, so
// that a read past its end is an error under ASan.
template <typename Parser>
struct ParserRun {
  base::ChunkPool pool;
  base::Arena arena{pool};
  HeadLimits limits;
  Parser parser;
  std::unique_ptr<char[]> buffer;
  ParseState state = ParseState::need_more;

  template <typename... Args>
  explicit ParserRun(const HeadLimits& with, Args... args)
      : limits(with), parser(arena, limits, args...) {}

  // The bytes are at a new address at each call; the old ones are gone.
  ParseState feed(std::string_view input) {
    auto moved = std::make_unique<char[]>(input.size());
    if (!input.empty()) std::memcpy(moved.get(), input.data(), input.size());
    state = parser.parse({moved.get(), input.size()});
    buffer = std::move(moved);
    return state;
  }
  std::string outcome() { return test::outcome(parser, state); }
};

// Parses `input` whole; then split in two at every place, and byte by byte. All must agree, and no
// fault may show later than it does when bytes come one by one. Returns the whole run.
template <typename Parser, typename... Args>
std::unique_ptr<ParserRun<Parser>> parse_all_ways(std::string_view input, const HeadLimits& limits,
                                                  Args... args) {
  auto whole = std::make_unique<ParserRun<Parser>>(limits, args...);
  whole->feed(input);
  std::string expected = whole->outcome();
  for (std::size_t split = 0; split <= input.size(); ++split) {
    ParserRun<Parser> two(limits, args...);
    if (two.feed(input.substr(0, split)) == ParseState::need_more) two.feed(input);
    EXPECT_EQ(two.outcome(), expected) << "split at " << split << " of: " << input;
  }
  ParserRun<Parser> bytewise(limits, args...);
  for (std::size_t n = 0; n <= input.size() && bytewise.state == ParseState::need_more; ++n) {
    bytewise.feed(input.substr(0, n));
  }
  EXPECT_EQ(bytewise.outcome(), expected) << "byte by byte: " << input;
  return whole;
}

inline auto parse_request(std::string_view input, const HeadLimits& limits = {}) {
  return parse_all_ways<RequestParser>(input, limits);
}
inline auto parse_response(std::string_view input, Method request_method = Method::get,
                           const HeadLimits& limits = {}) {
  return parse_all_ways<ResponseParser>(input, limits, request_method);
}
inline auto parse_trailers(std::string_view input, const HeadLimits& limits = {}) {
  return parse_all_ways<TrailerParser>(input, limits);
}

// How a request fares: its fault's status, 0 when it is parsed, -1 when it is incomplete.
inline int status_of(std::string_view input, const HeadLimits& limits = {}) {
  auto run = parse_request(input, limits);
  if (run->state == ParseState::need_more) return -1;
  return run->state == ParseState::done ? 0 : run->parser.fault().status;
}

// "GET / HTTP/1.1", Host, and `lines` (each with its CRLF) before the end of the head.
inline std::string get_with(std::string_view lines) {
  return "GET / HTTP/1.1\r\nHost: a.test\r\n" + std::string(lines) + "\r\n";
}

using namespace std::string_view_literals;

}  // namespace ringside::http::test
