// What a ring needs to speak TLS to the servers of one upstream.
#pragma once

#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ringside/config/tls.h"
#include "ringside/tls/library_context.h"
#include "ringside/tls/session.h"

struct x509_store_st;

namespace ringside::tls {

// The authorities that servers must come from. The system's has well over a hundred, some MiB, so
// upstreams with the same `ca` and library context share one. Immutable.
class TrustStore {
 public:
  // `ca` is a PEM file; empty: the system's store. The error names the file.
  static std::expected<std::shared_ptr<TrustStore>, std::string> load(
      const std::string& ca, std::shared_ptr<LibraryContext> library = LibraryContext::shared());
  ~TrustStore();
  TrustStore(const TrustStore&) = delete;
  TrustStore& operator=(const TrustStore&) = delete;

  x509_store_st* get() const { return store_; }

 private:
  TrustStore() = default;

  std::shared_ptr<LibraryContext> library_;
  x509_store_st* store_ = nullptr;
};

struct ClientOptions {
  // For ALPN, in order of preference; empty: the extension is not sent.
  std::vector<std::string> protocols;
  // Connections may be handed to the kernel, so engines are told the secrets. (OpenSSL prints them
  // for that, which is some 6% of a handshake.)
  bool kernel_tls = true;
  // The kernel takes a new key on a KeyUpdate.
  bool kernel_rekeys = false;
  std::shared_ptr<LibraryContext> library = LibraryContext::shared();
};

// Owner: a ring; one a ring and upstream. Thread: made anywhere, used by one. Lifetime: longer than
// every session that it makes.
class ClientContext {
 public:
  // `upstream` is its name, for messages. `trust` may be null when `config.verify` is false.
  static std::expected<std::unique_ptr<ClientContext>, std::string> make(
      const config::UpstreamTls& config, const std::string& upstream,
      std::shared_ptr<const TrustStore> trust, ClientOptions options = {});
  ~ClientContext();
  ClientContext(const ClientContext&) = delete;
  ClientContext& operator=(const ClientContext&) = delete;

  // A session in the connecting state, without a BIO. `host` is the server's name or address as it
  // is configured; `server_name` of the configuration goes before it. The certificate must be for
  // that name or address; a name is also sent (SNI), an address never is (RFC 6066 §3). A session
  // that `server` (any text that tells servers apart) gave before is offered for resumption. Null
  // when there is no memory.
  SslPtr new_session(std::string_view host, std::string_view server);

  // Things to say loudly at the start, such as verification that is off.
  const std::vector<std::string>& warnings() const;
  const config::UpstreamTls& config() const;
  const ClientOptions& options() const;

 private:
  struct Parts;
  explicit ClientContext(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

// Why the peer's certificate was refused, as "hostname mismatch"; empty when it was not.
std::string verify_failure(const ssl_st* ssl);

}  // namespace ringside::tls
