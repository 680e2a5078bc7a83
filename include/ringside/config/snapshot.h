// The configuration after it was read and checked: plain, immutable data.
// Owner: std::shared_ptr<const Snapshot>; built off the rings, read by all of them without locks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ringside/config/tls.h"

namespace ringside::config {

using Millis = std::uint64_t;

// One endpoint as written: "10.0.0.1:8080", "[::1]:80", "app.internal:8080", "unix:/run/app.sock".
struct Endpoint {
  enum class Kind : std::uint8_t { ipv4, ipv6, unix_socket, name };
  Kind kind = Kind::ipv4;
  std::string text;  // as written, for logs
  std::string host;  // address without brackets, or the name
  std::uint16_t port = 0;
  std::string path;  // unix_socket only
};

// [timeouts]; a site or an upstream may set its own. Milliseconds; 0 means none where that is
// allowed.
struct Timeouts {
  Millis client_header_ms = 10'000;    // whole head, from its first byte (or from accept): 408
  Millis keep_alive_ms = 75'000;       // client idle between requests: closed in silence
  Millis body_idle_ms = 60'000;        // no progress of a body, in either direction: 408 or cut
  Millis body_grace_ms = 10'000;       // how long a body may be slower than Limits::body_rate_min
  Millis connect_ms = 5'000;           // 504
  Millis response_header_ms = 60'000;  // from the whole request sent to the response head: 504
  Millis queue_ms = 5'000;             // waiting for a place at a server: 503
  Millis tunnel_idle_ms = 3'600'000;   // an upgraded connection without a byte in either direction
  Millis linger_ms =
      2'000;  // reading on after an error response, so that it is not lost to a reset
  Millis drain_ms = 30'000;  // SIGTERM: how long requests in flight may take
};

// [limits]
struct Limits {
  std::uint32_t request_line_bytes_max = 8'192;   // 414
  std::uint32_t header_bytes_max = 32'768;        // 431
  std::uint32_t header_count_max = 100;           // 431
  std::uint64_t body_bytes_max = 0;               // 0: none; 413
  std::uint32_t connections_max = 0;              // 0: derived from the descriptor limit at start
  std::uint32_t connections_per_address_max = 0;  // over all rings; 0: none
  std::uint32_t requests_per_connection_max = 0;  // 0: none
  std::uint32_t streams_per_connection_max =
      128;                          // HTTP/2 requests at a time; the others are refused
  std::uint64_t body_rate_min = 0;  // bytes a second while the client is waited for; 0: none
  std::uint32_t buffered_bytes_max =
      256 * 1024;  // per connection and direction: the high watermark
};

// How bodies get from one socket to the other ([server] body_mover).
enum class BodyMover : std::uint8_t {
  automatic,  // a pipe for large bodies of quick peers, buffers for the others
  copy,       // one receive buffer at a time
  large,      // one large receive buffer at a time
  bundle,     // several receive buffers at a time, where the kernel can (6.10)
  splice,     // a pipe whenever there is a body
  zero_copy,  // large receive buffers, sent from there with SEND_ZC
};

struct Server {
  std::uint32_t rings = 0;            // 0 = "auto"
  std::uint32_t ring_entries = 1024;  // submission queue
  std::uint32_t buffers = 4096;       // receive buffers a ring; a power of two
  std::uint32_t buffer_bytes = 16'384;
  std::uint32_t large_buffers = 16;      // of a ring, for bodies; a power of two
  std::string server_name = "ringside";  // Server field of answers made here, Via pseudonym
  BodyMover body_mover = BodyMover::automatic;
  std::uint32_t zero_copy_bytes_min = 32'768;  // smaller pieces are never sent with SEND_ZC
  bool batch_wait = true;  // a busy ring may wait microseconds for more work before it wakes
};

struct Log {
  enum class Level : std::uint8_t { debug, info, warn, error };
  enum class Access : std::uint8_t { off, json, combined };
  Level level = Level::info;
  std::string file;  // error log; empty: stderr
  Access access = Access::json;
  std::string access_file;  // empty: stderr
};

// Clients that came in clear text are sent to https. Of a site; else of the listener.
struct RedirectHttps {
  bool on = false;
  std::uint16_t status = 308;
  std::uint16_t port = 443;
};

struct Listen {
  std::string name;
  std::vector<Endpoint> addresses;  // never Kind::name
  std::uint32_t backlog = 4096;
  Millis defer_accept_ms = 0;  // whole seconds to wait for a first byte before accepting; 0: none
  std::optional<std::uint32_t> tls;  // index into Snapshot::tls; absent: clear text
  // `protocols`; at least one of them.
  bool http1 = true;
  bool http2 = false;
  bool http1_preferred = false;  // by ALPN, where a client offers both
  RedirectHttps redirect_https;  // for sites that say nothing of it
};

// What servers are spoken to in.
enum class UpstreamProtocol : std::uint8_t {
  http1,
  h2,         // by ALPN over TLS, by prior knowledge in clear text (RFC 9113 §3.3)
  automatic,  // over TLS as ALPN decides; HTTP/1.1 in clear text
};

struct UpstreamServer {
  Endpoint endpoint;
  std::uint32_t weight = 1;           // 1..1000
  std::uint32_t connections_max = 0;  // over all rings; 0: none
  bool tls = false;                   // "https://"
  UpstreamProtocol protocol = UpstreamProtocol::http1;
  std::uint32_t streams_max = 100;  // at a time, of an HTTP/2 connection
};

struct Upstream {
  std::string name;
  std::vector<UpstreamServer> servers;
  enum class Balance : std::uint8_t { round_robin } balance = Balance::round_robin;
  std::uint32_t queue_max = 1024;  // requests that may wait for a place
  std::uint32_t idle_max = 256;    // idle connections kept per server and ring
  Millis idle_timeout_ms = 60'000;
  UpstreamProtocol protocol = UpstreamProtocol::http1;
  // An HTTP/2 connection on which nothing came for so long is asked whether it is there still (0:
  // it is not), and given up when it does not answer in time.
  Millis ping_interval_ms = 10'000;
  Millis ping_timeout_ms = 5'000;
  Millis resolve_interval_ms = 30'000;  // names are looked up again this often
  Timeouts timeouts;                    // connect, response_header, queue, body_idle count here
  UpstreamTls tls;                      // for the servers that have it
};

// A value with variables, compiled: literal text, then a variable, and so on. "{{" is a literal
// brace.
enum class Variable : std::uint8_t {
  none,
  client_address,
  client_port,
  host,      // as the client sent it, with its port
  hostname,  // without the port
  method,
  path,   // as the client sent it
  query,  // without "?"
  uri,    // path, "?" and query, as the client sent them
  scheme,
  request_id,
  server_name,
  listener,
  request_header,  // {header.NAME}
  // Of the client's TLS; empty in clear text.
  tls_version,
  tls_cipher,
  tls_sni,
  tls_alpn,
  tls_client_verified,  // "true" or "false"
  // Of the client's certificate; empty without one. `is_of_client_certificate` knows them.
  tls_client_subject,
  tls_client_cn,
  tls_client_issuer,
  tls_client_serial,
  tls_client_fingerprint,
  tls_client_san,
  tls_client_dns,
  tls_client_uri,
  tls_client_email,
  tls_client_cert,  // as a header field has it (RFC 9440 §2.2)
};
constexpr bool is_of_client_certificate(Variable variable) {
  return variable >= Variable::tls_client_verified && variable <= Variable::tls_client_cert;
}
struct TemplatePart {
  std::string literal;
  Variable variable = Variable::none;
  std::string argument;  // lower-case field name of request_header
};
using Template = std::vector<TemplatePart>;

struct HeaderEdits {
  std::vector<std::pair<std::string, Template>> set;  // replaces all of that name
  std::vector<std::pair<std::string, Template>> add;
  std::vector<std::string> remove;  // lower-case; a trailing "*" matches a prefix
  bool empty() const { return set.empty() && add.empty() && remove.empty(); }
};

struct Respond {
  std::uint16_t status = 200;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

struct Redirect {
  std::uint16_t status = 308;
  Template location;
};

struct Route {
  std::string path = "/*";           // exact "/x", or prefix "/x/*"; normalised
  std::vector<std::string> methods;  // upper case; empty: any
  // Exactly one of the three.
  std::optional<std::uint32_t> upstream;  // index into Snapshot::upstreams
  std::optional<Respond> respond;
  std::optional<Redirect> redirect;
  HeaderEdits request_headers;
  HeaderEdits response_headers;
  std::string strip_prefix;    // removed from the path before it is sent
  std::string add_prefix;      // put before it, after strip_prefix
  bool preserve_host = true;   // false: Host is the server's own address
  bool redirect_https = true;  // false: served in clear text too, whatever the site says
  std::string source;          // "ringside.toml:12", for logs and errors
};

struct Site {
  std::vector<std::string> hosts;      // lower-case: "a.test", "*.a.test", "*"
  std::vector<std::uint32_t> listens;  // indices; empty: every listener
  Timeouts timeouts;                   // client side ones and body_idle count here
  Limits limits;
  std::optional<RedirectHttps> redirect_https;  // absent: as the listener says
  std::string hsts;  // value of Strict-Transport-Security; empty: the site does not care
  std::vector<Route> routes;
};

// How the client's address travels.
struct Forwarding {
  std::vector<std::string> trusted_proxies;  // "10.0.0.0/8", "::1", "unix"
  bool x_forwarded = true;                   // X-Forwarded-For, -Proto, -Host
  bool forwarded = false;                    // RFC 7239
  bool via = true;
  bool request_id = true;         // X-Request-Id
  bool underscore_names = false;  // let "X_Forwarded_For" and its kind through
};

struct Snapshot {
  std::string file;  // where it came from
  Server server;
  Timeouts timeouts;
  Limits limits;
  Log log;
  Forwarding forwarding;
  std::vector<Listen> listens;
  std::vector<Tls> tls;
  std::vector<Upstream> upstreams;
  std::vector<Site> sites;
};

using SnapshotRef = std::shared_ptr<const Snapshot>;

}  // namespace ringside::config
