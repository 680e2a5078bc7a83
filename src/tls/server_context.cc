#include "ringside/tls/server_context.h"

#include <openssl/err.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <vector>

#include "engine_callbacks.h"
#include "name_index.h"
#include "openssl.h"
#include "policy.h"
#include "ticket_seal.h"

namespace ringside::tls {
namespace {

// Enough for a root, two intermediates and the client's own.
constexpr int verify_depth = 4;
constexpr std::string_view http2 = "h2";

bool offers_http2(const std::vector<std::string>& protocols) {
  return std::ranges::find(protocols, http2) != protocols.end();
}

std::uint64_t steady_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 +
         static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000;
}

std::expected<void, std::string> failed(std::string_view what) {
  return std::unexpected(join({what, ": ", take_reason()}));
}

}  // namespace

struct ServerContext::Parts {
  // A context with what the status callback needs.
  struct Set {
    CtxPtr context;
    std::vector<std::pair<const X509*, const StapleSlot*>> staples;
  };

  Parts(std::shared_ptr<const Credentials> loaded, ServerOptions chosen)
      : credentials(std::move(loaded)),
        options(std::move(chosen)),
        index(credentials->certificates) {}

  std::expected<void, std::string> build(std::shared_ptr<const TicketKeys> tickets);
  std::expected<void, std::string> build_set(Set& set, const std::vector<std::uint32_t>& members);
  std::expected<void, std::string> add_certificate(Set& set, const Certificate& certificate) const;
  std::expected<void, std::string> set_client_rules(SSL_CTX* context) const;
  void set_tickets(SSL_CTX* context) const;
  void set_early_data(SSL_CTX* context);
  void set_callbacks(Set& set);

  static int on_server_name(SSL* ssl, int* alert, void* parts);
  static int on_alpn(SSL* ssl, const unsigned char** out, unsigned char* out_size,
                     const unsigned char* in, unsigned in_size, void* parts);
  static int on_early_data(SSL* ssl, void* parts);
  static int on_status(SSL* ssl, void* set);
  static int on_ticket(SSL* ssl, unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher,
                       EVP_MAC_CTX* mac, int sealing);

  // Before the contexts, which are gone when it goes.
  std::shared_ptr<const Credentials> credentials;
  ServerOptions options;
  NameIndex index;
  std::vector<unsigned char> alpn;  // in the form of the wire
  std::unique_ptr<TicketSeal> seal;
  std::vector<Set> sets;  // like NameIndex::sets; never resized once callbacks point into it
};

std::expected<void, std::string> ServerContext::Parts::build(
    std::shared_ptr<const TicketKeys> tickets) {
  for (const std::string& protocol : options.protocols) {
    alpn.push_back(static_cast<unsigned char>(protocol.size()));
    alpn.insert(alpn.end(), protocol.begin(), protocol.end());
  }
  if (tickets && credentials->config.tickets) {
    seal = TicketSeal::make(std::move(tickets), options.library->get());
    if (!seal) return failed("tickets cannot be sealed");
  }
  sets.resize(index.sets().size());
  for (std::size_t i = 0; i < sets.size(); ++i) {
    if (auto built = build_set(sets[i], index.sets()[i]); !built) return built;
  }
  return {};
}

std::expected<void, std::string> ServerContext::Parts::build_set(
    Set& set, const std::vector<std::uint32_t>& members) {
  set.context.reset(SSL_CTX_new_ex(options.library->get(), nullptr, TLS_server_method()));
  SSL_CTX* context = set.context.get();
  if (context == nullptr) return failed("no TLS context can be made");
  if (auto applied = apply_server_policy(context, credentials->config); !applied) return applied;
  for (std::uint32_t member : members) {
    if (auto added = add_certificate(set, credentials->certificates[member]); !added) return added;
  }
  if (auto ruled = set_client_rules(context); !ruled) return ruled;
  const auto& binding = credentials->session_binding;
  if (SSL_CTX_set_session_id_context(context, binding.data(),
                                     static_cast<unsigned>(binding.size())) != 1) {
    return failed("sessions cannot be bound to their entry");
  }
  set_tickets(context);
  set_early_data(context);
  set_callbacks(set);
  return {};
}

std::expected<void, std::string> ServerContext::Parts::add_certificate(
    Set& set, const Certificate& certificate) const {
  SSL_CTX* context = set.context.get();
  std::vector<X509Ptr> chain;
  for (const Der& der : certificate.chain) {
    chain.push_back(certificate_of(der, options.library->get()));
    if (!chain.back()) return failed(certificate.file);
  }
  const KeyPtr key = key_of(certificate.key, options.library->get());
  if (!key) return failed(join({"the key for ", certificate.file}));
  if (SSL_CTX_use_certificate(context, chain.front().get()) != 1 ||
      SSL_CTX_use_PrivateKey(context, key.get()) != 1) {
    return failed(certificate.file);
  }
  // Empties the chain of this type of key, which OpenSSL keeps apart from the others.
  SSL_CTX_clear_chain_certs(context);
  for (std::size_t i = 1; i < chain.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(context, chain[i].get()) != 1) return failed(certificate.file);
  }
  if (certificate.staple) set.staples.emplace_back(chain.front().get(), certificate.staple.get());
  return {};
}

std::expected<void, std::string> ServerContext::Parts::set_client_rules(SSL_CTX* context) const {
  const config::ClientCertificate rule = credentials->config.client_certificate;
  if (rule == config::ClientCertificate::off) return {};
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  for (const Der& der : credentials->client_ca) {
    const X509Ptr authority = certificate_of(der, options.library->get());
    // The names are sent, so that a client can choose among its certificates (RFC 8446 §4.2.4).
    if (!authority || X509_STORE_add_cert(store, authority.get()) != 1 ||
        SSL_CTX_add_client_CA(context, authority.get()) != 1) {
      return failed(credentials->config.client_ca);
    }
  }
  // Whoever lists an intermediate trusts it, whether or not its root is listed too.
  X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
  SSL_CTX_set_verify_depth(context, verify_depth);
  SSL_CTX_set_verify(context,
                     rule == config::ClientCertificate::required
                         ? SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT
                         : SSL_VERIFY_PEER,
                     nullptr);
  return {};
}

void ServerContext::Parts::set_tickets(SSL_CTX* context) const {
  // Sessions live in tickets alone: a cache would belong to one ring.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  if (!seal) {
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(context, 0);
    return;
  }
  // One: clients take it for one connection more, and the second would cost as much as the first.
  SSL_CTX_set_num_tickets(context, 1);
  SSL_CTX_set_timeout(context, static_cast<long>(credentials->config.ticket_rotation_ms / 1000));
  SSL_CTX_set_tlsext_ticket_key_evp_cb(context, on_ticket);
}

// OpenSSL's own protection keeps sessions of one context and gives out tickets that are none.
void ServerContext::Parts::set_early_data(SSL_CTX* context) {
  if (!options.replays || !seal) return;
  SSL_CTX_set_max_early_data(context, credentials->config.early_data_bytes_max);
  SSL_CTX_set_recv_max_early_data(context, credentials->config.early_data_bytes_max);
  SSL_CTX_set_options(context, SSL_OP_NO_ANTI_REPLAY);
  SSL_CTX_set_allow_early_data_cb(context, on_early_data, this);
}

void ServerContext::Parts::set_callbacks(Set& set) {
  SSL_CTX* context = set.context.get();
  if (options.kernel_tls) EngineCallbacks::watch_secrets(context);
  // Where on_ticket, which has no argument of its own, finds its way back.
  SSL_CTX_set_app_data(context, this);
  SSL_CTX_set_tlsext_servername_callback(context, on_server_name);
  SSL_CTX_set_tlsext_servername_arg(context, this);
  if (!alpn.empty()) SSL_CTX_set_alpn_select_cb(context, on_alpn, this);
  if (!set.staples.empty()) {
    SSL_CTX_set_tlsext_status_cb(context, on_status);
    SSL_CTX_set_tlsext_status_arg(context, &set);
  }
}

int ServerContext::Parts::on_server_name(SSL* ssl, int* /*alert*/, void* parts) {
  const auto* self = static_cast<const Parts*>(parts);
  const char* name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  const int found = name == nullptr ? -1 : self->index.find(name);
  // RFC 6066 §3: a name that is not known is not acknowledged; the default certificate is sent.
  if (found < 0) return SSL_TLSEXT_ERR_NOACK;
  SSL_set_SSL_CTX(ssl, self->sets[static_cast<std::size_t>(found)].context.get());
  return SSL_TLSEXT_ERR_OK;
}

// OpenSSL has found the ticket to be genuine and as old as the client says, and the connection to
// be for the same name and protocol.
int ServerContext::Parts::on_early_data(SSL* ssl, void* parts) {
  const auto* self = static_cast<const Parts*>(parts);
  const unsigned char* chosen = nullptr;
  unsigned chosen_bytes = 0;
  SSL_get0_alpn_selected(ssl, &chosen, &chosen_bytes);
  if (chosen_bytes == 0 && offers_http2(self->options.protocols)) return 0;
  std::array<unsigned char, ReplayGuard::random_bytes> random{};
  if (SSL_get_client_random(ssl, random.data(), random.size()) != random.size()) return 0;
  return self->options.replays->first(random, steady_ms()) ? 1 : 0;
}

int ServerContext::Parts::on_alpn(SSL* ssl, const unsigned char** out, unsigned char* out_size,
                                  const unsigned char* in, unsigned in_size, void* parts) {
  const auto* self = static_cast<const Parts*>(parts);
  // OpenSSL has checked the form of the client's list.
  for (std::size_t ours = 0; ours < self->alpn.size(); ours += 1 + self->alpn[ours]) {
    for (unsigned theirs = 0; theirs < in_size; theirs += 1 + in[theirs]) {
      const unsigned size = self->alpn[ours];
      if (in[theirs] != size ||
          !std::equal(in + theirs + 1, in + theirs + 1 + size, self->alpn.data() + ours + 1)) {
        continue;
      }
      *out = in + theirs + 1;
      *out_size = static_cast<unsigned char>(size);
      const std::string_view chosen(reinterpret_cast<const char*>(*out), size);
      if (chosen == http2) SSL_set_max_early_data(ssl, 0);
      return SSL_TLSEXT_ERR_OK;
    }
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

int ServerContext::Parts::on_status(SSL* ssl, void* set) {
  // OpenSSL has chosen among RSA and ECDSA by now.
  const X509* sent = SSL_get_certificate(ssl);
  for (const auto& [certificate, slot] : static_cast<const Set*>(set)->staples) {
    if (certificate != sent) continue;
    const auto staple = slot->get();
    if (staple == nullptr || staple->next_update <= std::time(nullptr)) break;
    void* copy = OPENSSL_memdup(staple->response.data(), staple->response.size());
    if (copy == nullptr) break;
    SSL_set_tlsext_status_ocsp_resp(ssl, copy, static_cast<long>(staple->response.size()));
    return SSL_TLSEXT_ERR_OK;
  }
  return SSL_TLSEXT_ERR_NOACK;
}

int ServerContext::Parts::on_ticket(SSL* ssl, unsigned char* name, unsigned char* iv,
                                    EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac, int sealing) {
  const auto* self = static_cast<const Parts*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
  if (sealing != 0) return self->seal->seal(name, iv, cipher, mac);
  constexpr int opened = 1;
  constexpr int opened_renew = 2;
  const int result = self->seal->open(name, iv, cipher, mac);
  // Clients use a ticket of TLS 1.3 once (RFC 8446 §C.4), so they need another each time.
  return result == opened && SSL_version(ssl) == TLS1_3_VERSION ? opened_renew : result;
}

ServerContext::ServerContext(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
ServerContext::~ServerContext() = default;

std::expected<std::unique_ptr<ServerContext>, std::string> ServerContext::make(
    std::shared_ptr<const Credentials> credentials, std::shared_ptr<const TicketKeys> tickets,
    ServerOptions options) {
  ERR_clear_error();
  auto parts = std::make_unique<Parts>(std::move(credentials), std::move(options));
  if (auto built = parts->build(std::move(tickets)); !built) {
    return std::unexpected(std::move(built.error()));
  }
  return std::unique_ptr<ServerContext>(new ServerContext(std::move(parts)));
}

SslPtr ServerContext::new_session() const {
  SslPtr ssl(SSL_new(parts_->sets.front().context.get()));
  if (ssl) SSL_set_accept_state(ssl.get());
  return ssl;
}

const ServerOptions& ServerContext::options() const {
  return parts_->options;
}

const Credentials& ServerContext::credentials() const {
  return *parts_->credentials;
}

}  // namespace ringside::tls
