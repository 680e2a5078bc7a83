// On a warm chunk pool, reading and writing messages allocates nothing.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "ringside/http/parser.h"
#include "ringside/http/uri.h"
#include "ringside/http/writer.h"

#include "counting_allocator.h"

namespace ringside::http {
namespace {

// Everything that http does for one exchange. False when something is not parsed.
bool exchange(base::ChunkPool& pool, std::string_view request, std::string_view response,
              std::string_view body) {
  HeadLimits limits;
  base::Arena arena(pool);
  RequestParser reader(arena, limits);
  if (reader.parse(request) != ParseState::done) return false;
  if (!normalise_path(reader.head().path, arena)) return false;
  if (normalise_host(reader.head().host, arena) != "a.test") return false;
  HeadWriter writer(arena, request.size() + 64);
  writer.request_line(reader.head().method_text, reader.head().target);
  for (const Field& field : reader.head().fields)
    writer.field(field.name, field.value);
  if (writer.finish().data() == nullptr) return false;
  ResponseParser answer(arena, limits, reader.head().method);
  if (answer.parse(response) != ParseState::done) return false;
  ChunkedDecoder decoder;
  ChunkedDecoder::Step step = decoder.next(body);
  while (step.event == ChunkedDecoder::Event::data) {
    body.remove_prefix(step.consumed);
    step = decoder.next(body);
  }
  body.remove_prefix(step.consumed);
  TrailerParser trailers(arena, limits);
  return trailers.parse(body) == ParseState::done;
}

// With as many fields as the usual limit allows.
TEST(Allocation, NoneOnceThePoolIsWarm) {
  std::string request = "GET /a/../%62 HTTP/1.1\r\nHost: A.Test\r\n";
  for (int i = 0; i < 99; ++i)
    request += "X-Field-" + std::to_string(i) + ": value\r\n";
  request += "\r\n";
  std::string_view response = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  std::string_view body = "5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n";
  base::ChunkPool pool;
  ASSERT_TRUE(exchange(pool, request, response, body));
  test::AllocationCount allocations;
  bool parsed = exchange(pool, request, response, body);
  EXPECT_EQ(allocations.count(), 0U);
  EXPECT_TRUE(parsed);
  EXPECT_EQ(pool.in_use(), 0U);
}

}  // namespace
}  // namespace ringside::http
