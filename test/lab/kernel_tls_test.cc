// Real sockets, real kernel TLS. Needs the kernel's module `tls`, which scripts/lab has.
// RINGSIDE_LAB_TLS_BYTES: the largest transfer (default 1 MB).
#include <gtest/gtest.h>
#include <linux/tls.h>
#include <openssl/evp.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "ringside/tls/kernel_support.h"

#include "../unit/net/machine.h"
#include "../unit/tls/connection.h"
#include "../unit/tls/record_player.h"
#include "kernel_end.h"

namespace ringside::tls::test {
namespace {

using End = KernelEnd::End;

std::vector<std::size_t> sizes() {
  const char* text = std::getenv("RINGSIDE_LAB_TLS_BYTES");
  const std::size_t largest = text != nullptr ? std::strtoull(text, nullptr, 10) : 1'000'000;
  return {1, 16384, 16385, largest};
}

std::string hash(std::string_view bytes) {
  std::string out(EVP_MAX_MD_SIZE, '\0');
  unsigned size = 0;
  EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(out.data()), &size,
             EVP_sha256(), nullptr);
  out.resize(size);
  return out;
}

// The counters of the kernel over the life of a connection.
class Counters {
 public:
  // Both directions were begun by the kernel, and no record of them was refused.
  void expect_both() const {
    EXPECT_EQ(tls_stat("TlsTxSw") - tx_, 1);
    EXPECT_EQ(tls_stat("TlsRxSw") - rx_, 1);
    EXPECT_EQ(tls_stat("TlsDecryptError") - refused_, 0);
    EXPECT_GE(tls_stat("TlsCurrTxSw"), 1);
    EXPECT_GE(tls_stat("TlsCurrRxSw"), 1);
  }

 private:
  long tx_ = tls_stat("TlsTxSw");
  long rx_ = tls_stat("TlsRxSw");
  long refused_ = tls_stat("TlsDecryptError");
};

class KernelTls : public EveryKind {
 protected:
  // Both ends of one connection; `talk` is the peer's part.
  struct Pair {
    Pair(KernelTls& test, std::function<void(SSL*)> talk, SSL_SESSION* session = nullptr)
        : peer(sockets.peers, test.contexts.of(other(role())), other(role()),
               role() == Role::server ? session : nullptr, std::move(talk)),
          end(sockets.ours, test.contexts.of(role()), role(),
              role() == Role::client ? session : nullptr) {
      end.handshake();
    }
    SocketPair sockets;
    PeerThread peer;
    KernelEnd end;
  };

  // Up and down again, compared by hash.
  void transfer(std::size_t bytes, SSL_SESSION* session) {
    const std::string up = pattern(bytes, 1);
    const std::string down = pattern(bytes, 2);
    const Counters counters;
    Pair pair(
        *this,
        [&](SSL* ssl) {
          write_to(ssl, up);
          EXPECT_EQ(hash(read_from(ssl, down.size())), hash(down));
          EXPECT_TRUE(ends_cleanly(ssl));
          EXPECT_GE(SSL_shutdown(ssl), 0);
        },
        session);
    EXPECT_EQ(pair.end.engine.info().resumed, session != nullptr);
    pair.end.hand_over();
    pair.end.receive(up.size());
    EXPECT_EQ(hash(pair.end.received), hash(up));
    EXPECT_TRUE(pair.end.complete());
    EXPECT_FALSE(pair.end.engine.has_ssl());
    pair.end.send(down);
    pair.end.send_close();
    pair.end.shut_down();
    EXPECT_EQ(pair.end.receive_all(), End::closed);
    EXPECT_EQ(pair.end.received.size(), up.size());
    counters.expect_both();
  }

  // The peer waits for a word between its own ones, so that the kernel has both directions before
  // the second one leaves.
  void hand_over_and_receive(Pair& pair, std::string_view first) {
    pair.end.hand_over();
    pair.end.send("1");
    pair.end.receive(first.size());
    EXPECT_EQ(pair.end.received, first);
    ASSERT_TRUE(pair.end.complete());
    pair.end.send("2");
  }
  static void answer_first(SSL* ssl, std::string_view first) {
    EXPECT_EQ(read_from(ssl, 1), "1");
    write_to(ssl, first);
    EXPECT_EQ(read_from(ssl, 1), "2");
  }

  SessionPtr make_session() {
    Pair pair(*this, [](SSL* ssl) {
      write_to(ssl, "for the tickets");
      EXPECT_TRUE(ends_cleanly(ssl));
      EXPECT_EQ(SSL_shutdown(ssl), 1);  // otherwise the session counts as broken
    });
    SessionPtr session;
    pair.end.receive(15);
    if (role() == Role::client) session.reset(SSL_get1_session(pair.end.engine.ssl()));
    pair.end.hand_over();
    pair.end.send_close();
    pair.peer.join();
    return role() == Role::client ? std::move(session) : pair.peer.session();
  }
};
INSTANTIATE_TEST_SUITE_P(All, KernelTls, every_kind(), &name_of);

TEST(KernelTlsProbe, FindsAllCiphers) {
  const KernelSupport support = probe_kernel_tls(net::real_sys());
  EXPECT_TRUE(support.aes128_gcm && support.aes256_gcm && support.chacha20_poly1305)
      << support.reason;
}

TEST_P(KernelTls, TransfersOfAFullHandshake) {
  for (const std::size_t bytes : sizes())
    transfer(bytes, nullptr);
}

TEST_P(KernelTls, TransfersOfAResumedHandshake) {
  for (const std::size_t bytes : sizes()) {
    const SessionPtr session = make_session();
    transfer(bytes, session.get());
  }
}

// We speak first, so the kernel sends before it receives.
TEST_P(KernelTls, FirstWordIsOurs) {
  Pair pair(*this, [](SSL* ssl) {
    EXPECT_EQ(read_from(ssl, 5), "hello");
    write_to(ssl, "and hello to you");
    EXPECT_TRUE(ends_cleanly(ssl));
  });
  pair.end.hand_over();
  pair.end.send("hello");
  pair.end.receive(16);
  EXPECT_EQ(pair.end.received, "and hello to you");
  EXPECT_TRUE(pair.end.complete());
  pair.end.send_close();
}

TEST_P(KernelTls, AfterDataInUserSpace) {
  const std::string text = pattern(100'000);
  Pair pair(*this, [&text](SSL* ssl) {
    write_to(ssl, text);
    EXPECT_EQ(read_from(ssl, 14), "in user space,");
    EXPECT_EQ(read_from(ssl, 14), " in the kernel");
    write_to(ssl, text);
    EXPECT_TRUE(ends_cleanly(ssl));
  });
  pair.end.receive(text.size());
  const std::string_view piece = "in user space,";
  std::array<char, record_bytes_max> out;
  const Engine::Sent sent = pair.end.engine.send({&piece, 1}, out);
  send_all(pair.sockets.ours, {out.data(), sent.produced});
  pair.end.hand_over();
  pair.end.send(" in the kernel");
  pair.end.receive(2 * text.size());
  EXPECT_TRUE(pair.end.received == text + text);
  EXPECT_TRUE(pair.end.complete());
  pair.end.send_close();
}

TEST_P(KernelTls, HalfCloseOfThePeer) {
  const std::string answer = pattern(200'000);
  Pair pair(*this, [&answer](SSL* ssl) {
    answer_first(ssl, "a request");
    EXPECT_GE(SSL_shutdown(ssl), 0);
    EXPECT_TRUE(read_from(ssl, answer.size()) == answer);
    EXPECT_TRUE(ends_cleanly(ssl));
  });
  hand_over_and_receive(pair, "a request");
  EXPECT_EQ(pair.end.receive_all(), End::closed);
  pair.end.send(answer);
  pair.end.send_close();
}

TEST_P(KernelTls, TruncationIsNoClose) {
  SocketPair sockets;
  PeerThread peer(sockets.peers, contexts.of(other(role())), other(role()), nullptr,
                  [&sockets](SSL* ssl) {
                    write_to(ssl, "half of it");
                    EXPECT_EQ(::shutdown(sockets.peers, SHUT_WR), 0);
                  });
  KernelEnd end(sockets.ours, contexts.of(role()), role());
  end.handshake();
  end.hand_over();
  EXPECT_EQ(end.receive_all(), End::truncated);
  EXPECT_EQ(end.received, "half of it");
}

// ---- TLS 1.3 only

class KernelTls13 : public KernelTls {};
INSTANTIATE_TEST_SUITE_P(All, KernelTls13,
                         testing::Combine(testing::Values(Version::tls13),
                                          testing::Values(Aead::aes128_gcm, Aead::aes256_gcm,
                                                          Aead::chacha20_poly1305),
                                          testing::Values(Role::server, Role::client)),
                         &name_of);

// The kernel cannot read on, but what is sent is still good: the response is finished.
TEST_P(KernelTls13, KeyUpdateWithoutReply) {
  const std::string answer = pattern(300'000);
  Pair pair(*this, [&answer](SSL* ssl) {
    answer_first(ssl, "a request");
    EXPECT_EQ(SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
    write_to(ssl, "under the next key");
    EXPECT_TRUE(read_from(ssl, answer.size()) == answer);
    EXPECT_TRUE(ends_cleanly(ssl));
  });
  hand_over_and_receive(pair, "a request");
  EXPECT_EQ(pair.end.receive_all(), End::key_update);
  EXPECT_FALSE(pair.end.last.reply_requested);
  EXPECT_EQ(pair.end.received, "a request") << "never a byte under a stale key";
  pair.end.send(answer);
  pair.end.send_close();
}

TEST_P(KernelTls13, KeyUpdateWithReply) {
  Pair pair(*this, [](SSL* ssl) {
    answer_first(ssl, "a request");
    EXPECT_EQ(SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED), 1);
    write_to(ssl, "under the next key");
    EXPECT_TRUE(ends_cleanly(ssl));
  });
  hand_over_and_receive(pair, "a request");
  EXPECT_EQ(pair.end.receive_all(), End::key_update);
  EXPECT_TRUE(pair.end.last.reply_requested);
  EXPECT_EQ(pair.end.received, "a request");
  pair.end.send_close();
}

// While receiving is still OpenSSL's, the key only changes.
TEST_P(KernelTls13, KeyUpdateBeforeTheHandover) {
  Pair pair(*this, [](SSL* ssl) {
    EXPECT_EQ(SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED), 1);
    write_to(ssl, "under the second key");
    EXPECT_EQ(read_from(ssl, 6), "answer");
    write_to(ssl, ", and more");
    EXPECT_TRUE(ends_cleanly(ssl));
  });
  pair.end.receive(20);
  pair.end.hand_over();
  pair.end.send("answer");
  pair.end.receive(30);
  EXPECT_EQ(pair.end.received, "under the second key, and more");
  EXPECT_TRUE(pair.end.complete());
  pair.end.send_close();
}

TEST_P(KernelTls13, TicketsInTheMiddle) {
  if (role() == Role::server) return;  // they are a server's
  Pair pair(*this, [](SSL* ssl) {
    write_to(ssl, "before, ");
    EXPECT_EQ(read_from(ssl, 1), "x");
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(SSL_new_session_ticket(ssl), 1);
    write_to(ssl, "and behind");
    EXPECT_TRUE(ends_cleanly(ssl));
  });
  pair.end.hand_over();
  pair.end.receive(8);
  ASSERT_TRUE(pair.end.complete());
  pair.end.send("x");
  pair.end.receive(18);
  EXPECT_EQ(pair.end.received, "before, and behind");
  EXPECT_GE(pair.end.ignored, 1U);
  pair.end.send_close();
}

// ---- a peer that writes records of its own making

class ForgedRecords : public EveryKind {
 protected:
  ForgedRecords()
      : forger_(contexts.of(other(role())), other(role())),
        end(sockets_.ours, contexts.of(role()), role()) {
    std::thread thread([this] { handshake_of_forger(); });
    end.handshake();
    thread.join();
    net::test::FakeSys sys;
    const int fd = *sys.open_stream_socket(AF_INET);
    EXPECT_EQ(Handoff(forger_.engine).install_tx(sys, fd), 0);
    player_.emplace(sys.option_bytes.at({fd, SOL_TLS, TLS_TX}));
    end.hand_over();
    forge(SSL3_RT_APPLICATION_DATA, "data");
    end.receive(4);
    EXPECT_TRUE(end.complete());
  }

  void forge(std::uint8_t type, std::string_view plaintext) {
    send_all(sockets_.peers, player_->seal(type, plaintext));
  }
  void forge_broken() {
    std::string record = player_->seal(SSL3_RT_APPLICATION_DATA, "never to be seen");
    record.back() = static_cast<char>(record.back() ^ 1);
    send_all(sockets_.peers, record);
  }
  void end_stream() { EXPECT_EQ(::shutdown(sockets_.peers, SHUT_WR), 0); }

 private:
  void handshake_of_forger() {
    std::array<char, 16384> buffer;
    send_all(sockets_.peers, forger_.take());
    while (forger_.engine.handshaking()) {
      const ssize_t got = ::recv(sockets_.peers, buffer.data(), buffer.size(), 0);
      if (got <= 0) return;
      forger_.give({buffer.data(), static_cast<std::size_t>(got)});
      send_all(sockets_.peers, forger_.take());
    }
  }

  SocketPair sockets_;
  Side forger_;
  std::optional<RecordPlayer> player_;

 protected:
  KernelEnd end;
};
INSTANTIATE_TEST_SUITE_P(All, ForgedRecords, every_kind(), &name_of);

TEST_P(ForgedRecords, FatalAlert) {
  forge(SSL3_RT_APPLICATION_DATA, ", more");
  forge(SSL3_RT_ALERT, std::string_view("\x02\x50", 2));
  EXPECT_EQ(end.receive_all(), End::alert);
  EXPECT_EQ(end.last.alert, SSL_AD_INTERNAL_ERROR);
  EXPECT_EQ(end.received, "data, more");
}

TEST_P(ForgedRecords, AlertWithoutConsequence) {
  forge(SSL3_RT_ALERT, std::string_view("\x01\x5a", 2));  // user_canceled
  forge(SSL3_RT_APPLICATION_DATA, ", more");
  forge(SSL3_RT_ALERT, std::string_view("\x01\x00", 2));
  EXPECT_EQ(end.receive_all(), End::closed);
  EXPECT_EQ(end.received, "data, more");
  EXPECT_EQ(end.ignored, 1U);
}

TEST_P(ForgedRecords, AMessageThatIsNotForThisTime) {
  const std::string_view request = version() == Version::tls13 ? "\x0d\0\0\0" : "\0\0\0\0";
  forge(SSL3_RT_HANDSHAKE, {request.data(), 4});
  EXPECT_EQ(end.receive_all(), End::unexpected);
}

TEST_P(ForgedRecords, ATicketInTwoRecordsAndLargerThanTheBuffer) {
  if (version() == Version::tls12) return;  // has none after the handshake
  std::string ticket(4 + 5000, 't');
  ticket.replace(0, 4, std::string_view("\x04\x00\x13\x88", 4));
  forge(SSL3_RT_HANDSHAKE, std::string_view(ticket).substr(0, 2));
  forge(SSL3_RT_HANDSHAKE, std::string_view(ticket).substr(2));
  forge(SSL3_RT_APPLICATION_DATA, ", more");
  end.receive(10);
  EXPECT_EQ(end.received, "data, more");
}

TEST_P(ForgedRecords, ABrokenRecord) {
  const long refused = tls_stat("TlsDecryptError");
  forge_broken();
  EXPECT_EQ(end.receive_all(), End::failed);
  EXPECT_EQ(end.received, "data");
  EXPECT_EQ(tls_stat("TlsDecryptError") - refused, 1);
}

TEST_P(ForgedRecords, TheEndOfTheStream) {
  end_stream();
  EXPECT_EQ(end.receive_all(), End::truncated);
}

}  // namespace
}  // namespace ringside::tls::test
