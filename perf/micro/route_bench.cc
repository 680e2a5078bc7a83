// Router::find over 100 sites of ten routes each; hosts and paths vary so that the branch predictor
// and the first-level cache do not learn one lookup by heart.
#include <benchmark/benchmark.h>

#include <string>
#include <string_view>
#include <vector>

#include "ringside/route/router.h"

#include "bench.h"

namespace {

using namespace ringside;

config::SnapshotRef hundred_sites() {
  auto snapshot = std::make_shared<config::Snapshot>();
  snapshot->listens.resize(1);
  for (int i = 0; i < 100; ++i) {
    auto& site = snapshot->sites.emplace_back();
    site.hosts = {"site-" + std::to_string(i) + ".example.org",
                  "*.wild-" + std::to_string(i) + ".test"};
    for (std::string_view path : {"/", "/*", "/api/*", "/api/v1/*", "/api/v1/users/*", "/static/*",
                                  "/healthz", "/login", "/images/*", "/favicon.ico"}) {
      auto& route = site.routes.emplace_back();
      route.path = path;
      if (path == "/login") route.methods = {"GET", "POST"};
      route.respond.emplace();
    }
  }
  return snapshot;
}

struct Lookup {
  std::string host;
  std::string path;
};

std::vector<Lookup> lookups(std::string_view host_head, std::string_view host_tail) {
  std::vector<Lookup> out;
  for (int i = 0; i < 100; ++i) {
    for (std::string_view path : {"/", "/api/v1/users/4711/orders", "/static/css/site.css",
                                  "/login", "/some/other/page.html"}) {
      out.push_back(
          {std::string(host_head) + std::to_string(i) + std::string(host_tail), std::string(path)});
    }
  }
  return out;
}

void find(benchmark::State& state, const std::vector<Lookup>& lookups) {
  const route::Router router(hundred_sites());
  std::size_t i = 0;
  for (auto _ : state) {
    const Lookup& lookup = lookups[i];
    i = (i + 7) % lookups.size();
    auto match = router.find(0, lookup.host, lookup.path, "GET");
    if (match.kind != route::Match::Kind::found) bench::fail(state, "not found");
    benchmark::DoNotOptimize(match);
  }
}

BENCHMARK_CAPTURE(find, exact_host, lookups("site-", ".example.org"));
BENCHMARK_CAPTURE(find, wildcard_host, lookups("www.eu.wild-", ".test"));

}  // namespace
