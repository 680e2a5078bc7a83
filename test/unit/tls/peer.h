// The other end of a connection: plain OpenSSL over memory, with certificates made on the spot.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "ringside/tls/engine.h"

#include "openssl.h"

namespace ringside::tls::test {

// What both ends agree on.
struct Setup {
  Version version = Version::tls13;
  Aead aead = Aead::aes128_gcm;
  std::size_t tickets = 2;  // of a TLS 1.3 server
};

// A server's and a client's context under the policy of ours, for what a configuration cannot ask
// for. The certificate is for "localhost", signed by itself; the client trusts it alone.
class Contexts {
 public:
  explicit Contexts(const Setup& setup = {});
  SSL_CTX* of(Role role) { return role == Role::server ? server_.get() : client_.get(); }
  const X509* certificate() const { return certificate_.get(); }

 private:
  X509Ptr certificate_;
  CtxPtr server_;
  CtxPtr client_;
};

// As ServerContext and ClientContext make them.
SslPtr new_session(SSL_CTX* context, Role role, SSL_SESSION* resumed = nullptr);

class Peer {
 public:
  // `early`: what a client sends with its first flight.
  Peer(SSL_CTX* context, Role role, SSL_SESSION* session = nullptr, std::string_view early = {});

  // Takes bytes from the wire and does with them what can be done; plaintext is added to
  // `received`.
  void give(std::string_view bytes);
  void advance();
  // Bytes for the wire.
  std::string take();

  void send(std::string_view plaintext);
  // The end of a handshake with early data, which reading alone puts off.
  void finish() { EXPECT_EQ(SSL_do_handshake(ssl.get()), 1); }
  // The next flight has it in front.
  void update_key(bool reply_requested);
  // TLS 1.2: asks for it, against the policy of ours.
  void renegotiate();
  void close();
  bool established() const { return SSL_is_init_finished(ssl.get()) == 1; }
  SessionPtr session() const { return SessionPtr(SSL_get1_session(ssl.get())); }

  SslPtr ssl;
  std::string received;
  bool closed = false;  // by close_notify
  unsigned long error = 0;
};

// An engine, and what came out of it.
class Side {
 public:
  explicit Side(SslPtr ssl, const EngineOptions& options = {.keep_secrets = true});
  Side(SSL_CTX* context, Role role, const EngineOptions& options = {.keep_secrets = true},
       SSL_SESSION* resumed = nullptr)
      : Side(new_session(context, role, resumed), options) {}

  // Feeds all of it; plaintext comes out in pieces of at most `space`.
  Engine::Status give(std::string_view bytes, std::size_t space = 65536);
  // Encrypts all of it into outputs of `space` bytes.
  void send(std::string_view plaintext, std::size_t space = 65536);
  // Bytes for the wire, fetched in pieces of at most `space`.
  std::string take(std::size_t space = 65536);

  RecordScratch scratch;
  Engine engine;
  std::string received;
  Engine::Status status = Engine::Status::need_input;
  unsigned handshakes_done = 0;

 private:
  std::string wire_;
};

// How much of what is on the wire arrives next.
class Splitter {
 public:
  virtual ~Splitter() = default;
  virtual std::size_t next(std::size_t there) = 0;
};
class Whole final : public Splitter {
 public:
  std::size_t next(std::size_t there) override { return there; }
};
class Bytewise final : public Splitter {
 public:
  std::size_t next(std::size_t) override { return 1; }
};
// Sizes from 1 to `most`, the same ones for the same seed.
class AtRandom final : public Splitter {
 public:
  AtRandom(unsigned seed, std::size_t most) : state_(seed), most_(most) {}
  std::size_t next(std::size_t there) override;

 private:
  std::uint64_t state_;
  std::size_t most_;
};

// Carries bytes both ways until there are none.
void settle(Side& side, Peer& peer, Splitter& splitter);
void settle(Side& side, Peer& peer);

// Bytes that are not all the same, and the same ones for the same seed.
std::string pattern(std::size_t bytes, unsigned seed = 1);

constexpr Role other(Role role) {
  return role == Role::server ? Role::client : Role::server;
}

}  // namespace ringside::tls::test
