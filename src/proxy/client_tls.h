// What an exchange may know of its client's TLS.
#pragma once

#include <string_view>

#include "ringside/filter/forwarding.h"
#include "ringside/tls/credentials.h"
#include "ringside/tls/layer.h"
#include "ringside/tls/peer_identity.h"

namespace ringside::proxy {

// Owner: the client's session, from the end of the handshake on; does not outlive the layer, but
// needs no more of it than its context, so OpenSSL's state may be gone (kernel TLS).
class ClientTls final : public filter::TlsFacts {
 public:
  // When the handshake has just been completed.
  explicit ClientTls(tls::Layer& layer) : layer_(layer), peer_(layer.peer()) {}

  std::string_view value(config::Variable variable) override;

  std::string_view version() const { return peer_.version(); }
  std::string_view cipher() const { return peer_.cipher(); }
  // By ALPN; empty: none was agreed on.
  std::string_view protocol() const { return peer_.alpn(); }
  // In lower case; empty: the client named none.
  std::string_view server_name() const { return peer_.server_name(); }
  // The subject of its certificate; empty: it showed none.
  std::string_view subject() { return value(config::Variable::tls_client_subject); }
  // Whether the handshake was under the same rules about client certificates as these.
  bool met_rules(const tls::Credentials& credentials) const;

 private:
  const tls::Layer& layer_;
  tls::Peer peer_;
};

}  // namespace ringside::proxy
