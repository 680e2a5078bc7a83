// What a ring needs to accept TLS connections of one [tls.NAME].
#pragma once

#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "ringside/tls/credentials.h"
#include "ringside/tls/library_context.h"
#include "ringside/tls/replay_guard.h"
#include "ringside/tls/session.h"
#include "ringside/tls/ticket_keys.h"

namespace ringside::tls {

struct ServerOptions {
  // Protocols for ALPN (RFC 7301), in order of preference: "h2", "http/1.1". A client that names
  // others alone is refused with no_application_protocol; one that names none is served. Empty: the
  // extension is ignored.
  std::vector<std::string> protocols;
  // Early data is taken (RFC 8446 §2.3), once each; needs tickets. Null: none. Not on connections
  // that chose "h2", nor where the first bytes decide whether it is HTTP/2.
  std::shared_ptr<ReplayGuard> replays;
  // Connections may be handed to the kernel, so engines are told the secrets. (OpenSSL prints them
  // for that, which is some 6% of a handshake.)
  bool kernel_tls = true;
  // The kernel takes a new key on a KeyUpdate.
  bool kernel_rekeys = false;
  std::shared_ptr<LibraryContext> library = LibraryContext::shared();
};

// OpenSSL's contexts for all certificates of an entry, chosen by the client's server name.
// Owner: a ring; one a ring, since rings that share a context wait for its locks. Thread: made
// anywhere, used by one. Lifetime: longer than every session that it makes; after a reload a new
// one takes over and this one goes with its last session.
class ServerContext {
 public:
  // `tickets` may be null: then no session is resumed. Fails when OpenSSL refuses something that
  // load_credentials let pass, or memory ran out.
  static std::expected<std::unique_ptr<ServerContext>, std::string> make(
      std::shared_ptr<const Credentials> credentials, std::shared_ptr<const TicketKeys> tickets,
      ServerOptions options = {});
  ~ServerContext();
  ServerContext(const ServerContext&) = delete;
  ServerContext& operator=(const ServerContext&) = delete;

  // A session in the accepting state, without a BIO. Null when there is no memory.
  SslPtr new_session() const;
  const Credentials& credentials() const;
  const ServerOptions& options() const;

 private:
  struct Parts;
  explicit ServerContext(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace ringside::tls
