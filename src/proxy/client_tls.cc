#include "client_tls.h"

namespace ringside::proxy {
namespace {

std::string_view text_of(const tls::PeerIdentity& identity, config::Variable variable) {
  using config::Variable;
  switch (variable) {
    case Variable::tls_client_subject:
      return identity.subject;
    case Variable::tls_client_cn:
      return identity.common_name;
    case Variable::tls_client_issuer:
      return identity.issuer;
    case Variable::tls_client_serial:
      return identity.serial;
    case Variable::tls_client_fingerprint:
      return identity.fingerprint;
    case Variable::tls_client_san:
      return identity.names;
    case Variable::tls_client_dns:
      return identity.dns;
    case Variable::tls_client_uri:
      return identity.uri;
    case Variable::tls_client_email:
      return identity.email;
    default:
      return {};
  }
}

}  // namespace

std::string_view ClientTls::value(config::Variable variable) {
  using config::Variable;
  switch (variable) {
    case Variable::tls_version:
      return peer_.version();
    case Variable::tls_cipher:
      return peer_.cipher();
    case Variable::tls_sni:
      return peer_.names_host() ? peer_.server_name() : std::string_view();
    case Variable::tls_alpn:
      return peer_.alpn();
    case Variable::tls_client_verified:
      return peer_.verified() ? "true" : "false";
    case Variable::tls_client_cert:
      return peer_.certificate_field();
    default:
      break;
  }
  const tls::PeerIdentity* identity = peer_.identity();
  return identity == nullptr ? std::string_view() : text_of(*identity, variable);
}

bool ClientTls::met_rules(const tls::Credentials& credentials) const {
  const tls::Credentials* then = layer_.credentials();
  return then == nullptr || then == &credentials ||
         then->session_binding == credentials.session_binding;
}

}  // namespace ringside::proxy
