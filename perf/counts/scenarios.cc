#include "scenarios.h"

#include <algorithm>
#include <memory>
#include <vector>

namespace ringside::budget {

namespace {

constexpr std::size_t small_bytes = 1024;
constexpr std::size_t large_bytes = std::size_t{1} << 20;
constexpr std::size_t chunk_bytes = 4096;
constexpr unsigned many_fields = 30;

std::string get(const std::string& path, const std::string& more = "") {
  return "GET " + path +
         " HTTP/1.1\r\nHost: budget.test\r\nUser-Agent: budget/1.0\r\n"
         "Accept: */*\r\n" +
         more + "\r\n";
}

std::string post(std::size_t bytes) {
  return "POST /app/upload HTTP/1.1\r\nHost: budget.test\r\nContent-Length: " +
         std::to_string(bytes) + "\r\n\r\n" + std::string(bytes, 'u');
}

std::string head_of_answer(const std::string& framing, const std::string& more = "") {
  return "HTTP/1.1 200 OK\r\nServer: origin\r\nDate: Tue, 14 Nov 2023 22:13:20 GMT\r\n"
         "Content-Type: text/plain\r\n" +
         framing + more + "\r\n";
}

std::string answer(std::size_t bytes, const std::string& more = "") {
  return head_of_answer("Content-Length: " + std::to_string(bytes) + "\r\n", more) +
         std::string(bytes, 'd');
}

std::string chunked_answer(std::size_t chunks) {
  std::string out = head_of_answer("Transfer-Encoding: chunked\r\n");
  for (std::size_t i = 0; i < chunks; ++i)
    out += "1000\r\n" + std::string(chunk_bytes, 'c') + "\r\n";
  return out + "0\r\n\r\n";
}

// As browsers and frameworks send them, in length.
std::string fields() {
  std::string out;
  for (unsigned i = 0; i < many_fields; ++i)
    out += "X-Field-Number-" + std::to_string(i) + ": " + std::string(20 + i, 'v') + "\r\n";
  return out;
}

Scenario bulk(std::string_view name, bool upload, config::BodyMover mover) {
  return {.name = name,
          .clients = 2,
          .request = upload ? post(large_bytes) : get("/app/large"),
          .response = answer(upload ? small_bytes : large_bytes),
          .body_bytes = upload ? small_bytes : large_bytes,
          .body_mover = mover,
          .warm_rounds = 3,
          .rounds = 4};
}

// 10 streams at a time on each connection; or one that is large.
Scenario h2_small(std::string_view name, const std::string& path) {
  return {.name = name,
          .clients = 2,
          .depth = 10,
          .http2 = true,
          .request = {},
          .path = path,
          .response = answer(small_bytes),
          .body_bytes = small_bytes};
}

Scenario h2_bulk(std::string_view name, bool upload) {
  return {.name = name,
          .clients = 2,
          .http2 = true,
          .request = {},
          .path = "/app/large",
          .upload_bytes = upload ? large_bytes : 0,
          .response = answer(upload ? small_bytes : large_bytes),
          .body_bytes = upload ? small_bytes : large_bytes,
          .warm_rounds = 3,
          .rounds = 4};
}

std::vector<Scenario> make_all() {
  using enum config::BodyMover;
  const std::string small = get("/app/small");
  std::vector<Scenario> out;
  out.push_back({.name = "keep-alive",
                 .request = small,
                 .response = answer(small_bytes),
                 .body_bytes = small_bytes});
  out.push_back({.name = "new-connection",
                 .reconnect = true,
                 .request = small,
                 .response = answer(small_bytes),
                 .body_bytes = small_bytes});
  out.push_back({.name = "last-request",
                 .reconnect = true,
                 .request = get("/app/small", "Connection: close\r\n"),
                 .response = answer(small_bytes),
                 .body_bytes = small_bytes});
  out.push_back({.name = "pipelined",
                 .clients = 4,
                 .depth = 8,
                 .request = small,
                 .response = answer(small_bytes),
                 .body_bytes = small_bytes});
  out.push_back({.name = "chunked",
                 .request = small,
                 .response = chunked_answer(4),
                 .body_bytes = 4 * chunk_bytes});
  out.push_back({.name = "many-fields",
                 .request = get("/app/small", fields()),
                 .response = answer(small_bytes, fields()),
                 .body_bytes = small_bytes});
  out.push_back(
      {.name = "respond", .request = get("/local/x"), .response = "", .body_bytes = small_bytes});
  out.push_back(bulk("download-copy", false, copy));
  out.push_back(bulk("download-large", false, large));
  out.push_back(bulk("download-bundle", false, bundle));
  out.push_back(bulk("download-splice", false, splice));
  out.push_back(bulk("upload-copy", true, copy));
  out.push_back(bulk("upload-large", true, large));
  out.push_back(bulk("upload-bundle", true, bundle));
  out.push_back(bulk("upload-splice", true, splice));
  out.push_back(h2_small("h2-keep-alive", "/app/small"));
  out.push_back(h2_small("h2-respond", "/local/x"));
  out.push_back(h2_bulk("h2-download", false));
  out.push_back(h2_bulk("h2-upload", true));
  return out;
}

config::Endpoint endpoint(const std::string& host, std::uint16_t port) {
  config::Endpoint out;
  out.host = host;
  out.port = port;
  out.text = host + ":" + std::to_string(port);
  return out;
}

config::Site make_site() {
  config::Route app;
  app.path = "/app/*";
  app.upstream = 0;
  config::Route local;
  local.path = "/local/*";
  local.respond =
      config::Respond{.status = 200, .body = std::string(small_bytes, 'l'), .headers = {}};
  config::Site out;
  out.hosts = {"*"};
  out.routes = {app, local};
  return out;
}

}  // namespace

std::span<const Scenario> scenarios() {
  static const std::vector<Scenario> all = make_all();
  return all;
}

const Scenario* scenario_named(std::string_view name) {
  const auto all = scenarios();
  const auto at = std::ranges::find(all, name, &Scenario::name);
  return at == all.end() ? nullptr : &*at;
}

config::SnapshotRef make_snapshot(const Scenario& scenario) {
  auto out = std::make_shared<config::Snapshot>();
  out->file = "budget.toml";
  out->server.buffers = 256;
  out->server.body_mover = scenario.body_mover;
  config::Listen web;
  web.name = "web";
  web.addresses = {endpoint("10.1.0.1", 80)};
  web.http2 = scenario.http2;
  out->listens = {web};
  config::UpstreamServer server;
  server.endpoint = endpoint("10.2.0.1", 9000);
  config::Upstream app;
  app.name = "app";
  app.servers = {server};
  out->upstreams = {app};
  out->sites = {make_site()};
  return out;
}

}  // namespace ringside::budget
