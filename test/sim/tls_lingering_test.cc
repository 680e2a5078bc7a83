// How connections with TLS end: what was said last must arrive, and be known as the end.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "proxy_rig.h"

namespace ringside::sim {
namespace {

constexpr std::string_view answer =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";

// Answers every request at once.
void serve(TestPeer& peer) {
  if (!peer.got.ends_with("\r\n\r\n")) return;
  peer.got.clear();
  peer.send(answer);
}

Settings secure(config::KernelTls kernel) {
  Settings out;
  out.tls = true;
  out.kernel_tls = kernel;
  return out;
}

// A client that sends one request once its handshake is over.
class SecureClient {
 public:
  SecureClient(ProxyRig& rig, std::string request)
      : request_(std::move(request)),
        peer_(rig.client([this](TestPeer& peer) { hear(peer); }, true)) {
    end_.begin();
    flush();
  }
  // Says that it sends no more.
  void end() {
    end_.say_close();
    flush();
    peer_.finish();
  }
  std::string got;
  bool ended = false;  // the other side has said so
  bool over() const { return peer_.ended() || peer_.reset(); }
  bool reset() const { return peer_.reset(); }

 private:
  void flush() { peer_.send(std::exchange(end_.own(), {})); }
  void hear(TestPeer& peer) {
    const std::string bytes = std::exchange(peer.got, {});
    for (std::size_t at = 0, taken = 1; at < bytes.size() && taken != 0; at += taken) {
      const TlsEnd::Event event = end_.hear(std::string_view(bytes).substr(at), &taken);
      if (event == TlsEnd::Event::data) got += end_.data();
      if (event == TlsEnd::Event::ended) ended = true;
      if (event == TlsEnd::Event::secured)
        append_record(end_.own(), RecordType::data, request_, end_.sending());
    }
    if (!end_.own().empty()) flush();
  }

  std::string request_;
  TlsEnd end_{TlsEnd::Role::client, Random(5)};
  TestPeer& peer_;
};

class TlsLingering : public testing::TestWithParam<config::KernelTls> {};

// Its half-close is a record: were it left unread, the kernel would reset the connection, and what
// the client has not got yet would be lost.
TEST_P(TlsLingering, a_client_that_ends_its_side_late_is_read_until_then) {
  ProxyRig rig(secure(GetParam()), serve);
  SecureClient client(rig, "GET /e/x HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(rig.rests_for(500 * millisecond_ns));
  EXPECT_TRUE(client.got.ends_with("0\r\n\r\n"));
  EXPECT_TRUE(client.ended);
  EXPECT_EQ(rig.worker->holdings().client_connections, 1U) << "what it says now is not read";
  client.end();
  EXPECT_TRUE(rig.until([&] { return rig.worker->holdings().client_connections == 0; }, second_ns));
  EXPECT_FALSE(client.reset());
  EXPECT_EQ(rig.end(), "");
}

// Whatever room there is in the client's socket for the announcement.
TEST_P(TlsLingering, the_end_of_a_body_that_lasts_until_then_is_announced) {
  for (const bool half_closed : {false, true}) {
    for (std::size_t room = 60; room < 160; ++room) {
      ProxyRig rig(secure(GetParam()), serve);
      rig.world.network().medium().buffer_bytes = room;
      SecureClient client(rig, "GET /e/x HTTP/1.0\r\nHost: a.test\r\n\r\n");
      ASSERT_TRUE(rig.until([&] { return !rig.origin.connections.empty(); }));
      if (half_closed) client.end();
      ASSERT_TRUE(rig.until([&] { return client.over(); })) << room;
      EXPECT_TRUE(client.got.ends_with("\r\n\r\nhello")) << room;
      EXPECT_TRUE(client.ended) << "it looks cut, with room for " << room;
      EXPECT_EQ(rig.end(), "");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Records, TlsLingering,
                         testing::Values(config::KernelTls::off, config::KernelTls::automatic),
                         [](const auto& at) {
                           return at.param == config::KernelTls::off ? "user_space" : "kernel";
                         });

}  // namespace
}  // namespace ringside::sim
