// TLS as a stream uses it: channels against each other, without a stream.
#include "ringside/tls/channel.h"

#include <gtest/gtest.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "ringside/tls/material.h"

#include "../net/machine.h"
#include "authority.h"

namespace ringside::tls::test {
namespace {

using Status = net::RecordLayer::Status;

// A channel, and what came of it.
struct End {
  explicit End(Channels& channels) : channels_(channels), channel(*channels.create()) {}
  ~End() { channels_.destroy(&channel); }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  // Nothing, once it has failed.
  void give(std::string_view bytes) {
    if (status == Status::failed) return;
    do {
      char room[1000];
      const auto opened = channel.open(bytes, room);
      bytes.remove_prefix(opened.consumed);
      received.append(room, opened.plaintext);
      handshakes += opened.secured ? 1U : 0U;
      status = opened.status;
    } while (status == Status::more);
  }
  std::string take(std::size_t most = 100'000) {
    std::string out;
    while (channel.own_bytes() != 0) {
      std::string some(most, '\0');
      some.resize(channel.take_own(some));
      out += some;
    }
    return out;
  }
  std::string seal(std::string_view text) {
    std::string out(net::RecordBlock::bytes_max, '\0');
    const std::string_view pieces[] = {text.substr(0, text.size() / 2),
                                       text.substr(text.size() / 2)};
    const auto sealed = channel.seal(pieces, out);
    EXPECT_EQ(sealed.taken, text.size());
    out.resize(sealed.produced);
    return out;
  }

 private:
  Channels& channels_;

 public:
  Channel& channel;
  std::string received;
  unsigned handshakes = 0;
  Status status = Status::need_input;
};

class TlsChannel : public ::testing::Test {
 protected:
  TlsChannel() {
    tls.name = "a";
    tls.certificates.push_back(folder.files("s", site));
    upstream.name = "u";
    upstream.tls.ca = folder.chain("ca", {&root});
    upstream.servers.resize(1);
    upstream.servers[0].tls = true;
  }

  // Makes both ends, as the configuration is now.
  void start(bool kernel = false, bool rekey = false) {
    config::Snapshot snapshot;
    snapshot.tls.push_back(tls);
    snapshot.upstreams.push_back(upstream);
    const auto loaded = load_material(snapshot, now(), 0, {.aes128_gcm = kernel, .rekey = rekey});
    ASSERT_EQ(loaded.errors, std::vector<std::string>());
    std::vector<config::Listen> listens(1);
    listens[0].tls = 0;
    ASSERT_TRUE(server.channel.accept(server_contexts(*loaded.material, listens).at(0)));
    ASSERT_TRUE(client.channel.connect(client_contexts(*loaded.material, snapshot)[0], "a.test",
                                       "https://a.test"));
    server.channel.on_socket(sys, fd);
    client.channel.on_socket(sys, client_fd);
  }
  void settle() {
    for (int round = 0; round < 10; ++round) {
      server.give(client.take());
      client.give(server.take());
    }
  }
  void hand_over_server() {
    ASSERT_TRUE(server.channel.hand_over_sending(sys, fd));
    ASSERT_TRUE(server.channel.wants_to_hand_over());
    ASSERT_EQ(server.channel.bytes_to_hand_over(), 0U);
    ASSERT_TRUE(server.channel.hand_over_receiving(sys, fd));
  }
  // As recvmsg gives it.
  net::RecordLayer::Control control(std::uint8_t type, std::string_view bytes) {
    return control(server, type, bytes);
  }
  net::RecordLayer::Control control(End& end, std::uint8_t type, std::string_view bytes) {
    msghdr* message = end.channel.control_message();
    std::memcpy(message->msg_iov[0].iov_base, bytes.data(), bytes.size());
    cmsghdr* header = CMSG_FIRSTHDR(message);
    header->cmsg_level = SOL_TLS;
    header->cmsg_type = TLS_GET_RECORD_TYPE;
    header->cmsg_len = CMSG_LEN(1);
    *CMSG_DATA(header) = type;
    return end.channel.on_control(sys, &end == &client ? client_fd : fd, bytes.size());
  }

  Folder folder;
  Issued root = issue({.common_name = "root", .authority = true});
  Issued site = issue({.common_name = "site", .names = {"DNS:a.test"}}, &root);
  config::Tls tls;
  config::Upstream upstream;
  net::test::FakeSys sys;
  int fd = *sys.open_stream_socket(AF_INET);
  int client_fd = *sys.open_stream_socket(AF_INET);
  net::SlicePool slices{16};
  Channels channels{slices, 2};
  std::unique_ptr<End> server_end = std::make_unique<End>(channels);
  std::unique_ptr<End> client_end = std::make_unique<End>(channels);
  End& server = *server_end;
  End& client = *client_end;
};

TEST_F(TlsChannel, ShakesHandsAndCarriesDataBothWays) {
  start();
  EXPECT_EQ(server.channel.own_bytes(), 0U);
  EXPECT_NE(client.channel.own_bytes(), 0U) << "the first word is the client's";
  EXPECT_FALSE(client.channel.can_seal());
  settle();
  EXPECT_EQ(server.handshakes, 1U);
  EXPECT_EQ(client.handshakes, 1U);
  EXPECT_EQ(server.channel.info().version, Version::tls13);
  EXPECT_EQ(server.channel.info().server_name, "a.test");
  EXPECT_EQ(client.channel.info().alpn, "http/1.1");
  const std::string text(5000, 'x');
  server.give(client.seal(text));
  EXPECT_EQ(server.received, text);
  EXPECT_EQ(server.status, Status::need_input);
  server.channel.rest();
  client.channel.rest();
  client.give(server.seal("answer"));
  EXPECT_EQ(client.received, "answer");
  EXPECT_FALSE(server.channel.kernel_sends());
}

TEST_F(TlsChannel, ThereIsNoPlaceForMoreThanItsMany) {
  EXPECT_EQ(channels.create(), nullptr);
  EXPECT_EQ(channels.in_use(), 2U);
}

TEST_F(TlsChannel, HttpInClearGetsAReadableAnswer) {
  start();
  server.give("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
  EXPECT_EQ(server.status, Status::failed);
  EXPECT_FALSE(server.channel.can_seal());
  const std::string answer = server.take(10);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 Bad Request\r\n")) << answer;
  const std::size_t body = answer.find("\r\n\r\n") + 4;
  EXPECT_NE(answer.find("https://", body), std::string::npos);
  EXPECT_NE(answer.find("\r\nContent-Length: " + std::to_string(answer.size() - body) + "\r\n"),
            std::string::npos)
      << answer;
  EXPECT_EQ(server.channel.failure_text(), "handshake: an HTTP request without TLS");
}

TEST_F(TlsChannel, OtherNonsenseGetsAnAlert) {
  start();
  server.give(std::string_view("\x17\x03\x03\0\x01x", 6));  // data before a handshake
  EXPECT_EQ(server.status, Status::failed);
  const std::string said = server.take();
  ASSERT_EQ(said.size(), 7U);
  EXPECT_EQ(said[0], 21);
  EXPECT_TRUE(server.channel.failure_text().starts_with("handshake: "))
      << server.channel.failure_text();
}

TEST_F(TlsChannel, AServerOfAnotherNameIsRefusedAndBothSidesSayWhy) {
  upstream.tls.server_name = "b.test";
  start();
  settle();
  EXPECT_EQ(client.status, Status::failed);
  EXPECT_EQ(client.handshakes, 0U);
  EXPECT_NE(client.channel.failure_text().find("alert sent: "), std::string::npos)
      << client.channel.failure_text();
  EXPECT_EQ(server.status, Status::failed);
  EXPECT_NE(server.channel.failure_text().find("the peer gave up (alert received: "),
            std::string::npos)
      << server.channel.failure_text();
}

TEST_F(TlsChannel, AnAnnouncedEndIsTheEnd) {
  start();
  settle();
  server.channel.close();
  EXPECT_FALSE(server.channel.can_seal());
  client.give(server.take());
  EXPECT_EQ(client.status, Status::ended);
  EXPECT_EQ(client.channel.end_of_input(), Status::ended);
  EXPECT_TRUE(client.channel.can_seal()) << "one direction has ended";
  server.channel.close();
  EXPECT_EQ(server.channel.own_bytes(), 0U) << "once";
}

TEST_F(TlsChannel, AnEndWithoutAWordIsAFailure) {
  start();
  settle();
  EXPECT_EQ(client.channel.end_of_input(), Status::failed);
  EXPECT_EQ(client.channel.failure_text(), "the peer ended the stream without close_notify");
}

// ---- the kernel

TEST_F(TlsChannel, WithoutKernelTlsNothingIsAttached) {
  start();
  EXPECT_TRUE(sys.option_bytes.empty());
  settle();
  EXPECT_FALSE(server.channel.holds_receiving());
  EXPECT_FALSE(server.channel.hand_over_sending(sys, fd));
  EXPECT_FALSE(server.channel.wants_to_hand_over());
  EXPECT_FALSE(server.channel.refused());
}

TEST_F(TlsChannel, TheKernelTakesOverAfterAllHasLeft) {
  start(true);
  EXPECT_EQ(sys.option_bytes.at({fd, SOL_TCP, TCP_ULP}), std::string("tls\0", 4));
  server.give(client.take());
  client.give(server.take());
  server.give(client.take());
  ASSERT_EQ(server.handshakes, 1U);
  EXPECT_TRUE(server.channel.holds_receiving());
  ASSERT_NE(server.channel.own_bytes(), 0U) << "tickets";
  EXPECT_FALSE(server.channel.hand_over_sending(sys, fd));
  EXPECT_FALSE(sys.option_bytes.contains({fd, SOL_TLS, TLS_TX}));
  client.give(server.take());
  EXPECT_TRUE(server.channel.hand_over_sending(sys, fd));
  EXPECT_TRUE(sys.option_bytes.contains({fd, SOL_TLS, TLS_TX}));
  EXPECT_TRUE(server.channel.kernel_sends());
  EXPECT_FALSE(server.channel.kernel_opens());
  EXPECT_FALSE(server.channel.holds_receiving());
  EXPECT_TRUE(server.channel.wants_to_hand_over());
  // In the middle of a record it does not yet.
  const std::string wire = client.seal("hello");
  server.give(wire.substr(0, 3));
  EXPECT_EQ(server.channel.bytes_to_hand_over(), 2U) << "of the header";
  EXPECT_FALSE(server.channel.hand_over_receiving(sys, fd));
  server.give(wire.substr(3, 2));
  EXPECT_EQ(server.channel.bytes_to_hand_over(), wire.size() - 5);
  server.give(wire.substr(5));
  EXPECT_EQ(server.received, "hello");
  EXPECT_EQ(server.channel.bytes_to_hand_over(), 0U);
  EXPECT_TRUE(server.channel.hand_over_receiving(sys, fd));
  EXPECT_TRUE(sys.option_bytes.contains({fd, SOL_TLS, TLS_RX}));
  EXPECT_TRUE(server.channel.kernel_opens());
  EXPECT_FALSE(server.channel.wants_to_hand_over());
}

TEST_F(TlsChannel, AClientWaitsForTheFirstData) {
  start(true);
  settle();
  EXPECT_FALSE(client.channel.holds_receiving());
  ASSERT_TRUE(client.channel.hand_over_sending(sys, client_fd));
  EXPECT_FALSE(client.channel.wants_to_hand_over()) << "tickets may come";
  client.give(server.seal("answer"));
  EXPECT_TRUE(client.channel.wants_to_hand_over());
  EXPECT_TRUE(client.channel.hand_over_receiving(sys, client_fd));
}

TEST_F(TlsChannel, ASocketThatCannotBeAttachedStaysInUserSpace) {
  sys.option_errno[{SOL_TCP, TCP_ULP}] = ENOENT;
  start(true);
  settle();
  EXPECT_EQ(server.status, Status::need_input);
  EXPECT_FALSE(server.channel.holds_receiving());
  EXPECT_FALSE(server.channel.refused());
  client.give(server.seal("answer"));
  EXPECT_EQ(client.received, "answer");
}

TEST_F(TlsChannel, ASocketThatCannotBeAttachedFailsWhereTheKernelIsRequired) {
  tls.ktls = config::KernelTls::require;
  sys.option_errno[{SOL_TCP, TCP_ULP}] = ENOENT;
  start(true);
  settle();
  EXPECT_EQ(server.status, Status::failed);
  EXPECT_TRUE(server.channel.refused());
  EXPECT_EQ(server.channel.failure_text(),
            "ktls = \"require\", but not for this connection: kernel");
}

TEST_F(TlsChannel, ACipherThatTheKernelLacksIsDoneInUserSpace) {
  sys.option_errno[{SOL_TLS, TLS_TX}] = EINVAL;
  start(true);
  settle();
  EXPECT_FALSE(server.channel.hand_over_sending(sys, fd));
  EXPECT_FALSE(server.channel.holds_receiving());
  EXPECT_FALSE(server.channel.wants_to_hand_over());
  EXPECT_FALSE(server.channel.refused());
  client.give(server.seal("answer"));
  EXPECT_EQ(client.received, "answer");
}

TEST_F(TlsChannel, ACipherThatTheKernelLacksFailsWhereItIsRequired) {
  tls.ktls = config::KernelTls::require;
  sys.option_errno[{SOL_TLS, TLS_TX}] = EINVAL;
  start(true);
  settle();
  EXPECT_EQ(server.status, Status::need_input) << "that is not known yet";
  EXPECT_FALSE(server.channel.hand_over_sending(sys, fd));
  EXPECT_TRUE(server.channel.refused());
  EXPECT_EQ(server.channel.failure_text(),
            "ktls = \"require\", but not for this connection: kernel");
}

TEST_F(TlsChannel, ReceivingMayBeRefusedAlone) {
  sys.option_errno[{SOL_TLS, TLS_RX}] = EINVAL;
  start(true);
  settle();
  ASSERT_TRUE(server.channel.hand_over_sending(sys, fd));
  EXPECT_FALSE(server.channel.hand_over_receiving(sys, fd));
  EXPECT_FALSE(server.channel.wants_to_hand_over());
  server.give(client.seal("hello"));
  EXPECT_EQ(server.received, "hello");
}

// ---- records of the kernel's

TEST_F(TlsChannel, ControlRecordsAreReadFromTheKernel) {
  start(true);
  settle();
  hand_over_server();
  EXPECT_EQ(control(99, "?").status, Status::failed);
  EXPECT_EQ(server.channel.failure_text(), "protocol error");
  const auto data = control(23, "hello");
  EXPECT_EQ(data.status, Status::more);
  EXPECT_EQ(data.data, "hello");
}

TEST_F(TlsChannel, TheKernelsCloseNotifyIsTheEnd) {
  start(true);
  settle();
  hand_over_server();
  EXPECT_EQ(control(21, std::string_view("\x01\0", 2)).status, Status::ended);
  EXPECT_EQ(server.channel.end_of_input(), Status::ended);
}

TEST_F(TlsChannel, WithoutCloseNotifyTheKernelsEndIsAFailure) {
  start(true);
  settle();
  hand_over_server();
  EXPECT_EQ(server.channel.end_of_input(), Status::failed);
  EXPECT_EQ(server.channel.failure_text(), "the peer ended the stream without close_notify");
}

TEST_F(TlsChannel, AnAlertFromTheKernelIsAFailure) {
  start(true);
  settle();
  hand_over_server();
  EXPECT_EQ(control(21, std::string_view("\x02\x28", 2)).status, Status::failed);
  EXPECT_EQ(server.channel.failure_text(), "the peer gave up (alert received: handshake failure)");
}

constexpr std::string_view key_update("\x18\0\0\x01\0", 5);
constexpr std::string_view key_update_requested("\x18\0\0\x01\x01", 5);

TEST_F(TlsChannel, NewKeysAreTheEndOfReceiving) {
  start(true);
  settle();
  hand_over_server();
  const std::string old = sys.option_bytes.at({fd, SOL_TLS, TLS_RX});
  EXPECT_EQ(control(22, key_update).status, Status::unreadable);
  EXPECT_EQ(server.channel.failure_text(),
            "the peer went on to a new key, which the kernel cannot take");
  EXPECT_EQ(server.channel.own_message(), nullptr);
  EXPECT_NE(server.channel.closing_message(), nullptr) << "the end can be said";
  EXPECT_EQ(sys.option_bytes.at({fd, SOL_TLS, TLS_RX}), old);
}

// A body that lasts until the end would look whole.
TEST_F(TlsChannel, NewKeysOfAServerAreNoEnd) {
  start(true);
  settle();
  ASSERT_TRUE(client.channel.hand_over_sending(sys, client_fd));
  client.give(server.seal("answer"));
  ASSERT_TRUE(client.channel.hand_over_receiving(sys, client_fd));
  EXPECT_EQ(control(client, 22, key_update).status, Status::unreadable);
}

TEST_F(TlsChannel, NewKeysOfBothAreTheEnd) {
  start(true);
  settle();
  hand_over_server();
  EXPECT_EQ(control(22, key_update_requested).status, Status::failed);
  EXPECT_EQ(server.channel.failure_text(),
            "the peer asked for new keys that the kernel cannot take");
  EXPECT_EQ(server.channel.own_message(), nullptr);
}

TEST_F(TlsChannel, AKernelThatTakesNewKeysGetsThem) {
  start(true, true);
  settle();
  hand_over_server();
  const std::string tx = sys.option_bytes.at({fd, SOL_TLS, TLS_TX});
  for (int i = 0; i < 3; ++i) {
    const std::string old = sys.option_bytes.at({fd, SOL_TLS, TLS_RX});
    EXPECT_EQ(control(22, key_update).status, Status::need_input);
    EXPECT_NE(sys.option_bytes.at({fd, SOL_TLS, TLS_RX}), old);
    EXPECT_EQ(server.channel.own_message(), nullptr);
  }
  EXPECT_EQ(sys.option_bytes.at({fd, SOL_TLS, TLS_TX}), tx);
}

// Each would cost us a call of the kernel.
TEST_F(TlsChannel, AFloodOfNewKeysFromTheKernelIsTheEnd) {
  start(true, true);
  settle();
  hand_over_server();
  for (int i = 0; i < 64; ++i)
    ASSERT_EQ(control(22, key_update).status, Status::need_input) << i;
  const std::string last = sys.option_bytes.at({fd, SOL_TLS, TLS_RX});
  EXPECT_EQ(control(22, key_update).status, Status::failed);
  EXPECT_EQ(sys.option_bytes.at({fd, SOL_TLS, TLS_RX}), last);
  EXPECT_EQ(server.channel.failure_text(),
            "the peer sent too many KeyUpdates or requests for renegotiation");
  EXPECT_EQ(channels.counters().clients.floods, 1U);
}

// The one record between two keys.
TEST_F(TlsChannel, AKernelThatTakesNewKeysAnswersWithOne) {
  start(true, true);
  settle();
  hand_over_server();
  const std::string old = sys.option_bytes.at({fd, SOL_TLS, TLS_TX});
  EXPECT_EQ(control(22, key_update_requested).status, Status::need_input);
  EXPECT_EQ(sys.option_bytes.at({fd, SOL_TLS, TLS_TX}), old) << "not before the answer has left";
  const msghdr* answer = server.channel.own_message();
  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(std::string_view(static_cast<const char*>(answer->msg_iov[0].iov_base),
                             answer->msg_iov[0].iov_len),
            key_update);
  EXPECT_EQ(*CMSG_DATA(CMSG_FIRSTHDR(answer)), 22);
  EXPECT_EQ(server.channel.said(sys, fd), 0);
  EXPECT_NE(sys.option_bytes.at({fd, SOL_TLS, TLS_TX}), old);
  EXPECT_EQ(server.channel.own_message(), nullptr);
  // Nothing is owed after the end.
  EXPECT_NE(server.channel.closing_message(), nullptr);
  EXPECT_EQ(server.channel.said(sys, fd), 0);
  EXPECT_EQ(control(22, key_update_requested).status, Status::need_input);
  EXPECT_EQ(server.channel.own_message(), nullptr);
}

TEST_F(TlsChannel, AKernelThatTakesNoKeyAfterAllEndsTheDirection) {
  start(true, true);
  settle();
  hand_over_server();
  sys.option_errno[{SOL_TLS, TLS_TX}] = EBUSY;
  EXPECT_EQ(control(22, key_update_requested).status, Status::need_input);
  EXPECT_NE(server.channel.own_message(), nullptr);
  EXPECT_EQ(server.channel.said(sys, fd), -EBUSY);
  EXPECT_EQ(control(22, key_update_requested).status, Status::failed) << "none can follow";
  sys.option_errno[{SOL_TLS, TLS_RX}] = EBUSY;
  EXPECT_EQ(control(22, key_update).status, Status::unreadable);
}

TEST_F(TlsChannel, OurEndIsSaidOnce) {
  start(true);
  settle();
  hand_over_server();
  const msghdr* message = server.channel.closing_message();
  ASSERT_NE(message, nullptr);
  EXPECT_EQ(std::memcmp(message->msg_iov[0].iov_base, "\x01\0", 2), 0);
  EXPECT_EQ(server.channel.closing_message(), nullptr);
}

// ---- counters

std::uint64_t stayed(const RoleCounters& counters, UserSpace why) {
  return counters.user_space[static_cast<std::size_t>(why)];
}
std::uint64_t stayed(const RoleCounters& counters) {
  std::uint64_t sum = 0;
  for (const auto& reason : counters.user_space)
    sum += reason;
  return sum;
}

class TlsCounters : public TlsChannel {
 protected:
  const RoleCounters& clients = channels.counters().clients;  // the server's end counts them
  const RoleCounters& servers = channels.counters().servers;
  // Of both connections.
  void end() {
    server_end.reset();
    client_end.reset();
  }
};

TEST_F(TlsCounters, AHandshakeThatSucceedsIsCountedOnce) {
  start();
  settle();
  EXPECT_EQ(clients.full, 1U);
  EXPECT_EQ(servers.full, 1U);
  EXPECT_EQ(clients.resumed, 0U);
  EXPECT_EQ(stayed(clients, UserSpace::unavailable), 1U);
  EXPECT_EQ(stayed(servers, UserSpace::unavailable), 1U);
  end();
  EXPECT_EQ(clients.failed + servers.failed, 0U);
  EXPECT_EQ(stayed(clients), 1U) << "once";
}

TEST_F(TlsCounters, AHandshakeThatIsNotCompletedHasFailed) {
  start();
  server.give(client.take());
  end();
  EXPECT_EQ(clients.failed, 1U);
  EXPECT_EQ(servers.failed, 1U);
  EXPECT_EQ(clients.full + clients.resumed + stayed(clients), 0U);
}

TEST_F(TlsCounters, AClientThatSaysNothingHasNotFailed) {
  start();
  end();
  EXPECT_EQ(clients.failed, 0U);
  EXPECT_EQ(servers.failed, 1U) << "we did begin";
}

TEST_F(TlsCounters, BothDirectionsOfTheKernelAreCounted) {
  start(true);
  settle();
  EXPECT_EQ(clients.kernel_sends, 0U);
  hand_over_server();
  EXPECT_EQ(clients.kernel_sends, 1U);
  EXPECT_EQ(clients.kernel_receives, 1U);
  EXPECT_EQ(servers.kernel_sends, 0U);
  end();
  EXPECT_EQ(stayed(clients), 0U);
  EXPECT_EQ(stayed(servers, UserSpace::ended), 1U) << "nothing was handed over";
}

TEST_F(TlsCounters, OneDirectionInUserSpaceIsSaid) {
  sys.option_errno[{SOL_TLS, TLS_RX}] = EINVAL;
  start(true);
  settle();
  ASSERT_TRUE(server.channel.hand_over_sending(sys, fd));
  EXPECT_FALSE(server.channel.hand_over_receiving(sys, fd));
  EXPECT_EQ(clients.kernel_sends, 1U);
  EXPECT_EQ(clients.kernel_receives, 0U);
  EXPECT_EQ(stayed(clients, UserSpace::kernel), 1U);
  end();
  EXPECT_EQ(stayed(clients), 1U);
}

TEST_F(TlsCounters, ASocketThatTheKernelRefuses) {
  sys.option_errno[{SOL_TCP, TCP_ULP}] = ENOENT;
  start(true);
  settle();
  EXPECT_EQ(stayed(clients, UserSpace::kernel), 1U);
}

TEST_F(TlsCounters, WhatIsSwitchedOffIsNoLackOfTheKernel) {
  tls.ktls = config::KernelTls::off;
  start(true);
  settle();
  EXPECT_EQ(stayed(clients, UserSpace::off), 1U);
  EXPECT_EQ(stayed(clients), 1U);
}

}  // namespace
}  // namespace ringside::tls::test
