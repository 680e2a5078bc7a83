// What the proxy tells the server about the client, and the edits that a route asks for.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ringside/base/arena.h"
#include "ringside/config/snapshot.h"
#include "ringside/http/message.h"
#include "ringside/http/writer.h"

namespace ringside::filter {

// What templates may name about the client's TLS. Asked only where one does.
class TlsFacts {
 public:
  // Of a `tls_...` variable; empty: there is nothing to say. Valid as long as the connection. One
  // line of ASCII, whatever the client sent.
  virtual std::string_view value(config::Variable variable) = 0;

 protected:
  ~TlsFacts() = default;
};

// Everything that a header or a template may name about one request. Views live as long as the
// exchange.
struct RequestFacts {
  std::string_view peer_address;  // the socket's other end, "10.0.0.1", "2001:db8::1" (no
                                  // brackets), "unix:" for unix sockets
  std::uint16_t peer_port = 0;
  std::string_view
      client_address;  // after trusted proxies were looked through; peer_address otherwise
  std::uint16_t client_port = 0;
  bool peer_trusted = false;
  std::string_view scheme = "http";
  std::string_view host;  // authority as the client sent it
  std::string_view path;  // as sent
  std::string_view query;
  bool has_query = false;
  std::string_view method;
  std::string_view request_id;
  std::string_view listener;
  std::string_view server_name;
  const http::FieldList* request_fields = nullptr;
  TlsFacts* tls = nullptr;  // null: the client came to us in clear text
  // It came as early data, so it may be a replay: the server is told, whatever the edits say (RFC
  // 8470 §5.1).
  bool early = false;
};

// Whether the client speaks TLS, to us or to a trusted proxy before us, whose word counts more than
// what we see: the first element of X-Forwarded-Proto, or of Forwarded when there is none.
bool client_is_secure(const RequestFacts& facts, base::Arena& arena);

// Where https has the same request: "https://HOST[:PORT]TARGET". `host` is normalised. Empty: it is
// none that could stand in a URI without doubt, or missing. nullptr data(): memory exhausted.
std::string_view https_location(const RequestFacts& facts, std::string_view host,
                                std::uint16_t port, base::Arena& arena);

inline constexpr std::string_view early_data_name = "early-data";

// Strict-Transport-Security of a site (RFC 6797 §6.1).
struct Hsts {
  std::string_view value;  // empty: not a word of the site's; what the server sends passes
  bool secure = false;     // the field may be sent (§7.2)
};
inline constexpr std::string_view hsts_name = "strict-transport-security";

// The trusted proxies of a Snapshot, compiled. Immutable; shared by all rings.
class TrustedProxies {
 public:
  explicit TrustedProxies(const std::vector<std::string>& ranges);
  bool trusts(std::string_view address) const;

  // Reads X-Forwarded-For (or Forwarded, when there is no X-Forwarded-For) from right to left
  // through trusted addresses. Sets client_address, client_port and peer_trusted of `facts`, whose
  // peer_* and request_fields are set. Garbage ends the walk at the last good address.
  void find_client(RequestFacts& facts, base::Arena& arena) const;

 private:
  struct Range {
    std::uint8_t bytes[16];
    std::uint8_t bits;
    bool v6;
  };
  std::vector<Range> ranges_;
  bool unix_peers_ = false;
};

// Writes the fields of a request that goes to a server: the client's own without hop-by-hop ones
// and without those that we write ourselves, the forwarding fields, and the route's edits. Host,
// framing and connection fields are the caller's. Fields whose name folds to a managed one
// ("X_Forwarded_For", "X.Forwarded.Proto") are dropped unless configured. An untrusted peer's
// X-Forwarded-* and Forwarded are replaced, a trusted one's extended. Via is extended (RFC 9110
// §7.6.3).
void write_request_fields(http::HeadWriter& out, const http::RequestHead& head,
                          const RequestFacts& facts, const config::Forwarding& forwarding,
                          const config::HeaderEdits& edits, base::Arena& arena);

// As above for a response on its way to the client: hop-by-hop fields dropped, Via appended, edits
// applied. Where the site has `hsts`, it takes the place of the server's.
void write_response_fields(http::HeadWriter& out, const http::ResponseHead& head,
                           const RequestFacts& facts, const config::Forwarding& forwarding,
                           const config::HeaderEdits& edits, const Hsts& hsts);

// Whether a trailer field of a request may go on to the server (RFC 9110 §6.5.1). What a header
// says about the client in any spelling ("X-Forwarded-For", "X_Forwarded_For") is never taken from
// a trailer.
bool trailer_travels(const http::Field& field, const config::Forwarding& forwarding);

// The template that a route sets Host to; nullptr when it does not. Host is written by the caller.
const config::Template* host_override(const config::HeaderEdits& edits);

// The request-target for the server, in origin form (or "*"): the client's own bytes, unless the
// route has strip_prefix or add_prefix. Those work on `normal_path` (http::normalise_path), so that
// what was matched is what is stripped. The query is never touched. nullptr data(): memory
// exhausted.
std::string_view upstream_target(const config::Route& route, const http::RequestHead& head,
                                 std::string_view normal_path, base::Arena& arena);

// Keeps names that a server may take for ours (X-Forwarded-For, X_Forwarded_For, Forwarded, ...)
// out of a request's trailers, whoever sent them: they are marked hop_by_hop. Route edits do not
// reach trailers.
void drop_managed_trailers(http::FieldList& trailers);

// Expands a template (a redirect's location). nullptr data(): memory exhausted. CR, LF and NUL
// cannot come out of it.
std::string_view expand(const config::Template& text, const RequestFacts& facts,
                        base::Arena& arena);

// A fresh id: 16 random bytes as 32 hex digits (from a per-ring generator seeded by the kernel). A
// trusted peer's well-formed X-Request-Id (1..128 of [A-Za-z0-9._~+/=-]) is kept instead.
class RequestIds {
 public:
  // Any seeds will do, two zeros too.
  RequestIds(std::uint64_t seed_a, std::uint64_t seed_b);
  std::string_view next(base::Arena& arena);
  // As random as the ids: different, but no secret.
  void fill(std::span<std::uint8_t, 16> out);
  std::string_view keep_or_next(const RequestFacts& facts, base::Arena& arena);

 private:
  std::uint64_t state_[2];
};

}  // namespace ringside::filter
