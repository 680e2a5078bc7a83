// Early data as a stream sees it, and who gets to send some.
#include <gtest/gtest.h>
#include <linux/tls.h>
#include <netinet/tcp.h>

#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "ringside/tls/channel.h"
#include "ringside/tls/material.h"

#include "../net/machine.h"
#include "authority.h"
#include "handshake.h"
#include "peer.h"

namespace ringside::tls::test {
namespace {

using Events = std::vector<std::string>;

// A ring's channels, and its own contexts.
struct Ring {
  Ring(const Material& material, const std::vector<config::Listen>& listens)
      : contexts(server_contexts(material, listens)) {}
  net::SlicePool slices{16};
  Channels channels{slices, 4};
  ServerContexts contexts;
};

// A server's channel, and what a stream would have told of it.
struct Server {
  explicit Server(Ring& in) : ring(in), channel(*ring.channels.create()) {
    EXPECT_TRUE(channel.accept(ring.contexts.at(0)));
    channel.on_socket(sys, fd);
  }
  ~Server() { ring.channels.destroy(&channel); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void give(std::string_view bytes) {
    net::RecordLayer::Opened opened;
    do {
      char room[1000];
      opened = channel.open(bytes, room);
      bytes.remove_prefix(opened.consumed);
      if (opened.secured) events.emplace_back(channel.early() ? "early" : "secured");
      if (opened.plaintext != 0) events.emplace_back(room, opened.plaintext);
      if (opened.confirmed) events.emplace_back(channel.early() ? "still early" : "confirmed");
      if (opened.status == net::RecordLayer::Status::failed) events.emplace_back("failed");
    } while (opened.status == net::RecordLayer::Status::more);
  }
  std::string take() {
    std::string out(channel.own_bytes(), '\0');
    EXPECT_EQ(channel.take_own(out), out.size());
    return out;
  }
  std::string seal(std::string_view text) {
    std::string out(net::RecordBlock::bytes_max, '\0');
    const std::string_view pieces[] = {text};
    out.resize(channel.seal(pieces, out).produced);
    return out;
  }

  net::test::FakeSys sys;
  int fd = *sys.open_stream_socket(AF_INET);
  Ring& ring;
  Channel& channel;
  Events events;
};

void settle(Server& server, Peer& peer) {
  for (int round = 0; round < 5; ++round) {
    server.give(peer.take());
    peer.give(server.take());
  }
}

class TlsChannelEarly : public ::testing::Test {
 protected:
  TlsChannelEarly() {
    tls.name = "a";
    tls.certificates.push_back(folder.files("s", site));
    tls.early_data = true;
    listens.resize(1);
    listens[0].tls = 0;
    use(client.context(), "http/1.1");
  }

  static void use(SSL_CTX* context, std::string protocol) {
    protocol.insert(protocol.begin(), static_cast<char>(protocol.size()));
    EXPECT_EQ(
        SSL_CTX_set_alpn_protos(context, reinterpret_cast<const unsigned char*>(protocol.data()),
                                static_cast<unsigned>(protocol.size())),
        0);
  }
  // As the configuration is now.
  void load(bool kernel = false) {
    config::Snapshot snapshot;
    snapshot.tls.push_back(tls);
    auto loaded = load_material(snapshot, now(), 0, {.aes256_gcm = kernel});
    ASSERT_EQ(loaded.errors, std::vector<std::string>());
    material = loaded.material;
  }
  Ring ring() { return {*material, listens}; }
  // Of a connection to it.
  SessionPtr session(Ring& ring) {
    Server server(ring);
    Peer peer(client.context(), Role::client);
    settle(server, peer);
    EXPECT_EQ(server.events, Events{"secured"});
    return peer.session();
  }
  std::unique_ptr<Peer> early(SSL_SESSION* session, std::string_view text = "GET") {
    return std::make_unique<Peer>(client.context(), Role::client, session, text);
  }

  Folder folder;
  Issued site = issue({.common_name = "a.test"});
  config::Tls tls;
  std::vector<config::Listen> listens;
  Client client;
  std::shared_ptr<const Material> material;
};

TEST_F(TlsChannelEarly, ComesFirstAndIsConfirmed) {
  load();
  Ring one = ring();
  const SessionPtr before = session(one);
  EXPECT_EQ(SSL_SESSION_get_max_early_data(before.get()), tls.early_data_bytes_max);
  const auto peer = early(before.get());
  Server server(one);
  server.give(peer->take());
  EXPECT_EQ(server.events, (Events{"early", "GET"}));
  EXPECT_TRUE(server.channel.can_seal());
  EXPECT_TRUE(server.channel.info().resumed);
  EXPECT_EQ(server.channel.info().alpn, "http/1.1");
  peer->give(server.take());
  peer->give(server.seal("answer"));
  EXPECT_EQ(peer->received, "answer");
  peer->send("more");
  settle(server, *peer);
  EXPECT_EQ(server.events, (Events{"early", "GET", "confirmed", "more"}));
  const RoleCounters& counters = one.channels.counters().clients;
  EXPECT_EQ(counters.early_data, 1U);
  EXPECT_EQ(counters.resumed, 1U);
}

// Whoever has seen it sends it again, to any ring.
TEST_F(TlsChannelEarly, IsTakenOnceOnAllRings) {
  load();
  Ring one = ring();
  Ring two = ring();
  const SessionPtr before = session(one);
  const auto peer = early(before.get());
  const std::string flight = peer->take();
  Server first(two);
  first.give(flight);
  EXPECT_EQ(first.events, (Events{"early", "GET"}));
  for (Ring* each : {&two, &one}) {
    Server again(*each);
    again.give(flight);
    EXPECT_EQ(again.events, Events());
    EXPECT_NE(again.channel.own_bytes(), 0U) << "the handshake itself goes on";
  }
  EXPECT_EQ(two.channels.counters().clients.early_data, 1U);
  EXPECT_EQ(one.channels.counters().clients.early_data, 0U);
}

TEST_F(TlsChannelEarly, ThatWasRefusedComesAgainAfterwards) {
  load();
  Ring one = ring();
  const SessionPtr before = session(one);
  const auto peer = early(before.get());
  const std::string flight = peer->take();
  Server(one).give(flight);
  Server server(one);
  server.give(flight);
  settle(server, *peer);
  peer->finish();
  peer->send("GET");
  settle(server, *peer);
  EXPECT_EQ(server.events, (Events{"secured", "GET"}));
}

TEST_F(TlsChannelEarly, IsOffByDefault) {
  EXPECT_FALSE(config::Tls().early_data);
  tls.early_data = false;
  load();
  Ring one = ring();
  EXPECT_EQ(SSL_SESSION_get_max_early_data(session(one).get()), 0U);
}

// HTTP/2 has requests of which some would have to wait for the end of the handshake.
TEST_F(TlsChannelEarly, IsNotForHttp2) {
  listens[0].http2 = true;
  load();
  Ring one = ring();
  EXPECT_EQ(SSL_SESSION_get_max_early_data(session(one).get()), tls.early_data_bytes_max);
  use(client.context(), "h2");
  EXPECT_EQ(SSL_SESSION_get_max_early_data(session(one).get()), 0U);
}

// Its first bytes may say so.
TEST_F(TlsChannelEarly, IsNotForWhoMayTurnOutToSpeakHttp2) {
  SSL_CTX_set_alpn_protos(client.context(), nullptr, 0);
  for (const bool http2 : {true, false}) {
    listens[0].http2 = http2;
    load();
    Ring one = ring();
    const SessionPtr before = session(one);
    const auto peer = early(before.get());
    Server server(one);
    server.give(peer->take());
    EXPECT_EQ(server.events, http2 ? Events() : Events({"early", "GET"}));
  }
}

// What another host has taken, or this one before it was started again, nobody here knows.
TEST_F(TlsChannelEarly, WaitsAtFirstWhereOthersHaveTheKeysToo) {
  tls.ticket_keys_file = folder.write("ticket.keys", std::string(80, 'k'));
  config::Snapshot snapshot;
  snapshot.tls.push_back(tls);
  timespec monotonic{};
  ::clock_gettime(CLOCK_MONOTONIC, &monotonic);
  const auto now_ms = static_cast<std::uint64_t>(monotonic.tv_sec) * 1000;
  material = load_material(snapshot, now(), now_ms, {}).material;
  ASSERT_NE(material, nullptr);
  Ring one = ring();
  const SessionPtr before = session(one);
  EXPECT_NE(SSL_SESSION_get_max_early_data(before.get()), 0U) << "for later";
  const auto peer = early(before.get());
  Server server(one);
  server.give(peer->take());
  EXPECT_EQ(server.events, Events());
}

TEST_F(TlsChannelEarly, TheKernelWaitsForTheEndOfTheHandshake) {
  load(true);
  SSL_CTX_set_ciphersuites(client.context(), "TLS_AES_256_GCM_SHA384");
  Ring one = ring();
  const SessionPtr before = session(one);
  const auto peer = early(before.get());
  Server server(one);
  server.give(peer->take());
  peer->give(server.take());
  peer->give(server.seal("answer"));
  ASSERT_EQ(server.events, (Events{"early", "GET"}));
  EXPECT_FALSE(server.channel.holds_receiving());
  EXPECT_FALSE(server.channel.hand_over_sending(server.sys, server.fd));
  EXPECT_FALSE(server.channel.wants_to_hand_over());
  peer->finish();
  server.give(peer->take());
  ASSERT_EQ(server.events.back(), "confirmed");
  EXPECT_TRUE(server.channel.holds_receiving());
  EXPECT_FALSE(server.channel.hand_over_sending(server.sys, server.fd)) << "a ticket goes first";
  peer->give(server.take());
  EXPECT_TRUE(server.channel.hand_over_sending(server.sys, server.fd));
  EXPECT_TRUE(server.channel.hand_over_receiving(server.sys, server.fd));
}

}  // namespace
}  // namespace ringside::tls::test
