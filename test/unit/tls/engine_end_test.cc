// How connections end, and what they survive.
#include <openssl/err.h>

#include <string>

#include "connection.h"

namespace ringside::tls::test {
namespace {

using Status = Engine::Status;
using Cause = Failure::Cause;

class EngineEnd : public EveryKind {};
INSTANTIATE_TEST_SUITE_P(All, EngineEnd, every_kind(), &name_of);

TEST_P(EngineEnd, ClosedByThePeer) {
  Connection c(contexts, role());
  c.settle();
  c.peer.send("last words");
  c.peer.close();
  EXPECT_EQ(c.side.give(c.peer.take()), Status::closed);
  EXPECT_EQ(c.side.received, "last words");
  EXPECT_TRUE(c.engine().close_received());
  EXPECT_EQ(c.engine().end_of_input(), Status::closed);
  EXPECT_FALSE(c.engine().failed());
}

TEST_P(EngineEnd, HalfClosedEitherWay) {
  Connection c(contexts, role());
  c.settle();
  c.peer.close();
  c.side.give(c.peer.take());
  ASSERT_TRUE(c.engine().can_send());
  c.side.send("an answer after their close");
  c.engine().close();
  EXPECT_FALSE(c.engine().can_send());
  c.settle();
  EXPECT_EQ(c.peer.received, "an answer after their close");
  EXPECT_TRUE(c.peer.closed);
}

TEST_P(EngineEnd, ReceivesAfterItsOwnClose) {
  Connection c(contexts, role());
  c.settle();
  c.engine().close();
  c.engine().close();  // once is enough
  c.settle();
  EXPECT_TRUE(c.peer.closed);
  c.peer.send("still here");
  c.settle();
  EXPECT_EQ(c.side.received, "still here");
}

TEST_P(EngineEnd, TruncationIsNoClose) {
  Connection c(contexts, role());
  c.settle();
  c.peer.send("half of it");
  const std::string wire = c.peer.take();
  c.side.give(std::string_view(wire).substr(0, wire.size() - 1));
  EXPECT_EQ(c.engine().end_of_input(), Status::failed);
  EXPECT_EQ(c.engine().failure().cause, Cause::truncated);
  EXPECT_FALSE(c.engine().failure().during_handshake);
  EXPECT_EQ(c.side.received, "");
  EXPECT_FALSE(c.engine().can_send());
}

TEST_P(EngineEnd, EndInTheMiddleOfTheHandshake) {
  Connection c(contexts, role());
  c.side.give(c.peer.take());
  EXPECT_EQ(c.engine().end_of_input(), Status::failed);
  EXPECT_EQ(c.engine().failure().cause, Cause::truncated);
  EXPECT_TRUE(c.engine().failure().during_handshake);
}

TEST_P(EngineEnd, ABrokenRecordFailsWithAnAlert) {
  Connection c(contexts, role());
  c.settle();
  c.peer.send("good");
  c.side.give(c.peer.take());
  c.peer.send("bad");
  std::string wire = c.peer.take();
  wire.back() = static_cast<char>(wire.back() ^ 1);
  EXPECT_EQ(c.side.give(wire), Status::failed);
  EXPECT_EQ(c.side.received, "good");
  const Failure& failure = c.engine().failure();
  EXPECT_EQ(failure.cause, Cause::protocol);
  EXPECT_TRUE(failure.has_alert);
  EXPECT_EQ(failure.alert, SSL_AD_BAD_RECORD_MAC);
  EXPECT_EQ(describe(failure), "decryption failed or bad record mac (alert sent: bad record mac)");
  c.peer.give(c.side.take());
  EXPECT_EQ(ERR_GET_REASON(c.peer.error), SSL_AD_REASON_OFFSET + SSL_AD_BAD_RECORD_MAC);
  EXPECT_EQ(c.side.give("more"), Status::failed) << "it stays failed";
}

TEST_P(EngineEnd, AlertOfThePeer) {
  Connection c(contexts, role());
  c.settle();
  c.side.send("what it does not like");
  std::string wire = c.side.take();
  wire.back() = static_cast<char>(wire.back() ^ 1);
  c.peer.give(wire);
  EXPECT_EQ(c.side.give(c.peer.take()), Status::failed);
  const Failure& failure = c.engine().failure();
  EXPECT_EQ(failure.cause, Cause::peer_alert);
  EXPECT_EQ(failure.alert, SSL_AD_BAD_RECORD_MAC);
  EXPECT_EQ(describe(failure), "the peer gave up (alert received: bad record mac)");
}

TEST_P(EngineEnd, GarbageIsRefused) {
  for (unsigned seed = 1; seed < 40; ++seed) {
    Connection c(contexts, role());
    std::string garbage = pattern(200, seed);
    garbage[0] = static_cast<char>(garbage[0] | 0x80);
    garbage[1] = garbage[2] = 0x7f;
    EXPECT_EQ(c.side.give(garbage), Status::failed) << seed;
    EXPECT_TRUE(c.engine().failure().cause == Cause::protocol) << describe(c.engine().failure());
    EXPECT_TRUE(c.engine().failure().during_handshake);
  }
}

TEST_P(EngineEnd, SessionsSurviveTheirConnection) {
  Connection& c = resumed();
  c.settle();
  EXPECT_TRUE(c.engine().info().resumed);
}

// ---- one kind is enough

TEST(Engine, PlainHttpIsRecognised) {
  Contexts contexts;
  for (const std::string_view request : {"GET / HTTP/1.1\r\n\r\n", "OPTIONS * HTTP/1.1\r\n\r\n",
                                         "VERSION-CONTROL /a HTTP/1.1\r\n"}) {
    Side whole(contexts.of(Role::server), Role::server);
    EXPECT_EQ(whole.give(request), Status::failed);
    EXPECT_EQ(whole.engine.failure().cause, Cause::plain_http);
    EXPECT_EQ(whole.take(), "") << "the caller answers in clear";
    Side split(contexts.of(Role::server), Role::server);
    for (const char c : request)
      split.give({&c, 1});
    EXPECT_EQ(split.engine.failure().cause, Cause::plain_http);
  }
}

TEST(Engine, LettersThatAreNoMethodAreGarbage) {
  Contexts contexts;
  for (const std::string_view bytes : {"GET/", "HELO\r\n", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA "}) {
    Side side(contexts.of(Role::server), Role::server);
    EXPECT_EQ(side.give(bytes), Status::failed);
    EXPECT_EQ(side.engine.failure().cause, Cause::protocol);
    EXPECT_EQ(describe(side.engine.failure()), "handshake: neither TLS nor HTTP");
  }
}

TEST(Engine, NoCommonCipherIsNamed) {
  Contexts server({.version = Version::tls12, .aead = Aead::aes128_gcm});
  Contexts client({.version = Version::tls12, .aead = Aead::chacha20_poly1305});
  Side side(server.of(Role::server), Role::server);
  Peer peer(client.of(Role::client), Role::client);
  settle(side, peer);
  EXPECT_EQ(describe(side.engine.failure()),
            "handshake: no shared cipher (alert sent: handshake failure)");
  EXPECT_EQ(ERR_GET_REASON(peer.error), SSL_AD_REASON_OFFSET + SSL_AD_HANDSHAKE_FAILURE);
}

TEST(Engine, AnUnknownCertificateIsNamed) {
  Contexts server;
  Contexts client;  // trusts another one
  Side side(client.of(Role::client), Role::client);
  Peer peer(server.of(Role::server), Role::server);
  settle(side, peer);
  EXPECT_TRUE(describe(side.engine.failure()).starts_with("handshake: self-signed certificate"))
      << describe(side.engine.failure());
  EXPECT_TRUE(side.engine.failure().has_alert);
}

TEST(Engine, RenegotiationIsRefused) {
  Contexts contexts({.version = Version::tls12});
  for (const Role role : {Role::server, Role::client}) {
    Connection c(contexts, role);
    c.settle();
    c.peer.renegotiate();
    c.side.give(c.peer.take());
    EXPECT_EQ(c.side.handshakes_done, 1U);
    EXPECT_FALSE(c.side.take().empty()) << "no_renegotiation goes out";
  }
}

TEST(Engine, AFloodOfRenegotiationsEndsTheConnection) {
  Contexts contexts({.version = Version::tls12});
  Connection c(contexts, Role::client, {.messages_max = 3});
  c.settle();
  for (int i = 0; i < 8; ++i) {
    c.peer.renegotiate();
  }
  EXPECT_EQ(c.side.give(c.peer.take()), Status::failed);
  EXPECT_EQ(c.engine().failure().cause, Cause::too_many_messages);
}

class KeyUpdates : public testing::TestWithParam<Role> {
 protected:
  Contexts contexts;
};
INSTANTIATE_TEST_SUITE_P(Roles, KeyUpdates, testing::Values(Role::server, Role::client),
                         [](const auto& of) {
                           return of.param == Role::server ? "Server" : "Client";
                         });

TEST_P(KeyUpdates, OfThePeer) {
  for (const bool reply : {false, true}) {
    Connection c(contexts, GetParam());
    c.settle();
    c.peer.send("old key, ");
    c.peer.update_key(reply);
    c.peer.send("new key");
    c.settle();
    EXPECT_EQ(c.side.received, "old key, new key");
    c.side.send("answer");
    c.settle();
    EXPECT_EQ(c.peer.received, "answer");
  }
}

TEST_P(KeyUpdates, AReplyThatWasAskedForLeavesAtOnce) {
  Connection c(contexts, GetParam());
  c.settle();
  c.peer.update_key(true);
  c.side.give(c.peer.take());
  EXPECT_FALSE(c.side.take().empty());
  c.peer.update_key(false);
  c.side.give(c.peer.take());
  EXPECT_TRUE(c.side.take().empty());
}

TEST_P(KeyUpdates, TooManyEndTheConnection) {
  Connection c(contexts, GetParam(), {.messages_max = 10});
  c.settle();
  for (int i = 0; i < 20; ++i)
    c.peer.update_key(true);
  EXPECT_EQ(c.side.give(c.peer.take()), Status::failed);
  EXPECT_EQ(c.engine().failure().cause, Cause::too_many_messages);
}

TEST_P(KeyUpdates, OfOursAfterManyRecords) {
  Connection c(contexts, GetParam(), {.keep_secrets = true, .records_a_key = 5});
  c.settle();
  for (int i = 0; i < 20; ++i) {
    c.side.send("x");
    c.settle();
    ASSERT_LE(c.engine().keys(true)->sequence, 5U);
  }
  EXPECT_EQ(c.peer.received, std::string(20, 'x'));
}

}  // namespace
}  // namespace ringside::tls::test
