// Who a client is by its certificate, for variables and header fields.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ringside/tls/session.h"

namespace ringside::tls {

struct PeerIdentity {
  std::string subject;      // RFC 2253
  std::string issuer;       // RFC 2253
  std::string serial;       // upper-case hex
  std::string fingerprint;  // SHA-256 of the certificate, lower-case hex
  // The subject's alternative names: "DNS:a.test", "IP:10.0.0.1", "IP:::1", "email:a@b", "URI:...".
  std::vector<std::string> names;
  std::string pem;  // empty unless it was asked for
};

enum class WithPem : bool { no, yes };

// The identity of a peer whose certificate was asked for and found good, after the handshake; it is
// known in resumed sessions too. Nothing for a peer without a certificate, and where none was
// verified. Allocates. Keep it: the session is freed when the kernel takes over.
std::optional<PeerIdentity> peer_identity(const ssl_st* ssl, WithPem with_pem = WithPem::no);

}  // namespace ringside::tls
