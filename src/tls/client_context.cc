#include "ringside/tls/client_context.h"

#include <arpa/inet.h>
#include <openssl/err.h>

#include <array>

#include "engine_callbacks.h"
#include "openssl.h"
#include "pem_file.h"
#include "policy.h"
#include "session_store.h"

namespace ringside::tls {
namespace {

constexpr int verify_depth = 8;

bool is_address(const std::string& host) {
  std::array<unsigned char, 16> bytes{};
  return ::inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

std::expected<void, std::string> use_certificate(SSL_CTX* context,
                                                 const config::UpstreamTls& config) {
  const auto chain = read_certificates(config.cert);
  if (!chain) return std::unexpected(chain.error());
  const auto key = read_key(config.key);
  if (!key) return std::unexpected(key.error());
  if (SSL_CTX_use_certificate(context, chain->front().get()) != 1) {
    return std::unexpected(join({config.cert, ": ", take_reason()}));
  }
  if (SSL_CTX_use_PrivateKey(context, key->get()) != 1) {
    return std::unexpected(
        join({"the key in ", config.key, " does not belong to the certificate in ", config.cert,
              ": ", take_reason()}));
  }
  for (std::size_t i = 1; i < chain->size(); ++i) {
    if (SSL_CTX_add1_chain_cert(context, (*chain)[i].get()) != 1) {
      return std::unexpected(join({config.cert, ": ", take_reason()}));
    }
  }
  return {};
}

}  // namespace

std::expected<std::shared_ptr<TrustStore>, std::string> TrustStore::load(
    const std::string& ca, std::shared_ptr<LibraryContext> library) {
  ERR_clear_error();
  std::shared_ptr<TrustStore> trust(new TrustStore);
  trust->store_ = X509_STORE_new();
  trust->library_ = std::move(library);
  OSSL_LIB_CTX* context = trust->library_->get();
  if (trust->store_ == nullptr) return std::unexpected("no store for certificates can be made");
  if (ca.empty()) {
    if (X509_STORE_set_default_paths_ex(trust->store_, context, nullptr) == 1) return trust;
    return std::unexpected(join({"the system's certificates cannot be read: ", take_reason()}));
  }
  const auto authorities = read_certificates(ca);
  if (!authorities) return std::unexpected(authorities.error());
  for (const X509Ptr& each : *authorities) {
    const X509Ptr own = certificate_of(der_of(each.get()), context);
    if (!own || X509_STORE_add_cert(trust->store_, own.get()) != 1) {
      return std::unexpected(join({ca, ": ", take_reason()}));
    }
  }
  // Whoever lists an intermediate, or the server's own certificate, trusts it.
  X509_STORE_set_flags(trust->store_, X509_V_FLAG_PARTIAL_CHAIN);
  return trust;
}

TrustStore::~TrustStore() {
  X509_STORE_free(store_);
}

struct ClientContext::Parts {
  // Which server a session is for, kept with it.
  struct Peer {
    SessionStore* store;
    std::string server;
  };

  static int peer_index();
  static int on_session(SSL* ssl, SSL_SESSION* session);
  static void free_peer(void* /*parent*/, void* peer, CRYPTO_EX_DATA* /*data*/, int /*index*/,
                        long /*argument*/, void* /*pointer*/) {
    delete static_cast<Peer*>(peer);
  }
  std::expected<void, std::string> build(const std::string& upstream);
  bool set_name(SSL* ssl, const std::string& host) const;

  config::UpstreamTls config;
  std::shared_ptr<const TrustStore> trust;
  ClientOptions options;
  SessionStore sessions;
  std::vector<std::string> warnings;
  CtxPtr context;
};

int ClientContext::Parts::peer_index() {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, free_peer);
  return index;
}

int ClientContext::Parts::on_session(SSL* ssl, SSL_SESSION* session) {
  const auto* peer = static_cast<const Peer*>(SSL_get_ex_data(ssl, peer_index()));
  if (peer == nullptr || SSL_SESSION_is_resumable(session) != 1) return 0;
  peer->store->put(peer->server, SessionPtr(session));
  return 1;
}

std::expected<void, std::string> ClientContext::Parts::build(const std::string& upstream) {
  context.reset(SSL_CTX_new_ex(options.library->get(), nullptr, TLS_client_method()));
  SSL_CTX* ctx = context.get();
  if (ctx == nullptr) return std::unexpected("no TLS context can be made: " + take_reason());
  const auto least = config.min_version.value_or(config::TlsVersion::tls12);
  if (auto applied = apply_common(ctx, least, config.max_version); !applied) return applied;
  if (config.verify) {
    SSL_CTX_set1_cert_store(ctx, trust->get());
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_verify_depth(ctx, verify_depth);
  } else {
    SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, nullptr);
    warnings.push_back(join({"[upstream.", upstream,
                             ".tls] verify = false: whoever is between here and the servers can "
                             "read and change everything"}));
  }
  if (!config.cert.empty()) {
    if (auto used = use_certificate(ctx, config); !used) return used;
    if (world_readable(config.key)) {
      warnings.push_back(
          join({config.key, ": every user of this machine can read the private key"}));
    }
  }
  std::vector<unsigned char> alpn;
  for (const std::string& protocol : options.protocols) {
    alpn.push_back(static_cast<unsigned char>(protocol.size()));
    alpn.insert(alpn.end(), protocol.begin(), protocol.end());
  }
  // It returns 0 for success, unlike its kin.
  if (!alpn.empty() &&
      SSL_CTX_set_alpn_protos(ctx, alpn.data(), static_cast<unsigned>(alpn.size())) != 0) {
    return std::unexpected("the protocols for ALPN cannot be set: " + take_reason());
  }
  if (options.kernel_tls) EngineCallbacks::watch_secrets(ctx);
  SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(ctx, on_session);
  return {};
}

bool ClientContext::Parts::set_name(SSL* ssl, const std::string& host) const {
  X509_VERIFY_PARAM* rules = SSL_get0_param(ssl);
  if (is_address(host)) return X509_VERIFY_PARAM_set1_ip_asc(rules, host.c_str()) == 1;
  X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return X509_VERIFY_PARAM_set1_host(rules, host.data(), host.size()) == 1 &&
         SSL_set_tlsext_host_name(ssl, host.c_str()) == 1;
}

ClientContext::ClientContext(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
ClientContext::~ClientContext() = default;

std::expected<std::unique_ptr<ClientContext>, std::string> ClientContext::make(
    const config::UpstreamTls& config, const std::string& upstream,
    std::shared_ptr<const TrustStore> trust, ClientOptions options) {
  ERR_clear_error();
  if (config.verify && trust == nullptr) {
    return std::unexpected(join({"[upstream.", upstream, "] has no certificates to trust"}));
  }
  auto parts = std::make_unique<Parts>();
  parts->config = config;
  parts->trust = std::move(trust);
  parts->options = std::move(options);
  if (auto built = parts->build(upstream); !built) return std::unexpected(std::move(built.error()));
  return std::unique_ptr<ClientContext>(new ClientContext(std::move(parts)));
}

SslPtr ClientContext::new_session(std::string_view host, std::string_view server) {
  SslPtr ssl(SSL_new(parts_->context.get()));
  if (!ssl) return nullptr;
  SSL_set_connect_state(ssl.get());
  const std::string name =
      parts_->config.server_name.empty() ? std::string(host) : parts_->config.server_name;
  // An empty name would match any certificate.
  if (name.empty() || !parts_->set_name(ssl.get(), name)) return nullptr;
  auto peer = std::make_unique<Parts::Peer>(&parts_->sessions, std::string(server));
  if (const SessionPtr known = parts_->sessions.take(server))
    SSL_set_session(ssl.get(), known.get());
  if (SSL_set_ex_data(ssl.get(), Parts::peer_index(), peer.get()) != 1) return nullptr;
  peer.release();  // NOLINT(bugprone-unused-return-value): OpenSSL frees it with the session
  return ssl;
}

const config::UpstreamTls& ClientContext::config() const {
  return parts_->config;
}

const ClientOptions& ClientContext::options() const {
  return parts_->options;
}

const std::vector<std::string>& ClientContext::warnings() const {
  return parts_->warnings;
}

std::string verify_failure(const ssl_st* ssl) {
  const long result = SSL_get_verify_result(ssl);
  return result == X509_V_OK ? std::string() : X509_verify_cert_error_string(result);
}

}  // namespace ringside::tls
