// What the filter costs a request and a response: ten fields of a browser, the default forwarding.
#include <benchmark/benchmark.h>

#include <string_view>

#include "ringside/filter/forwarding.h"
#include "ringside/http/parser.h"

#include "bench.h"

namespace {

using namespace ringside;

constexpr std::string_view request_bytes =
    "GET /some/page.html?x=1 HTTP/1.1\r\nHost: www.example.org\r\n"
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n"
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n"
    "Accept-Language: en-US,en;q=0.5\r\nAccept-Encoding: gzip, deflate, br\r\n"
    "Connection: keep-alive\r\nCookie: session=0123456789abcdef0123456789abcdef\r\n"
    "Referer: https://www.example.org/\r\nUpgrade-Insecure-Requests: 1\r\nCache-Control: "
    "max-age=0\r\n\r\n";
constexpr std::string_view response_bytes =
    "HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Tue, 01 Dec 2026 00:00:00 GMT\r\n"
    "Content-Type: text/html; charset=utf-8\r\nContent-Length: 1024\r\nConnection: keep-alive\r\n"
    "ETag: \"5f3e-1234\"\r\nLast-Modified: Mon, 30 Nov 2026 00:00:00 GMT\r\nAccept-Ranges: "
    "bytes\r\n\r\n";

config::HeaderEdits some_edits() {
  config::HeaderEdits edits;
  edits.remove = {"x-internal-*", "x-powered-by"};
  edits.set = {{"x-client", {{{}, config::Variable::client_address, {}}}},
               {"x-frame-options", {{"DENY", config::Variable::none, {}}}}};
  return edits;
}

void request(benchmark::State& state, const config::HeaderEdits& edits) {
  base::ChunkPool pool;
  base::Arena head_arena(pool);
  const http::HeadLimits limits;
  http::RequestParser parser(head_arena, limits);
  if (parser.parse(request_bytes) != http::ParseState::done) bench::fail(state, "bad request");
  filter::RequestFacts facts;
  facts.peer_address = facts.client_address = "203.0.113.9";
  facts.host = parser.head().authority;
  facts.request_id = "0123456789abcdef0123456789abcdef";
  facts.server_name = "ringside";
  facts.request_fields = &parser.head().fields;
  const config::Forwarding forwarding;
  for (auto _ : state) {
    base::Arena arena(pool);
    http::HeadWriter out(arena, 2048);
    filter::write_request_fields(out, parser.head(), facts, forwarding, edits, arena);
    auto head = out.finish();
    benchmark::DoNotOptimize(head);
  }
}

void response(benchmark::State& state, const config::HeaderEdits& edits) {
  base::ChunkPool pool;
  base::Arena head_arena(pool);
  const http::HeadLimits limits;
  http::ResponseParser parser(head_arena, limits, http::Method::get);
  if (parser.parse(response_bytes) != http::ParseState::done) bench::fail(state, "bad response");
  filter::RequestFacts facts;
  facts.client_address = "203.0.113.9";
  facts.server_name = "ringside";
  const config::Forwarding forwarding;
  for (auto _ : state) {
    base::Arena arena(pool);
    http::HeadWriter out(arena, 2048);
    filter::write_response_fields(out, parser.head(), facts, forwarding, edits, {});
    auto head = out.finish();
    benchmark::DoNotOptimize(head);
  }
}

BENCHMARK_CAPTURE(request, plain, config::HeaderEdits{});
BENCHMARK_CAPTURE(request, edited, some_edits());
BENCHMARK_CAPTURE(response, plain, config::HeaderEdits{});
BENCHMARK_CAPTURE(response, edited, some_edits());

}  // namespace
