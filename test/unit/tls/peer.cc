#include "peer.h"

#include <gtest/gtest.h>
#include <openssl/err.h>

#include <algorithm>
#include <array>

#include "authority.h"
#include "engine_callbacks.h"
#include "policy.h"

namespace ringside::tls::test {

namespace {

void choose(SSL_CTX* context, const Setup& setup) {
  constexpr std::array tls12{"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384",
                             "ECDHE-ECDSA-CHACHA20-POLY1305"};
  constexpr std::array tls13{"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384",
                             "TLS_CHACHA20_POLY1305_SHA256"};
  const auto index = static_cast<std::size_t>(setup.aead);
  const auto version =
      setup.version == Version::tls12 ? config::TlsVersion::tls12 : config::TlsVersion::tls13;
  EXPECT_TRUE(apply_common(context, version, version));
  EngineCallbacks::watch_secrets(context);
  EXPECT_EQ(SSL_CTX_set_cipher_list(context, tls12[index]), 1);
  EXPECT_EQ(SSL_CTX_set_ciphersuites(context, tls13[index]), 1);
}

}  // namespace

Contexts::Contexts(const Setup& setup)
    : server_(SSL_CTX_new(TLS_server_method())), client_(SSL_CTX_new(TLS_client_method())) {
  Issued issued = issue({.common_name = "localhost", .names = {"DNS:localhost"}});
  certificate_ = std::move(issued.certificate);
  choose(server_.get(), setup);
  choose(client_.get(), setup);
  SSL_CTX_set_num_tickets(server_.get(), setup.tickets);
  EXPECT_EQ(SSL_CTX_use_certificate(server_.get(), certificate_.get()), 1);
  EXPECT_EQ(SSL_CTX_use_PrivateKey(server_.get(), issued.key.get()), 1);
  X509_STORE_add_cert(SSL_CTX_get_cert_store(client_.get()), certificate_.get());
  SSL_CTX_set_verify(client_.get(), SSL_VERIFY_PEER, nullptr);
}

SslPtr new_session(SSL_CTX* context, Role role, SSL_SESSION* resumed) {
  SslPtr ssl(SSL_new(context));
  if (role == Role::server)
    SSL_set_accept_state(ssl.get());
  else
    SSL_set_connect_state(ssl.get());
  if (resumed != nullptr) SSL_set_session(ssl.get(), resumed);
  return ssl;
}

// ---- the peer

Peer::Peer(SSL_CTX* context, Role role, SSL_SESSION* session, std::string_view early)
    : ssl(new_session(context, role, session)) {
  SSL_set_bio(ssl.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  BIO_set_mem_eof_return(SSL_get_rbio(ssl.get()), -1);
  if (!early.empty()) {
    std::size_t written = 0;
    EXPECT_EQ(SSL_write_early_data(ssl.get(), early.data(), early.size(), &written), 1);
    EXPECT_EQ(written, early.size());
  }
  if (role == Role::client) advance();
}

void Peer::give(std::string_view bytes) {
  BIO_write(SSL_get_rbio(ssl.get()), bytes.data(), static_cast<int>(bytes.size()));
  advance();
}

void Peer::advance() {
  ERR_clear_error();
  std::array<char, 16384> buffer;
  int got = 0;
  while ((got = SSL_read(ssl.get(), buffer.data(), buffer.size())) > 0)
    received.append(buffer.data(), static_cast<std::size_t>(got));
  const int why = SSL_get_error(ssl.get(), got);
  if (why == SSL_ERROR_ZERO_RETURN) closed = true;
  if (why == SSL_ERROR_SSL && error == 0) error = ERR_peek_error();
}

std::string Peer::take() {
  BIO* bio = SSL_get_wbio(ssl.get());
  std::string bytes(BIO_ctrl_pending(bio), '\0');
  if (!bytes.empty()) BIO_read(bio, bytes.data(), static_cast<int>(bytes.size()));
  return bytes;
}

void Peer::send(std::string_view plaintext) {
  ERR_clear_error();
  EXPECT_EQ(SSL_write(ssl.get(), plaintext.data(), static_cast<int>(plaintext.size())),
            static_cast<int>(plaintext.size()));
}

void Peer::update_key(bool reply_requested) {
  EXPECT_EQ(SSL_key_update(ssl.get(), reply_requested ? SSL_KEY_UPDATE_REQUESTED
                                                      : SSL_KEY_UPDATE_NOT_REQUESTED),
            1);
  EXPECT_EQ(SSL_do_handshake(ssl.get()), 1);
}

void Peer::renegotiate() {
  SSL_clear_options(ssl.get(), SSL_OP_NO_RENEGOTIATION);
  EXPECT_EQ(SSL_renegotiate(ssl.get()), 1);
  SSL_do_handshake(ssl.get());
}

void Peer::close() {
  EXPECT_GE(SSL_shutdown(ssl.get()), 0);
}

// ---- the engine

Side::Side(SslPtr ssl, const EngineOptions& options) {
  EXPECT_TRUE(engine.start(std::move(ssl), scratch, options).has_value());
}

Engine::Status Side::give(std::string_view bytes, std::size_t space) {
  std::string out(space, '\0');
  while (true) {
    // A copy of exactly their size, which is gone after the call: a read past it, or later, is
    // seen.
    const std::unique_ptr<char[]> exact(new char[bytes.size()]);
    std::copy(bytes.begin(), bytes.end(), exact.get());
    const Engine::Received got = engine.receive({exact.get(), bytes.size()}, {out.data(), space});
    EXPECT_LE(got.plaintext, space);
    received.append(out, 0, got.plaintext);
    bytes.remove_prefix(got.consumed);
    if (got.handshake_done) ++handshakes_done;
    status = got.status;
    wire_ += take(space);
    if (got.status != Engine::Status::more) return got.status;
  }
}

void Side::send(std::string_view plaintext, std::size_t space) {
  std::string out(space, '\0');
  while (!plaintext.empty() || engine.output_pending() != 0) {
    const std::string_view piece = plaintext;
    const Engine::Sent sent = engine.send({&piece, 1}, {out.data(), out.size()});
    ASSERT_LE(sent.produced, space);
    ASSERT_TRUE(sent.taken != 0 || sent.produced != 0) << "no progress";
    wire_.append(out, 0, sent.produced);
    plaintext.remove_prefix(sent.taken);
  }
}

std::string Side::take(std::size_t space) {
  std::string all = std::exchange(wire_, {});
  std::string out(space, '\0');
  while (const std::size_t bytes = engine.take_output({out.data(), out.size()}))
    all.append(out, 0, bytes);
  return all;
}

// ---- the wire

std::size_t AtRandom::next(std::size_t) {
  state_ = state_ * 6364136223846793005U + 1442695040888963407U;
  return 1 + (state_ >> 33) % most_;
}

void settle(Side& side, Peer& peer, Splitter& splitter) {
  std::string to_side = peer.take();
  std::string to_peer = side.take();
  while (!to_side.empty() || !to_peer.empty()) {
    std::size_t bytes = std::min(to_side.size(), splitter.next(to_side.size()));
    if (bytes != 0) side.give(std::string_view(to_side).substr(0, bytes));
    to_side.erase(0, bytes);
    bytes = std::min(to_peer.size(), splitter.next(to_peer.size()));
    if (bytes != 0) peer.give(std::string_view(to_peer).substr(0, bytes));
    to_peer.erase(0, bytes);
    to_side += peer.take();
    to_peer += side.take();
  }
}

void settle(Side& side, Peer& peer) {
  Whole whole;
  settle(side, peer, whole);
}

std::string pattern(std::size_t bytes, unsigned seed) {
  std::string out(bytes, '\0');
  std::uint32_t state = seed * 2654435761U + 1;
  for (char& c : out) {
    state = state * 1664525U + 1013904223U;
    c = static_cast<char>(state >> 24);
  }
  return out;
}

}  // namespace ringside::tls::test
