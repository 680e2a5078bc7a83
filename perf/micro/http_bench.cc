// What one HTTP/1 message costs: heads read and written, bodies taken out of their chunks.
// Run: bench-http --benchmark_repetitions=5 --benchmark_report_aggregates_only=true
#include <benchmark/benchmark.h>

#include <string>
#include <string_view>

#include "ringside/base/arena.h"
#include "ringside/http/parser.h"
#include "ringside/http/uri.h"
#include "ringside/http/writer.h"

#include "bench.h"
#include "scan.h"

namespace ringside::http {
namespace {

// 4 fields, 143 bytes, as a load generator or a service sends it.
constexpr std::string_view small_request =
    "GET /api/v1/items/42?fields=name HTTP/1.1\r\n"
    "Host: service.example.org\r\n"
    "User-Agent: client/1.0\r\n"
    "Accept: */*\r\n"
    "X-Request-Id: 0123456789abcdef01\r\n"
    "\r\n";

// 10 fields, 522 bytes, as a browser sends it.
constexpr std::string_view browser_request =
    "GET /articles/2024/how-proxies-work?ref=home HTTP/1.1\r\n"
    "Host: www.example.org\r\n"
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n"
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8\r\n"
    "Accept-Language: en-GB,en;q=0.5\r\n"
    "Accept-Encoding: gzip, deflate, br, zstd\r\n"
    "Referer: https://www.example.org/articles/\r\n"
    "Connection: keep-alive\r\n"
    "Cookie: session=0123456789abcdef0123456789abcdef; theme=dark; consent=yes\r\n"
    "Upgrade-Insecure-Requests: 1\r\n"
    "Sec-Fetch-Mode: navigate\r\n"
    "\r\n";

constexpr std::string_view response =
    "HTTP/1.1 200 OK\r\n"
    "Server: nginx/1.22.1\r\n"
    "Date: Tue, 15 Nov 1994 08:12:31 GMT\r\n"
    "Content-Type: application/json\r\n"
    "Content-Length: 1024\r\n"
    "Last-Modified: Mon, 14 Nov 1994 08:12:31 GMT\r\n"
    "Connection: keep-alive\r\n"
    "ETag: \"5f3a-400\"\r\n"
    "\r\n";

// The chunk pool keeps its chunks over the rounds, as a ring's does: nothing is allocated.
void parse_request(benchmark::State& state, std::string_view input) {
  base::ChunkPool pool;
  HeadLimits limits;
  for (auto _ : state) {
    base::Arena arena(pool);
    RequestParser parser(arena, limits);
    if (parser.parse(input) != ParseState::done) bench::fail(state, "not parsed");
    benchmark::DoNotOptimize(parser.head());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(input.size()));
}
BENCHMARK_CAPTURE(parse_request, small, small_request);
BENCHMARK_CAPTURE(parse_request, browser, browser_request);

void parse_request_at_level(benchmark::State& state) {
  scan::Level best = scan::active_level();
  if (!scan::force_level(static_cast<scan::Level>(state.range(0)))) {
    state.SkipWithError("not supported here");
    return;
  }
  parse_request(state, browser_request);
  scan::force_level(best);
}
BENCHMARK(parse_request_at_level)->ArgName("level")->DenseRange(0, 2);

// The worst that a slow client can do: each byte comes alone.
void parse_request_bytewise(benchmark::State& state) {
  base::ChunkPool pool;
  HeadLimits limits;
  for (auto _ : state) {
    base::Arena arena(pool);
    RequestParser parser(arena, limits);
    for (std::size_t n = 1; n <= browser_request.size(); ++n) {
      benchmark::DoNotOptimize(parser.parse(browser_request.substr(0, n)));
    }
  }
}
BENCHMARK(parse_request_bytewise);

void parse_response(benchmark::State& state) {
  base::ChunkPool pool;
  HeadLimits limits;
  for (auto _ : state) {
    base::Arena arena(pool);
    ResponseParser parser(arena, limits, Method::get);
    if (parser.parse(response) != ParseState::done) bench::fail(state, "not parsed");
    benchmark::DoNotOptimize(parser.head());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(response.size()));
}
BENCHMARK(parse_response);

// What forwarding does: every field that travels, then the framing.
void write_request(benchmark::State& state) {
  base::ChunkPool pool;
  base::Arena parsed(pool);
  HeadLimits limits;
  RequestParser parser(parsed, limits);
  if (parser.parse(browser_request) != ParseState::done) bench::fail(state, "not parsed");
  const RequestHead& head = parser.head();
  for (auto _ : state) {
    base::Arena arena(pool);
    HeadWriter writer(arena, browser_request.size() + 128);
    writer.request_line(head.method_text, head.target);
    for (const Field& field : head.fields) {
      if (!field.hop_by_hop) writer.field(field.name, field.value);
    }
    writer.field("Content-Length", std::uint64_t{1024});
    benchmark::DoNotOptimize(writer.finish());
  }
}
BENCHMARK(write_request);

void decode_chunked(benchmark::State& state) {
  auto chunk_bytes = static_cast<std::size_t>(state.range(0));
  std::string input;
  for (std::size_t total = 0; total < 65536; total += chunk_bytes) {
    char line[18];
    input.append(line, write_chunk_size(chunk_bytes, line));
    input += std::string(chunk_bytes, 'x') + "\r\n";
  }
  input += "0\r\n";
  for (auto _ : state) {
    ChunkedDecoder decoder;
    std::string_view rest = input;
    for (;;) {
      ChunkedDecoder::Step step = decoder.next(rest);
      rest.remove_prefix(step.consumed);
      benchmark::DoNotOptimize(step.piece);
      if (step.event == ChunkedDecoder::Event::last_chunk) break;
      if (step.event != ChunkedDecoder::Event::data) bench::fail(state, "not decoded");
    }
  }
  state.counters["per_chunk"] = benchmark::Counter(
      static_cast<double>(65536 / chunk_bytes),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(decode_chunked)->ArgName("chunk_bytes")->Arg(16)->Arg(1024)->Arg(16384);

void normalise(benchmark::State& state, std::string_view path) {
  base::ChunkPool pool;
  for (auto _ : state) {
    base::Arena arena(pool);
    benchmark::DoNotOptimize(normalise_path(path, arena));
  }
}
BENCHMARK_CAPTURE(normalise, normal, "/articles/2024/how-proxies-work");
BENCHMARK_CAPTURE(normalise, rewritten, "/articles/./2024/%7euser/../how-proxies-work");

}  // namespace
}  // namespace ringside::http
