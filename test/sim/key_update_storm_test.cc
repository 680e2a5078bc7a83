// haproxy 3450, 2505 and 901: a peer of TLS that changed its key again and again, or sent other
// messages that nobody had asked for, kept the proxy busy, or took it down.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "../unit/tls/authority.h"
#include "../unit/tls/peer.h"
#include "proxy_rig.h"

namespace ringside::sim {
namespace {

constexpr int storm_messages = 5'000;
constexpr std::string_view request = "GET /e/x HTTP/1.1\r\nHost: a.test\r\n\r\n";
constexpr std::string_view answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

// Answers every request at once, and no upload.
void serve(TestPeer& peer) {
  if (!peer.got.starts_with("GET ") || !peer.got.ends_with("\r\n\r\n")) return;
  peer.got.clear();
  peer.send(answer);
}

Settings secure(config::KernelTls kernel) {
  Settings out;
  out.tls = true;
  out.kernel_tls = kernel;
  out.body_mover = config::BodyMover::splice;
  return out;
}

// A client in clear, which asks again as soon as it is answered.
struct Bystander {
  explicit Bystander(ProxyRig& rig) : peer(rig.client([this](TestPeer& at) { hear(at); }, false)) {
    peer.send(request);
  }
  void hear(TestPeer& at) {
    if (!at.got.ends_with("hello")) return;
    at.got.clear();
    ++answers;
    if (answers < 50) at.send(request);
  }
  bool served() const { return answers == 50; }
  unsigned answers = 0;
  TestPeer& peer;
};

// Turns the loop until it holds. The most buffers that were held meanwhile.
std::uint32_t most_leases(ProxyRig& rig, const std::function<bool()>& holds) {
  std::uint32_t most = 0;
  const auto look = [&] {
    most = std::max(most, rig.worker->holdings().leases);
    return holds();
  };
  EXPECT_TRUE(rig.until(look, 5 * second_ns));
  return most;
}

// ---- by OpenSSL, in user space

struct OpenSslClient {
  explicit OpenSslClient(ProxyRig& rig)
      : context(SSL_CTX_new(TLS_client_method())),
        tls(context.get(), tls::Role::client),
        peer(rig.client([this](TestPeer& at) { hear(at); }, true)) {
    flush();
  }
  void flush() { peer.send(tls.take()); }
  void hear(TestPeer& at) {
    const std::string bytes = std::exchange(at.got, {});
    heard += bytes.size();
    tls.give(bytes);
    flush();
  }

  tls::CtxPtr context;
  tls::test::Peer tls;
  TestPeer& peer;
  std::size_t heard = 0;
};

// The 65th is one too many. Up to there each may be answered.
TEST(NamedFaults, key_update_storm_in_user_space) {
  tls::test::Folder folder;
  const tls::test::Issued site = tls::test::issue({.common_name = "a.test"});
  const config::TlsCertificate certificate = folder.files("s", site);
  for (const bool reply : {false, true}) {
    ProxyRig rig(secure(config::KernelTls::off), serve, &certificate);
    OpenSslClient client(rig);
    ASSERT_TRUE(rig.until([&] { return client.tls.established(); }));
    client.tls.send(request);
    client.flush();
    ASSERT_TRUE(rig.until([&] { return client.tls.received.ends_with("hello"); }));
    const std::size_t heard = client.heard;
    Bystander bystander(rig);
    for (int i = 0; i < storm_messages; ++i)
      client.tls.update_key(reply);
    client.flush();
    const auto ended = [&] { return client.peer.ended() && bystander.served(); };
    EXPECT_LE(most_leases(rig, ended), 8U);
    EXPECT_FALSE(client.peer.reset());
    constexpr std::size_t record = 40;  // of a KeyUpdate, at most
    EXPECT_LE(client.heard - heard, reply ? 64 * record : record);
    EXPECT_EQ(rig.worker->tls_counters().clients.floods.load(), 1U);
    const auto gone = [&] { return rig.worker->holdings().client_connections == 1; };
    EXPECT_TRUE(rig.until(gone, 5 * second_ns)) << "it is not read for ever";
    EXPECT_EQ(rig.end(), "");
  }
}

// ---- simulated, by the kernel, which takes no second key

class KernelClient {
 public:
  KernelClient(ProxyRig& rig, std::string_view text)
      : text_(text), peer_(rig.client([this](TestPeer& at) { hear(at); }, true)) {
    end_.begin();
    flush();
  }
  void flush() { peer_.send(std::exchange(end_.own(), {})); }
  bool over() const { return peer_.ended() || peer_.reset(); }
  bool sent() const { return peer_.sent_all(); }
  TlsEnd& end() { return end_; }
  std::string got;
  bool announced = false;  // the other side has said that it ends

 private:
  void hear(TestPeer& at) {
    const std::string bytes = std::exchange(at.got, {});
    for (std::size_t i = 0, taken = 1; i < bytes.size() && taken != 0; i += taken) {
      const TlsEnd::Event event = end_.hear(std::string_view(bytes).substr(i), &taken);
      if (event == TlsEnd::Event::data) got += end_.data();
      if (event == TlsEnd::Event::ended) announced = true;
      if (event == TlsEnd::Event::secured)
        append_record(end_.own(), RecordType::data, text_, end_.sending());
    }
    flush();
  }

  std::string text_;
  TlsEnd end_{TlsEnd::Role::client, Random(5)};
  TestPeer& peer_;
};

enum class Storm : std::uint8_t { updates, updates_with_reply, tickets };

void rage(KernelClient& client, Storm storm) {
  for (int i = 0; i < storm_messages; ++i) {
    if (storm == Storm::tickets)
      client.end().say_ticket();
    else
      client.end().say_key_update(storm == Storm::updates_with_reply);
  }
  client.flush();
}

class KernelStorm : public testing::TestWithParam<Storm> {};

TEST_P(KernelStorm, key_update_storm_between_requests) {
  ProxyRig rig(secure(config::KernelTls::require), serve);
  KernelClient client(rig, request);
  ASSERT_TRUE(rig.until([&] { return client.got.ends_with("hello"); }));
  Bystander bystander(rig);
  rage(client, GetParam());
  const auto ended = [&] { return client.announced && bystander.served(); };
  EXPECT_LE(most_leases(rig, ended), 8U);
  const auto gone = [&] { return rig.worker->holdings().client_connections == 1; };
  EXPECT_TRUE(rig.until(gone, 5 * second_ns)) << "it is not read for ever";
  EXPECT_EQ(rig.end(), "");
}

// With its body on the way through a pipe.
TEST_P(KernelStorm, key_update_storm_in_an_upload) {
  ProxyRig rig(secure(config::KernelTls::require), serve);
  const std::string head = "POST /e/x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1000000\r\n\r\n";
  KernelClient client(rig, head);
  ASSERT_TRUE(rig.until([&] { return !rig.origin.connections.empty(); }));
  const std::string body = body_of(200'000);
  for (std::size_t at = 0; at < body.size(); at += record_payload_max)
    append_record(client.end().own(), RecordType::data,
                  std::string_view(body).substr(at, record_payload_max), client.end().sending());
  client.flush();
  const TestPeer& server = *rig.origin.connections.front();
  ASSERT_TRUE(rig.until([&] { return server.got.ends_with(body); }));
  Bystander bystander(rig);
  rage(client, GetParam());
  const auto ended = [&] { return client.over() && bystander.served(); };
  EXPECT_LE(most_leases(rig, ended), 8U);
  EXPECT_TRUE(rig.until([&] { return server.ended() || server.reset(); })) << "it would wait";
  EXPECT_TRUE(server.got.ends_with(body)) << "something of the storm got through";
  EXPECT_EQ(rig.end(), "");
}

std::string name_of(const testing::TestParamInfo<Storm>& info) {
  static constexpr const char* names[] = {"updates", "updates_with_reply", "tickets"};
  return names[static_cast<std::size_t>(info.param)];
}
constexpr Storm storms[] = {Storm::updates, Storm::updates_with_reply, Storm::tickets};
INSTANTIATE_TEST_SUITE_P(NamedFaults, KernelStorm, testing::ValuesIn(storms), name_of);

}  // namespace
}  // namespace ringside::sim
