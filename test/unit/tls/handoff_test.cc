// The keys that the kernel would get, checked by sealing and opening the next records with them.
#include "ringside/tls/handoff.h"

#include <linux/tls.h>
#include <netinet/tcp.h>

#include <string>

#include "ringside/tls/control_record.h"

#include "../net/machine.h"
#include "connection.h"
#include "record_player.h"

namespace ringside::tls::test {
namespace {

class HandoffKeys : public EveryKind {
 protected:
  HandoffKeys() : fd(*sys.open_stream_socket(AF_INET)) {}

  // Hands over both directions, as the owner of a stream does.
  void hand_over(Connection& c) {
    Handoff handoff(c.engine());
    hand_over(c, handoff);
  }
  void hand_over(Connection& c, Handoff& handoff) {
    ASSERT_EQ(handoff.refusal(), Refusal::none) << describe(handoff.refusal());
    ASSERT_TRUE(handoff.ready_to_install_tx());
    ASSERT_EQ(handoff.install_tx(sys, fd), 0);
    EXPECT_FALSE(c.engine().can_send());
    if (!handoff.wants_rx()) {
      ASSERT_EQ(role(), Role::client);
      ASSERT_EQ(version(), Version::tls13);
      c.peer.send("first");
      c.side.give(c.peer.take());
      ASSERT_TRUE(handoff.wants_rx());
    }
    ASSERT_TRUE(handoff.ready_to_install_rx());
    ASSERT_EQ(handoff.install_rx(sys, fd), 0);
    EXPECT_TRUE(handoff.complete());
    EXPECT_FALSE(c.engine().has_ssl());
    c.side.received.clear();
  }

  std::string installed(int direction) { return sys.option_bytes.at({fd, SOL_TLS, direction}); }

  // Both directions go on under the keys that were installed.
  void check_keys(Connection& c) {
    RecordPlayer tx(sys.option_bytes.at({fd, SOL_TLS, TLS_TX}));
    RecordPlayer rx(sys.option_bytes.at({fd, SOL_TLS, TLS_RX}));
    c.peer.received.clear();
    for (const char* text : {"one", "two", "three"}) {
      c.peer.give(tx.seal(SSL3_RT_APPLICATION_DATA, text));
      c.peer.send(text);
      EXPECT_EQ(rx.open_data(c.peer.take()), text);
    }
    EXPECT_EQ(c.peer.received, "onetwothree");
    EXPECT_EQ(c.peer.error, 0U);
    c.peer.give(tx.seal(SSL3_RT_ALERT, std::string_view("\x01\x00", 2)));
    EXPECT_TRUE(c.peer.closed);
  }

  net::test::FakeSys sys;
  int fd;
};
INSTANTIATE_TEST_SUITE_P(All, HandoffKeys, every_kind(), &name_of);

TEST_P(HandoffKeys, RightAfterTheHandshake) {
  Connection c(contexts, role());
  c.settle();
  hand_over(c);
  check_keys(c);
}

TEST_P(HandoffKeys, AfterAResumedHandshake) {
  Connection& c = resumed();
  c.settle();
  hand_over(c);
  check_keys(c);
}

TEST_P(HandoffKeys, AfterDataInUserSpace) {
  Connection c(contexts, role());
  c.settle();
  for (unsigned i = 1; i < 5; ++i) {
    c.side.send(pattern(i * 9000, i));
    c.peer.send(pattern(i * 7000, i));
    c.settle();
  }
  hand_over(c);
  check_keys(c);
}

TEST_P(HandoffKeys, OutputInSmallPieces) {
  Connection c(contexts, role());
  Bytewise bytewise;
  settle(c.side, c.peer, bytewise);
  c.side.send("to a small buffer", 1);
  settle(c.side, c.peer, bytewise);
  hand_over(c);
  check_keys(c);
}

TEST_P(HandoffKeys, AfterKeyUpdatesInUserSpace) {
  if (version() == Version::tls12) return;  // has none
  Connection c(contexts, role());
  c.settle();
  for (const bool reply : {true, false, true, true}) {
    c.peer.update_key(reply);
    c.settle();
    c.side.send("x");
    c.peer.send("y");
    c.settle();
  }
  hand_over(c);
  check_keys(c);
}

// Whatever number of tickets a server writes: they are counted.
TEST_P(HandoffKeys, AnyNumberOfTickets) {
  for (const std::size_t tickets : {0U, 1U, 3U}) {
    Contexts mine({.version = version(), .aead = aead(), .tickets = tickets});
    Connection c(mine, role());
    c.settle();
    hand_over(c);
    check_keys(c);
  }
}

TEST_P(HandoffKeys, APartialRecordIsReadToItsEndExactly) {
  for (const std::size_t have : {1U, 4U, 5U, 6U, 30U}) {
    Connection c(contexts, role());
    c.settle();
    Handoff handoff(c.engine());
    ASSERT_EQ(handoff.install_tx(sys, fd), 0);
    c.peer.send("whole");
    c.side.give(c.peer.take());
    c.peer.send(pattern(100));
    c.peer.send("for the kernel");
    std::string wire = c.peer.take();
    c.side.give(wire.substr(0, have));
    wire.erase(0, have);
    ASSERT_TRUE(handoff.wants_rx());
    while (handoff.receive_exactly() != 0) {
      EXPECT_FALSE(handoff.ready_to_install_rx());
      const std::size_t bytes = handoff.receive_exactly();
      c.side.give(wire.substr(0, bytes));
      wire.erase(0, bytes);
    }
    EXPECT_EQ(c.side.received, "whole" + pattern(100));
    ASSERT_TRUE(handoff.ready_to_install_rx());
    ASSERT_EQ(handoff.install_rx(sys, fd), 0);
    RecordPlayer rx(sys.option_bytes.at({fd, SOL_TLS, TLS_RX}));
    EXPECT_EQ(rx.open_data(wire), "for the kernel");
  }
}

TEST_P(HandoffKeys, PlaintextInsideHoldsItUp) {
  Connection c(contexts, role());
  c.settle();
  Handoff handoff(c.engine());
  ASSERT_EQ(handoff.install_tx(sys, fd), 0);
  c.peer.send("more than fits");
  const std::string wire = c.peer.take();
  char out[4];
  EXPECT_EQ(c.engine().receive(wire, out).status, Engine::Status::more);
  EXPECT_EQ(handoff.receive_exactly(), 0U);
  EXPECT_FALSE(handoff.ready_to_install_rx());
  c.side.give("");
  EXPECT_TRUE(handoff.ready_to_install_rx());
}

// What the caller still has of a stream the kernel would never see.
TEST_P(HandoffKeys, InputThatIsLeftHoldsItUp) {
  Connection c(contexts, role());
  c.settle();
  Handoff handoff(c.engine());
  ASSERT_EQ(handoff.install_tx(sys, fd), 0);
  c.peer.send("one");
  c.peer.send("two");
  const std::string wire = c.peer.take();
  char out[3];
  const Engine::Received got = c.engine().receive(wire, out);
  EXPECT_EQ(got.status, Engine::Status::more);
  ASSERT_LT(got.consumed, wire.size());
  ASSERT_FALSE(c.engine().plaintext_pending());
  EXPECT_FALSE(handoff.ready_to_install_rx());
  EXPECT_EQ(handoff.install_rx(sys, fd), -EAGAIN);
  EXPECT_EQ(handoff.refusal(), Refusal::none);
  ASSERT_TRUE(c.engine().has_ssl());
  c.side.give(std::string_view(wire).substr(got.consumed));
  EXPECT_EQ(c.side.received, "two");
  EXPECT_EQ(handoff.install_rx(sys, fd), 0);
}

TEST_P(HandoffKeys, NothingHappensBeforeItIsReady) {
  Connection c(contexts, role());
  Handoff handoff(c.engine());
  EXPECT_EQ(handoff.install_tx(sys, fd), -EAGAIN);
  EXPECT_EQ(handoff.install_rx(sys, fd), -EAGAIN);
  EXPECT_TRUE(sys.option_bytes.empty());
  c.settle();
  EXPECT_EQ(handoff.install_rx(sys, fd), -EAGAIN) << "TX comes first";
  EXPECT_TRUE(sys.option_bytes.empty());
  hand_over(c);
  check_keys(c);
}

// The kernel's half of what was refused: the alert is named, since only the kernel can send it.
TEST_P(HandoffKeys, ABrokenRecordBetweenTxAndRx) {
  Connection c(contexts, role());
  c.settle();
  Handoff handoff(c.engine());
  ASSERT_EQ(handoff.install_tx(sys, fd), 0);
  c.peer.send("bad");
  std::string wire = c.peer.take();
  wire.back() = static_cast<char>(wire.back() ^ 1);
  EXPECT_EQ(c.side.give(wire), Engine::Status::failed);
  EXPECT_EQ(c.side.take(), "");
  const Failure& failure = c.engine().failure();
  EXPECT_EQ(failure.cause, Failure::Cause::protocol);
  EXPECT_FALSE(failure.has_alert);
  EXPECT_TRUE(failure.alert_to_send);
  EXPECT_EQ(failure.alert, SSL_AD_BAD_RECORD_MAC);
  EXPECT_EQ(describe(failure),
            "decryption failed or bad record mac (alert to be sent: bad record mac)");
}

TEST_P(HandoffKeys, OutputInsideHoldsItUp) {
  Connection c(contexts, role());
  c.settle();
  Handoff handoff(c.engine());
  const std::string_view piece = "text";
  char out[1];
  c.engine().send({&piece, 1}, out);
  ASSERT_NE(c.engine().output_pending(), 0U);
  EXPECT_FALSE(handoff.ready_to_install_tx());
  c.side.take();
  EXPECT_TRUE(handoff.ready_to_install_tx());
}

TEST_P(HandoffKeys, ARefusingKernelChangesNothing) {
  sys.option_errno[{SOL_TLS, TLS_TX}] = EINVAL;
  Connection c(contexts, role());
  c.settle();
  Handoff handoff(c.engine());
  EXPECT_EQ(handoff.install_tx(sys, fd), -EINVAL);
  EXPECT_EQ(handoff.refusal(), Refusal::kernel);
  EXPECT_EQ(handoff.kernel_errno(), EINVAL);
  EXPECT_FALSE(handoff.wants_rx());
  c.side.send("in user space");
  c.peer.send("as before");
  c.settle();
  EXPECT_EQ(c.peer.received, "in user space");
  EXPECT_EQ(c.side.received, "as before");
}

TEST_P(HandoffKeys, AKernelThatOnlySends) {
  sys.option_errno[{SOL_TLS, TLS_RX}] = ENOMEM;
  Connection c(contexts, role());
  c.settle();
  Handoff handoff(c.engine());
  ASSERT_EQ(handoff.install_tx(sys, fd), 0);
  c.peer.send("first");
  c.side.give(c.peer.take());
  EXPECT_EQ(handoff.install_rx(sys, fd), -ENOMEM);
  EXPECT_FALSE(handoff.wants_rx());
  c.peer.send(", second");
  c.side.give(c.peer.take());
  EXPECT_EQ(c.side.received, "first, second");
  RecordPlayer tx(sys.option_bytes.at({fd, SOL_TLS, TLS_TX}));
  c.peer.give(tx.seal(SSL3_RT_APPLICATION_DATA, "from the kernel"));
  EXPECT_EQ(c.peer.received, "from the kernel");
}

TEST_P(HandoffKeys, NotBeforeTheHandshakeAndNotAfterAClose) {
  Connection c(contexts, role());
  Handoff handoff(c.engine());
  EXPECT_EQ(handoff.refusal(), Refusal::handshake);
  EXPECT_FALSE(handoff.ready_to_install_tx());
  c.settle();
  EXPECT_TRUE(handoff.ready_to_install_tx());
  c.peer.close();
  c.settle();
  EXPECT_EQ(handoff.refusal(), Refusal::closing);
  EXPECT_FALSE(handoff.ready_to_install_tx());
}

TEST_P(HandoffKeys, NotWithoutSecrets) {
  Connection c(contexts, role(), {.keep_secrets = false});
  c.settle();
  Handoff handoff(c.engine());
  EXPECT_EQ(handoff.install_tx(sys, fd), -ENOKEY);
  EXPECT_EQ(handoff.refusal(), Refusal::no_keys);
  EXPECT_TRUE(c.engine().can_send());
}

TEST(Handoff, NotWithLimitedFragments) {
  Contexts contexts;
  SSL_CTX_set_tlsext_max_fragment_length(contexts.of(Role::client), TLSEXT_max_fragment_length_512);
  Connection c(contexts, Role::server);
  c.settle();
  EXPECT_EQ(Handoff(c.engine()).refusal(), Refusal::fragments);
}

TEST(Handoff, NotWithAnotherCipher) {
  Contexts contexts({.version = Version::tls12});
  for (const Role role : {Role::server, Role::client})
    SSL_CTX_set_cipher_list(contexts.of(role), "ECDHE-ECDSA-AES128-SHA256");
  Connection c(contexts, Role::server);
  c.settle();
  ASSERT_TRUE(c.engine().established());
  EXPECT_EQ(Handoff(c.engine()).refusal(), Refusal::cipher);
}

// OpenSSL would answer under a key that the kernel has moved on from.
TEST(Handoff, AnAnswerOfOpenSslIsNeverSentBesideTheKernel) {
  net::test::FakeSys sys;
  const int fd = *sys.open_stream_socket(AF_INET);
  Contexts contexts;
  Connection c(contexts, Role::client);
  c.settle();
  Handoff handoff(c.engine());
  ASSERT_EQ(handoff.install_tx(sys, fd), 0);
  c.peer.update_key(true);
  EXPECT_EQ(c.side.give(c.peer.take()), Engine::Status::failed);
  EXPECT_EQ(c.engine().failure().cause, Failure::Cause::write_after_handoff);
  EXPECT_EQ(c.side.take(), "");
}

// One without a reply changes the key that RX will get.
TEST(Handoff, AKeyUpdateBetweenTxAndRx) {
  net::test::FakeSys sys;
  const int fd = *sys.open_stream_socket(AF_INET);
  Contexts contexts;
  Connection c(contexts, Role::client);
  c.settle();
  Handoff handoff(c.engine());
  ASSERT_EQ(handoff.install_tx(sys, fd), 0);
  c.peer.update_key(false);
  c.peer.send("data");
  c.side.give(c.peer.take());
  ASSERT_EQ(handoff.install_rx(sys, fd), 0);
  RecordPlayer rx(sys.option_bytes.at({fd, SOL_TLS, TLS_RX}));
  c.peer.send("next");
  EXPECT_EQ(rx.open_data(c.peer.take()), "next");
}

// A message may go on in the next record, whose first part would be lost: with a ticket that is
// only known when data comes, or OpenSSL is inside of the message.
TEST(Handoff, AMessageInPartsHoldsItUp) {
  for (const std::size_t first : {1U, 3U, 4U, 50U, 104U}) {
    net::test::FakeSys sys;
    const int fd = *sys.open_stream_socket(AF_INET);
    Contexts contexts({.tickets = 0});
    Side client(contexts.of(Role::client), Role::client);
    Side server(contexts.of(Role::server), Role::server);
    for (int i = 0; i < 4; ++i) {
      server.give(client.take());
      client.give(server.take());
    }
    ASSERT_EQ(Handoff(server.engine).install_tx(sys, fd), 0);
    RecordPlayer player(sys.option_bytes.at({fd, SOL_TLS, TLS_TX}));
    Handoff handoff(client.engine);
    ASSERT_EQ(handoff.install_tx(sys, fd), 0);
    client.give(player.seal(SSL3_RT_APPLICATION_DATA, "data"));
    ASSERT_TRUE(handoff.ready_to_install_rx());
    // struct NewSessionTicket of 100 bytes: lifetime, age_add, nonce, ticket, extensions.
    const std::string ticket = std::string("\x04\0\0\x64\0\0\x0e\x10\1\2\3\4\1n\0\x56", 16) +
                               std::string(86, 't') + std::string(2, '\0');
    client.give(player.seal(SSL3_RT_HANDSHAKE, ticket.substr(0, first)));
    ASSERT_FALSE(client.engine.failed()) << describe(client.engine.failure());
    EXPECT_FALSE(handoff.ready_to_install_rx()) << first;
    EXPECT_EQ(handoff.receive_exactly(), record_header_bytes);
    if (first < ticket.size()) client.give(player.seal(SSL3_RT_HANDSHAKE, ticket.substr(first)));
    client.give(player.seal(SSL3_RT_APPLICATION_DATA, ", more"));
    EXPECT_EQ(client.received, "data, more") << describe(client.engine.failure());
    ASSERT_TRUE(handoff.ready_to_install_rx());
    ASSERT_EQ(handoff.install_rx(sys, fd), 0);
    RecordPlayer rx(sys.option_bytes.at({fd, SOL_TLS, TLS_RX}));
    EXPECT_EQ(rx.open_data(player.seal(SSL3_RT_APPLICATION_DATA, "next")), "next");
  }
}

// A KeyUpdate ends its record, so no data has to come behind it.
// The peer's KeyUpdate, then ours, as the kernel passes them on.
TEST_P(HandoffKeys, RenewedKeysAreThoseOfThePeer) {
  if (version() == Version::tls12) return;  // has none
  Connection c(contexts, role());
  c.settle();
  Handoff handoff(c.engine());
  handoff.expect_renewal();
  hand_over(c, handoff);
  RecordPlayer tx(installed(TLS_TX));
  RecordPlayer rx(installed(TLS_RX));
  for (int round = 0; round < 3; ++round) {
    c.peer.update_key(true);
    c.peer.send("under the next key");
    std::string wire = c.peer.take();
    std::uint8_t type = 0;
    std::string plaintext;
    ASSERT_TRUE(rx.open(wire, type, plaintext));
    EXPECT_EQ(type, SSL3_RT_HANDSHAKE);
    EXPECT_EQ(plaintext, std::string_view("\x18\0\0\x01\x01", 5));
    ASSERT_EQ(handoff.renew_rx(sys, fd), 0);
    rx = RecordPlayer(installed(TLS_RX));
    EXPECT_EQ(rx.open_data(wire), "under the next key");
    KeyUpdateMessage answer;
    const iovec& bytes = answer.message()->msg_iov[0];
    c.peer.give(tx.seal(SSL3_RT_HANDSHAKE, {static_cast<char*>(bytes.iov_base), bytes.iov_len}));
    ASSERT_EQ(handoff.renew_tx(sys, fd), 0);
    tx = RecordPlayer(installed(TLS_TX));
    c.peer.received.clear();
    c.peer.give(tx.seal(SSL3_RT_APPLICATION_DATA, "answer"));
    EXPECT_EQ(c.peer.received, "answer");
    EXPECT_EQ(c.peer.error, 0U);
  }
}

TEST_P(HandoffKeys, WithoutPermissionNothingIsKeptForRenewal) {
  Connection c(contexts, role());
  c.settle();
  Handoff handoff(c.engine());
  hand_over(c, handoff);
  EXPECT_FALSE(handoff.can_renew_tx());
  EXPECT_EQ(handoff.renew_rx(sys, fd), -ENOKEY);
  EXPECT_EQ(handoff.renew_tx(sys, fd), -ENOKEY);
}

TEST_P(HandoffKeys, ARefusedRenewalIsNotTriedAgain) {
  Connection c(contexts, role());
  c.settle();
  Handoff handoff(c.engine());
  handoff.expect_renewal();
  hand_over(c, handoff);
  if (version() == Version::tls12) {
    EXPECT_FALSE(handoff.can_renew_tx()) << "there are no KeyUpdates";
    return;
  }
  sys.option_errno[{SOL_TLS, TLS_TX}] = EBUSY;
  EXPECT_TRUE(handoff.can_renew_tx());
  EXPECT_EQ(handoff.renew_tx(sys, fd), -EBUSY);
  EXPECT_FALSE(handoff.can_renew_tx());
  EXPECT_EQ(handoff.renew_tx(sys, fd), -ENOKEY);
  EXPECT_EQ(handoff.renew_rx(sys, fd), 0) << "the other direction goes on";
}

TEST(Handoff, AKeyUpdateIsWhole) {
  net::test::FakeSys sys;
  const int fd = *sys.open_stream_socket(AF_INET);
  Contexts contexts;
  Connection c(contexts, Role::server);
  c.settle();
  Handoff handoff(c.engine());
  ASSERT_EQ(handoff.install_tx(sys, fd), 0);
  c.peer.update_key(false);
  c.side.give(c.peer.take());
  ASSERT_EQ(handoff.install_rx(sys, fd), 0);
  RecordPlayer rx(sys.option_bytes.at({fd, SOL_TLS, TLS_RX}));
  c.peer.send("under the next key");
  EXPECT_EQ(rx.open_data(c.peer.take()), "under the next key");
}

// What OpenSSL would answer with no_renegotiation in user space.
TEST(Handoff, ARenegotiationBetweenTxAndRxIsTheEnd) {
  net::test::FakeSys sys;
  const int fd = *sys.open_stream_socket(AF_INET);
  Contexts contexts({.version = Version::tls12});
  Connection c(contexts, Role::server);
  c.settle();
  Handoff handoff(c.engine());
  ASSERT_EQ(handoff.install_tx(sys, fd), 0);
  c.peer.renegotiate();
  EXPECT_EQ(c.side.give(c.peer.take()), Engine::Status::failed);
  EXPECT_EQ(c.engine().failure().cause, Failure::Cause::write_after_handoff);
  EXPECT_EQ(c.side.take(), "");
}

TEST(Handoff, TheProtocolIsAttachedByItsName) {
  net::test::FakeSys sys;
  const int fd = *sys.open_stream_socket(AF_INET);
  EXPECT_EQ(attach_kernel_tls(sys, fd), 0);
  EXPECT_EQ((sys.option_bytes.at({fd, SOL_TCP, TCP_ULP})), std::string("tls\0", 4));
}

}  // namespace
}  // namespace ringside::tls::test
