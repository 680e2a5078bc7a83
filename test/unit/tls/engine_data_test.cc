// Handshakes and data, of every kind and in pieces of every size.
#include <string>
#include <vector>

#include "connection.h"

namespace ringside::tls::test {
namespace {

class EngineData : public EveryKind {};
INSTANTIATE_TEST_SUITE_P(All, EngineData, every_kind(), &name_of);

TEST_P(EngineData, HandshakeAndBothWays) {
  Connection c(contexts, role());
  c.settle();
  ASSERT_TRUE(c.engine().established());
  EXPECT_EQ(c.side.handshakes_done, 1U);
  c.peer.send("from the peer");
  c.side.send("from the engine");
  c.settle();
  EXPECT_EQ(c.side.received, "from the peer");
  EXPECT_EQ(c.peer.received, "from the engine");
}

TEST_P(EngineData, ByteByByte) {
  Connection c(contexts, role());
  Bytewise bytewise;
  settle(c.side, c.peer, bytewise);
  ASSERT_TRUE(c.engine().established());
  c.peer.send("from the peer");
  c.side.send("from the engine");
  settle(c.side, c.peer, bytewise);
  EXPECT_EQ(c.side.received, "from the peer");
  EXPECT_EQ(c.peer.received, "from the engine");
}

TEST_P(EngineData, EverySplitOfTwoRecords) {
  for (std::size_t at = 0; at <= 80; ++at) {
    Connection c(contexts, role());
    c.settle();
    c.peer.send("one");
    c.peer.send("and two");
    const std::string wire = c.peer.take();
    if (at > wire.size()) break;
    c.side.give(std::string_view(wire).substr(0, at));
    c.side.give(std::string_view(wire).substr(at));
    ASSERT_EQ(c.side.received, "oneand two") << "split at " << at;
  }
}

TEST_P(EngineData, LargeAtRandomSplits) {
  for (const unsigned seed : {1U, 2U, 3U}) {
    Connection c(contexts, role());
    AtRandom splits(seed, 40000);
    settle(c.side, c.peer, splits);
    const std::string down = pattern(1'000'000, seed);
    const std::string up = pattern(700'001, seed + 10);
    c.peer.send(up);
    c.side.send(down, 20000 * seed);
    settle(c.side, c.peer, splits);
    EXPECT_TRUE(c.side.received == up);
    EXPECT_TRUE(c.peer.received == down);
  }
}

TEST_P(EngineData, OneByteOfSpace) {
  Connection c(contexts, role());
  c.settle();
  const std::string text = pattern(40000);
  c.side.send(text, 1);
  EXPECT_EQ(c.engine().output_pending(), 0U);
  c.settle();
  EXPECT_TRUE(c.peer.received == text);
  c.peer.send(text);
  c.side.give(c.peer.take(), 1);
  EXPECT_TRUE(c.side.received == text);
}

TEST_P(EngineData, Resumption) {
  Connection& c = resumed();
  c.settle();
  ASSERT_TRUE(c.engine().established());
  EXPECT_TRUE(c.engine().info().resumed);
  c.peer.send("again");
  c.side.send("and back");
  c.settle();
  EXPECT_EQ(c.side.received, "again");
  EXPECT_EQ(c.peer.received, "and back");
}

TEST_P(EngineData, SmallPiecesLeaveInOneRecord) {
  Connection c(contexts, role());
  c.settle();
  const std::vector<std::string_view> pieces{"HTTP/1.1 200 OK\r\n\r\n", "", "body", ""};
  std::string out(record_bytes_max, '\0');
  const Engine::Sent sent = c.engine().send(pieces, {out.data(), out.size()});
  EXPECT_EQ(sent.taken, 23U);
  ASSERT_GT(sent.produced, 23U + record_header_bytes);
  const std::size_t body =
      static_cast<unsigned char>(out[3]) * 256U + static_cast<unsigned char>(out[4]);
  EXPECT_EQ(body + record_header_bytes, sent.produced) << "more than one record";
  EXPECT_EQ(c.engine().output_pending(), 0U);
  c.peer.give({out.data(), sent.produced});
  EXPECT_EQ(c.peer.received, "HTTP/1.1 200 OK\r\n\r\nbody");
}

// The head does not cost the body a record of its own, and the rest is read in place.
TEST_P(EngineData, PiecesOfEverySizeAreJoined) {
  Connection c(contexts, role());
  c.settle();
  const std::string head = pattern(300);
  const std::string body = pattern(100'000, 2);
  const std::string tail = pattern(7, 3);
  const std::vector<std::string_view> pieces{head, body, tail};
  const std::size_t all = head.size() + body.size() + tail.size();
  std::string out(200'000, '\0');
  const Engine::Sent sent = c.engine().send(pieces, {out.data(), out.size()});
  EXPECT_EQ(sent.taken, all);
  const std::size_t records = (all + record_plaintext_max - 1) / record_plaintext_max;
  EXPECT_LE(sent.produced, all + records * record_overhead_max);
  c.peer.give({out.data(), sent.produced});
  EXPECT_TRUE(c.peer.received == head + body + tail);
}

TEST_P(EngineData, RecordsAreCutToTheRoom) {
  Connection c(contexts, role());
  c.settle();
  const std::string text = pattern(30000);
  const std::string_view piece = text;
  std::string out(20000, '\0');
  const Engine::Sent first = c.engine().send({&piece, 1}, {out.data(), out.size()});
  EXPECT_GT(first.taken, 19000U);
  EXPECT_LE(first.produced, out.size());
  EXPECT_EQ(c.engine().output_pending(), 0U);
  c.peer.give({out.data(), first.produced});
  EXPECT_TRUE(c.peer.received == text.substr(0, first.taken));
}

TEST_P(EngineData, InfoNamesWhatWasAgreedOn) {
  Connection c(contexts, role());
  c.settle();
  const ConnectionInfo info = c.engine().info();
  EXPECT_EQ(info.version, version());
  EXPECT_EQ(info.cipher, SSL_get_cipher_name(c.peer.ssl.get()));
  EXPECT_NE(info.cipher_id, 0);
  EXPECT_FALSE(info.resumed);
  EXPECT_EQ(info.peer_certificate != nullptr, role() == Role::client);
  EXPECT_EQ(info.alpn, "");
  EXPECT_EQ(c.engine().kernel_cipher(), aead());
}

TEST(Engine, InfoHasNames) {
  Contexts contexts;
  const auto choose = [](SSL*, const unsigned char** out, unsigned char* bytes,
                         const unsigned char* in, unsigned, void*) {
    *out = in + 1;
    *bytes = in[0];
    return SSL_TLSEXT_ERR_OK;
  };
  SSL_CTX_set_alpn_select_cb(contexts.of(Role::server), choose, nullptr);
  SSL_CTX_set_alpn_protos(contexts.of(Role::client),
                          reinterpret_cast<const unsigned char*>("\x08http/1.1"), 9);
  Side server(contexts.of(Role::server), Role::server);
  SslPtr ssl = new_session(contexts.of(Role::client), Role::client);
  SSL_set_tlsext_host_name(ssl.get(), "localhost");
  Side client(std::move(ssl));
  for (int i = 0; i < 4; ++i) {
    server.give(client.take());
    client.give(server.take());
  }
  ASSERT_TRUE(server.engine.established() && client.engine.established());
  EXPECT_EQ(server.engine.info().server_name, "localhost");
  EXPECT_EQ(server.engine.info().alpn, "http/1.1");
  EXPECT_EQ(client.engine.info().alpn, "http/1.1");
}

TEST(Engine, MaxFragmentLengthIsKept) {
  Contexts contexts({.version = Version::tls12});
  SSL_CTX_set_tlsext_max_fragment_length(contexts.of(Role::client),
                                         TLSEXT_max_fragment_length_1024);
  Connection c(contexts, Role::server);
  c.settle();
  EXPECT_TRUE(c.engine().fragments_limited());
  const std::string text = pattern(5000);
  const std::string_view piece = text;
  std::string out(record_bytes_max, '\0');
  const Engine::Sent sent = c.engine().send({&piece, 1}, {out.data(), out.size()});
  EXPECT_EQ(sent.taken, text.size());
  const std::size_t body =
      static_cast<unsigned char>(out[3]) * 256U + static_cast<unsigned char>(out[4]);
  EXPECT_LE(body, 1024U + record_overhead_max);
  c.peer.give({out.data(), sent.produced});
  EXPECT_TRUE(c.peer.received == text);
}

}  // namespace
}  // namespace ringside::tls::test
