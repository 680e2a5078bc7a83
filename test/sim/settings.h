// What kind of machine and configuration a run has: drawn from its seed.
#pragma once

#include <cstdint>
#include <string>

#include "ringside/config/snapshot.h"
#include "ringside/net/address.h"

#include "random.h"
#include "sim_kernel.h"

namespace ringside::sim {

struct Settings {
  unsigned rings = 1;
  KernelAbilities abilities;
  std::uint32_t ring_entries = 256;
  std::uint32_t buffers = 64;
  std::uint32_t buffer_bytes = 4096;
  config::BodyMover body_mover = config::BodyMover::automatic;
  bool batch_wait = true;
  unsigned accept_fast = 1;
  std::uint32_t large_buffers = 4;
  std::uint32_t zero_copy_bytes_min = 1;
  std::uint32_t buffered_bytes_max = 256 * 1024;
  std::uint32_t connections_max = 1000;      // client connections a ring
  std::uint32_t server_connections_max = 0;  // 0: none
  bool scarce = false;                       // some of the above are far too small
  bool end_early = false;                    // a drain, or a stop, while clients are at work
  bool end_by_stop = false;
  std::uint64_t body_rate_min = 0;
  bool tls = false;             // there is a listener that speaks it
  unsigned secure_servers = 0;  // bit i: server i speaks it
  config::KernelTls kernel_tls = config::KernelTls::off;
  bool http2 = false;  // some clients speak it
  std::uint32_t streams_max = 128;
  bool early_data = false;   // is taken from clients, and some send it
  unsigned h2_servers = 0;   // bit i: server i is spoken to in it, or offered it by ALPN
  unsigned h2_declined = 0;  // bit i: by ALPN it takes HTTP/1.1
  std::uint32_t server_streams_max = 100;  // that the proxy is to open on a connection
};

Settings draw_settings(Random& random);
// One seed in eight has a least rate of bodies; none of those that were kept before there was one.
void set_body_rate(Settings& settings, std::uint64_t seed);
// One seed in two has TLS, with its clients and some of its servers.
void set_tls(Settings& settings, std::uint64_t seed);
// Two seeds in three have HTTP/2, with half of their clients' connections.
void set_http2(Settings& settings, std::uint64_t seed);
// One seed in two that has TLS.
void set_early_data(Settings& settings, std::uint64_t seed);
// Three seeds in five have servers that speak it. After set_tls().
void set_h2_servers(Settings& settings, std::uint64_t seed);
std::string to_string(const Settings& settings);
// Makes everything scarce: requests may be refused.
void make_scarce(Settings& settings, Random& random);

// `variant` changes with every reload.
config::SnapshotRef make_snapshot(const Settings& settings, unsigned variant);

// Where clients connect to.
net::Address client_target(std::uint64_t choice, bool secure = false);
// Where the upstream servers listen.
inline constexpr unsigned server_count = 3;
net::Address server_address(unsigned index);
// As the configuration has it.
config::Endpoint server_endpoint(unsigned index);

}  // namespace ringside::sim
