// An engine and a peer that can talk to each other.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <tuple>

#include "peer.h"

namespace ringside::tls::test {

struct Connection {
  Connection(Contexts& contexts, Role role, const EngineOptions& options = {.keep_secrets = true},
             SSL_SESSION* resumed = nullptr)
      : side(contexts.of(role), role, options, role == Role::client ? resumed : nullptr),
        peer(contexts.of(other(role)), other(role), role == Role::server ? resumed : nullptr) {}
  void settle() { test::settle(side, peer); }
  Engine& engine() { return side.engine; }

  Side side;
  Peer peer;
};

// Of the engine: version, cipher, role.
using Kind = std::tuple<Version, Aead, Role>;

inline std::string name_of(const testing::TestParamInfo<Kind>& info) {
  const auto [version, aead, role] = info.param;
  std::string name = version == Version::tls12 ? "Tls12" : "Tls13";
  constexpr const char* ciphers[] = {"Aes128", "Aes256", "ChaCha20"};
  name += ciphers[static_cast<std::size_t>(aead)];
  return name + (role == Role::server ? "Server" : "Client");
}

inline auto every_kind() {
  return testing::Combine(
      testing::Values(Version::tls12, Version::tls13),
      testing::Values(Aead::aes128_gcm, Aead::aes256_gcm, Aead::chacha20_poly1305),
      testing::Values(Role::server, Role::client));
}

// A test for every kind of connection.
class EveryKind : public testing::TestWithParam<Kind> {
 protected:
  EveryKind() : contexts({.version = version(), .aead = aead()}) {}
  static Version version() { return std::get<Version>(GetParam()); }
  static Aead aead() { return std::get<Aead>(GetParam()); }
  static Role role() { return std::get<Role>(GetParam()); }

  // A connection that resumes the session of another one.
  Connection& resumed(const EngineOptions& options = {.keep_secrets = true}) {
    first_.emplace(contexts, role());
    first_->settle();
    session_.reset(role() == Role::client ? SSL_get1_session(first_->engine().ssl())
                                          : SSL_get1_session(first_->peer.ssl.get()));
    second_.emplace(contexts, role(), options, session_.get());
    return *second_;
  }

  Contexts contexts;

 private:
  std::optional<Connection> first_;
  SessionPtr session_;
  std::optional<Connection> second_;
};

}  // namespace ringside::tls::test
