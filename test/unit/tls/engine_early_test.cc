// Early data (RFC 8446 §2.3) of a server's engine: what comes and goes before the handshake is
// over, and that none of its keys outlive it.
#include <gtest/gtest.h>
#include <linux/tls.h>
#include <netinet/tcp.h>

#include <string>

#include "ringside/tls/handoff.h"

#include "../net/machine.h"
#include "connection.h"
#include "record_player.h"

namespace ringside::tls::test {
namespace {

constexpr std::uint32_t early_bytes_max = 16'384;

class EarlyData : public testing::TestWithParam<Aead> {
 protected:
  EarlyData() : contexts({.version = Version::tls13, .aead = GetParam(), .tickets = 1}) {
    SSL_CTX* server = contexts.of(Role::server);
    SSL_CTX_set_max_early_data(server, early_bytes_max);
    SSL_CTX_set_recv_max_early_data(server, early_bytes_max);
    SSL_CTX_set_options(server, SSL_OP_NO_ANTI_REPLAY);
    SSL_CTX_set_allow_early_data_cb(
        server, [](SSL*, void* yes) { return *static_cast<bool*>(yes) ? 1 : 0; }, &allowed);
    Connection first(contexts, Role::server, options);
    first.settle();
    EXPECT_TRUE(first.engine().established()) << "nothing came early, which is no obstacle";
    EXPECT_FALSE(first.engine().info().resumed);
    session = first.peer.session();
    EXPECT_EQ(SSL_SESSION_get_max_early_data(session.get()), early_bytes_max);
  }

  // A client that has sent this with its first flight.
  std::unique_ptr<Peer> client(std::string_view early) {
    return std::make_unique<Peer>(contexts.of(Role::client), Role::client, session.get(), early);
  }

  // The handshake, to its end.
  static void finish(Side& side, Peer& peer) {
    settle(side, peer);
    peer.finish();
    settle(side, peer);
  }

  // The kernel gets both directions, and both go on.
  void check_keys(Side& side, Peer& peer) {
    net::test::FakeSys sys;
    const int fd = *sys.open_stream_socket(AF_INET);
    Handoff handoff(side.engine);
    ASSERT_EQ(handoff.refusal(), Refusal::none) << describe(handoff.refusal());
    ASSERT_EQ(handoff.install_tx(sys, fd), 0);
    ASSERT_EQ(handoff.install_rx(sys, fd), 0);
    RecordPlayer tx(sys.option_bytes.at({fd, SOL_TLS, TLS_TX}));
    RecordPlayer rx(sys.option_bytes.at({fd, SOL_TLS, TLS_RX}));
    peer.received.clear();
    for (const char* text : {"one", "two", "three"}) {
      peer.give(tx.seal(SSL3_RT_APPLICATION_DATA, text));
      peer.send(text);
      EXPECT_EQ(rx.open_data(peer.take()), text);
    }
    EXPECT_EQ(peer.received, "onetwothree");
    EXPECT_EQ(peer.error, 0U);
  }

  bool allowed = true;
  const EngineOptions options{.keep_secrets = true, .early_data = true};
  Contexts contexts;
  SessionPtr session;
};
INSTANTIATE_TEST_SUITE_P(All, EarlyData,
                         testing::Values(Aead::aes128_gcm, Aead::aes256_gcm,
                                         Aead::chacha20_poly1305));

TEST_P(EarlyData, ComesAndIsAnsweredBeforeTheHandshakeIsOver) {
  const auto peer = client("a request");
  Side side(contexts.of(Role::server), Role::server, options);
  side.give(peer->take());
  EXPECT_EQ(side.received, "a request");
  EXPECT_TRUE(side.engine.handshaking());
  EXPECT_TRUE(side.engine.info().resumed);
  ASSERT_TRUE(side.engine.can_send());
  side.send("an answer");
  peer->give(side.take());
  EXPECT_EQ(peer->received, "an answer");
  side.send(", in two");
  peer->give(side.take());
  EXPECT_EQ(peer->received, "an answer, in two");
  EXPECT_EQ(side.handshakes_done, 0U);
  EXPECT_EQ(Handoff(side.engine).refusal(), Refusal::handshake);

  peer->finish();
  settle(side, *peer);
  EXPECT_EQ(side.handshakes_done, 1U);
  EXPECT_TRUE(side.engine.established());
  check_keys(side, *peer);
}

TEST_P(EarlyData, InPiecesOfAnySize) {
  const auto peer = client("a request of some bytes");
  Side side(contexts.of(Role::server), Role::server, options);
  const std::string flight = peer->take();
  for (const char byte : flight)
    side.give({&byte, 1}, 3);
  EXPECT_EQ(side.received, "a request of some bytes");
  for (unsigned i = 1; i < 4; ++i)
    side.send(pattern(i * 7000, i), 700);
  Bytewise bytewise;
  settle(side, *peer, bytewise);
  EXPECT_EQ(peer->received, pattern(7000, 1) + pattern(14'000, 2) + pattern(21'000, 3));
  peer->finish();
  settle(side, *peer, bytewise);
  ASSERT_TRUE(side.engine.established());
  peer->send("more");
  settle(side, *peer, bytewise);
  EXPECT_EQ(side.received, "a request of some bytesmore");
  check_keys(side, *peer);
}

// Whoever reads has to know which of it was early, so the end of the handshake stands alone.
TEST_P(EarlyData, IsToldApartFromWhatFollows) {
  const auto peer = client("early");
  Side side(contexts.of(Role::server), Role::server, options);
  std::string wire = peer->take();
  std::string room(1000, '\0');
  Engine::Received got = side.engine.receive(wire, room);
  EXPECT_TRUE(got.early);
  EXPECT_EQ(room.substr(0, got.plaintext), "early");
  EXPECT_FALSE(got.handshake_done);
  peer->give(side.take());
  peer->send("late");
  wire = peer->take();
  std::string rest;
  bool done = false;
  do {
    got = side.engine.receive(wire, room);
    wire.erase(0, got.consumed);
    EXPECT_FALSE(got.early) << "is said once";
    EXPECT_TRUE(done || got.plaintext == 0) << "what was not early comes behind";
    done |= got.handshake_done;
    rest.append(room, 0, got.plaintext);
  } while (got.status == Engine::Status::more);
  EXPECT_TRUE(done);
  EXPECT_EQ(rest, "late");
}

// All that the client has to send in one piece: its flight of before the answer is not known there.
TEST_P(EarlyData, IsNotMixedWithTheEndOfTheHandshake) {
  const auto peer = client("early");
  Side first(contexts.of(Role::server), Role::server, options);
  std::string wire = peer->take();
  std::string room(1000, '\0');
  const std::size_t some = wire.size() - 10;  // in the middle of the early data
  Engine::Received got = first.engine.receive(std::string_view(wire).substr(0, some), room);
  EXPECT_EQ(got.plaintext, 0U);
  EXPECT_FALSE(first.engine.can_send());
  peer->give(first.take());
  peer->finish();
  wire = wire.substr(some) + peer->take();
  got = first.engine.receive(wire, room);
  EXPECT_TRUE(got.early);
  EXPECT_FALSE(got.handshake_done);
  EXPECT_EQ(got.status, Engine::Status::more);
  EXPECT_TRUE(first.engine.handshaking());
  got = first.engine.receive(std::string_view(wire).substr(got.consumed), room);
  EXPECT_TRUE(got.handshake_done);
}

TEST_P(EarlyData, ThatIsNotAllowedIsPassedOver) {
  allowed = false;
  const auto peer = client("a request");
  Side side(contexts.of(Role::server), Role::server, options);
  finish(side, *peer);
  EXPECT_EQ(side.received, "");
  ASSERT_TRUE(side.engine.established());
  EXPECT_EQ(SSL_get_early_data_status(peer->ssl.get()), SSL_EARLY_DATA_REJECTED);
  peer->send("a request");
  settle(side, *peer);
  EXPECT_EQ(side.received, "a request");
  check_keys(side, *peer);
}

// As a server of ours that has it switched off.
TEST_P(EarlyData, ThatNobodyExpectsIsPassedOver) {
  const auto peer = client("a request");
  Side side(contexts.of(Role::server), Role::server);
  finish(side, *peer);
  EXPECT_EQ(side.received, "");
  ASSERT_TRUE(side.engine.established());
  check_keys(side, *peer);
}

TEST_P(EarlyData, OfMoreThanTheLimitIsAFailure) {
  SSL_CTX_set_recv_max_early_data(contexts.of(Role::server), 10);
  const auto peer = client("a request that is too long");
  Side side(contexts.of(Role::server), Role::server, options);
  EXPECT_EQ(side.give(peer->take()), Engine::Status::failed);
  EXPECT_EQ(side.received, "");
  EXPECT_NE(side.engine.output_pending() + side.take().size(), 0U) << "an alert";
}

// close_notify before the handshake is over would be a mistake of ours.
TEST_P(EarlyData, TheEndIsNotSaidBeforeTheHandshakeIsOver) {
  const auto peer = client("a request");
  Side side(contexts.of(Role::server), Role::server, options);
  side.give(peer->take());
  side.engine.close();
  EXPECT_TRUE(side.engine.can_send());
  finish(side, *peer);
  EXPECT_FALSE(peer->closed);
  side.engine.close();
  settle(side, *peer);
  EXPECT_TRUE(peer->closed);
}

TEST_P(EarlyData, AClientThatLeavesBeforeTheEndHasCutItsHandshake) {
  const auto peer = client("a request");
  Side side(contexts.of(Role::server), Role::server, options);
  side.give(peer->take());
  EXPECT_EQ(side.engine.end_of_input(), Engine::Status::failed);
  EXPECT_TRUE(side.engine.failure().during_handshake);
  EXPECT_FALSE(side.engine.can_send());
}

}  // namespace
}  // namespace ringside::tls::test
