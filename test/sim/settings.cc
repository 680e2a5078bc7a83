#include "settings.h"

#include <memory>
#include <string>
#include <utility>

#include "network.h"

namespace ringside::sim {

namespace {

constexpr std::uint32_t web_host = 0x0a010001;  // 10.1.0.1
constexpr std::uint32_t app_host = 0x0a020001;  // 10.2.0.1
constexpr std::uint16_t v4_port = 80;
constexpr std::uint16_t v6_port = 8080;
constexpr std::uint16_t v4_tls_port = 443;
constexpr std::uint16_t v6_tls_port = 8443;
constexpr const char* web_socket = "/run/web.sock";
constexpr const char* web_tls_socket = "/run/web-tls.sock";
constexpr const char* app_socket = "/run/app.sock";

config::Endpoint inet(const std::string& host, std::uint16_t port, bool v6 = false) {
  config::Endpoint out;
  out.kind = v6 ? config::Endpoint::Kind::ipv6 : config::Endpoint::Kind::ipv4;
  out.host = host;
  out.port = port;
  out.text = (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
  return out;
}

config::Endpoint unix_socket(const std::string& path) {
  config::Endpoint out;
  out.kind = config::Endpoint::Kind::unix_socket;
  out.path = path;
  out.text = "unix:" + path;
  return out;
}

config::Timeouts timeouts() {
  config::Timeouts out;
  out.tunnel_idle_ms = 300'000;
  // Longer than the network stalls, shorter than what the referee takes for a long exchange.
  out.body_grace_ms = 8'000;
  return out;
}

config::Listen listen(const Settings& settings, const char* name, std::uint16_t v4,
                      std::uint16_t v6, const char* path) {
  config::Listen out;
  out.name = name;
  out.http2 = settings.http2;
  out.addresses = {inet("10.1.0.1", v4), inet("::", v6, true), unix_socket(path)};
  return out;
}

config::Upstream upstream(const Settings& settings, const std::string& name) {
  config::Upstream out;
  out.name = name;
  out.timeouts = timeouts();
  // A handshake over a slow network may fail by it; the referee takes that for a long exchange.
  if (settings.tls || settings.h2_servers != 0) out.timeouts.connect_ms = 9'500;
  out.ping_timeout_ms = 9'500;
  if (settings.scarce) out.queue_max = 3;
  return out;
}

config::UpstreamServer server(const Settings& settings, unsigned index) {
  config::UpstreamServer out;
  out.tls = (settings.secure_servers >> index & 1) != 0;
  out.endpoint = server_endpoint(index);
  out.connections_max = settings.server_connections_max;
  if ((settings.h2_servers >> index & 1) == 0) return out;
  out.streams_max = settings.server_streams_max;
  const bool declined = (settings.h2_declined >> index & 1) != 0;
  out.protocol = declined ? config::UpstreamProtocol::automatic : config::UpstreamProtocol::h2;
  return out;
}

config::Site site(const Settings& settings, const config::Limits& limits) {
  config::Site out;
  out.hosts = {"*"};
  out.timeouts = timeouts();
  out.limits = limits;
  config::Route app;
  app.path = "/e/*";
  app.upstream = 0;
  config::Route unix_app = app;
  unix_app.path = "/u/*";
  unix_app.upstream = 1;
  config::Route local;
  local.path = "/local/*";
  local.respond = config::Respond{
      .status = 200, .body = std::string(settings.buffer_bytes / 3, 'l'), .headers = {}};
  config::Route redirect;
  redirect.path = "/redirect/*";
  redirect.redirect = config::Redirect{};
  redirect.redirect->location = {{.literal = "https://elsewhere.test/"}};
  out.routes = {app, unix_app, local, redirect};
  return out;
}

std::string_view mover_name(config::BodyMover mover) {
  switch (mover) {
    case config::BodyMover::automatic:
      return "auto";
    case config::BodyMover::copy:
      return "copy";
    case config::BodyMover::large:
      return "large";
    case config::BodyMover::bundle:
      return "bundle";
    case config::BodyMover::splice:
      return "splice";
    case config::BodyMover::zero_copy:
      return "zero_copy";
  }
  return "";
}

}  // namespace

Settings draw_settings(Random& random) {
  static constexpr std::uint32_t entries[] = {8, 64, 256, 256};
  static constexpr std::uint32_t counts[] = {32, 64, 64, 256};
  static constexpr std::uint32_t sizes[] = {64, 512, 2048, 4096, 16384, 16384};
  static constexpr std::uint32_t watermarks[] = {1024, 16'384, 262'144, 262'144};
  static constexpr std::uint32_t zero_copy_sizes[] = {1, 500, 4000};
  Settings out;
  out.rings = random.one_in(3) ? static_cast<unsigned>(random.between(2, 3)) : 1;
  out.abilities.single_issuer = !random.one_in(4);
  out.abilities.defer_taskrun = out.abilities.single_issuer && !random.one_in(4);
  out.abilities.message_ring = !random.one_in(3);
  out.abilities.zero_copy_report = random.coin();
  out.abilities.bundles = !random.one_in(3);
  out.ring_entries = random.pick(entries);
  out.buffers = random.pick(counts);
  out.buffer_bytes = random.pick(sizes);
  // What waits in a connection holds its buffers: the group must be worth some of them.
  if (out.buffer_bytes < 1024) out.buffers = 1024;
  out.buffered_bytes_max = random.pick(watermarks);
  const bool other_mover = random.one_in(3);
  out.zero_copy_bytes_min = random.pick(zero_copy_sizes);
  // Two draws for one choice: other draws would change all kept seeds.
  using enum config::BodyMover;
  static constexpr config::BodyMover movers[] = {copy, bundle, splice};
  static constexpr config::BodyMover other_movers[] = {zero_copy, large, automatic};
  out.body_mover = random.pick(other_mover ? other_movers : movers);
  out.large_buffers = out.ring_entries == 8 ? 1 : 4;
  out.end_early = random.one_in(10);
  out.end_by_stop = random.one_in(3);
  // Draws of their own would change all kept seeds.
  out.batch_wait = out.ring_entries != 64;
  out.accept_fast = 1 + out.buffer_bytes % 3;
  return out;
}

// Low enough for every client that gets on at all.
void set_body_rate(Settings& settings, std::uint64_t seed) {
  if (seed % 8 == 7) settings.body_rate_min = 1;
}

void set_tls(Settings& settings, std::uint64_t seed) {
  Random random(seed ^ 0x746c73);
  settings.tls = random.coin();
  if (!settings.tls) return;
  settings.secure_servers = static_cast<unsigned>(random.below(8));
  using enum config::KernelTls;
  static constexpr config::KernelTls wishes[] = {off, off, automatic, automatic, require};
  settings.kernel_tls = random.pick(wishes);
  if (settings.kernel_tls == require) settings.secure_servers &= 3;  // the other is a unix socket
}

void set_http2(Settings& settings, std::uint64_t seed) {
  Random random(seed ^ 0x6832);
  settings.http2 = !random.one_in(3);
  static constexpr std::uint32_t streams[] = {2, 8, 128, 128};
  settings.streams_max = random.pick(streams);
}

void set_early_data(Settings& settings, std::uint64_t seed) {
  Random random(seed ^ 0x6561'726c'79);
  settings.early_data = settings.tls && random.coin();
}

void set_h2_servers(Settings& settings, std::uint64_t seed) {
  Random random(seed ^ 0x6832'73);
  if (random.below(5) >= 3) return;
  settings.h2_servers = static_cast<unsigned>(random.between(1, 7));
  static constexpr std::uint32_t streams[] = {1, 3, 100, 100};
  settings.server_streams_max = random.pick(streams);
  const auto declined = static_cast<unsigned>(random.below(8) & random.below(8));
  settings.h2_declined = declined & settings.h2_servers & settings.secure_servers;
}

std::string to_string(const Settings& s) {
  std::string out = std::to_string(s.rings) + " rings of " + std::to_string(s.ring_entries) + ", " +
                    std::to_string(s.buffers) + " buffers of " + std::to_string(s.buffer_bytes) +
                    ", watermark " + std::to_string(s.buffered_bytes_max);
  out += ", mover " + std::string(mover_name(s.body_mover));
  if (s.body_mover == config::BodyMover::zero_copy)
    out += " from " + std::to_string(s.zero_copy_bytes_min);
  if (s.scarce) out += ", scarce: " + std::to_string(s.connections_max) + " connections";
  if (s.scarce) out += ", " + std::to_string(s.server_connections_max) + " to a server";
  if (s.abilities.defer_taskrun) out += ", deferred";
  if (s.abilities.message_ring) out += ", message ring";
  if (s.abilities.bundles) out += ", bundles";
  if (s.batch_wait) {
    out += ", waits for batches, accepts in turns from " + std::to_string(s.accept_fast) +
           " connections in 10 ms on";
  }
  if (s.body_rate_min != 0) out += ", a least rate";
  if (s.http2) out += ", HTTP/2 with " + std::to_string(s.streams_max) + " streams";
  if (s.h2_servers != 0) {
    out += ", HTTP/2 to servers " + std::to_string(s.h2_servers) + " with " +
           std::to_string(s.server_streams_max) + " streams";
    if (s.h2_declined != 0) out += ", declined by " + std::to_string(s.h2_declined);
  }
  if (s.tls) out += ", TLS, secure servers " + std::to_string(s.secure_servers);
  if (s.early_data) out += ", early data";
  if (s.kernel_tls == config::KernelTls::automatic) out += ", kernel TLS";
  if (s.kernel_tls == config::KernelTls::require) out += ", kernel TLS or nothing";
  if (s.end_early) out += ", ends early";
  return out + (s.end_by_stop ? ", by a stop" : ", by a drain");
}

void make_scarce(Settings& settings, Random& random) {
  settings.scarce = true;
  if (random.coin()) settings.buffers = static_cast<std::uint32_t>(2U << random.below(4));
  if (random.coin()) settings.connections_max = static_cast<std::uint32_t>(random.between(1, 6));
  if (random.coin()) {
    settings.server_connections_max = static_cast<std::uint32_t>(random.between(1, 3));
  }
}

config::SnapshotRef make_snapshot(const Settings& settings, unsigned variant) {
  auto out = std::make_shared<config::Snapshot>();
  out->file = "sim.toml";
  out->server.ring_entries = settings.ring_entries;
  out->server.buffers = settings.buffers;
  out->server.buffer_bytes = settings.buffer_bytes;
  out->server.body_mover = settings.body_mover;
  out->server.batch_wait = settings.batch_wait;
  out->server.large_buffers = settings.large_buffers;
  out->server.zero_copy_bytes_min = settings.zero_copy_bytes_min;
  out->server.server_name = "sim" + std::to_string(variant);
  out->timeouts = timeouts();
  out->limits.buffered_bytes_max = settings.buffered_bytes_max;
  out->limits.body_rate_min = settings.body_rate_min;
  out->limits.streams_per_connection_max = settings.streams_max;
  out->listens = {listen(settings, "web", v4_port, v6_port, web_socket)};
  if (settings.tls) {
    out->tls.push_back({.name = "sim", .certificates = {}, .client_ca = {}});
    out->tls.back().early_data = settings.early_data;
    out->listens.push_back(listen(settings, "web-tls", v4_tls_port, v6_tls_port, web_tls_socket));
    out->listens.back().tls = 0;
  }
  config::Upstream app = upstream(settings, "app");
  app.servers = {server(settings, 0), server(settings, 1)};
  if (variant % 3 == 1) std::swap(app.servers[0], app.servers[1]);
  if (variant % 3 == 2) app.servers.pop_back();
  config::Upstream unix_app = upstream(settings, "unix-app");
  unix_app.servers = {server(settings, 2)};
  out->upstreams = {app, unix_app};
  out->sites = {site(settings, out->limits)};
  return out;
}

net::Address client_target(std::uint64_t choice, bool secure) {
  switch (choice % 4) {
    case 0:
      return make_unix(secure ? web_tls_socket : web_socket);
    case 1:
      return make_ipv6_loopback(secure ? v6_tls_port : v6_port);
    default:
      return make_ipv4(web_host, secure ? v4_tls_port : v4_port);
  }
}

config::Endpoint server_endpoint(unsigned index) {
  return index == 2 ? unix_socket(app_socket)
                    : inet("10.2.0.1", static_cast<std::uint16_t>(9000 + index));
}

net::Address server_address(unsigned index) {
  if (index == 2) return make_unix(app_socket);
  return make_ipv4(app_host, static_cast<std::uint16_t>(9000 + index));
}

}  // namespace ringside::sim
