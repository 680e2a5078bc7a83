// Engines at both ends, with sessions of the contexts that a configuration makes.
#include <linux/tls.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "ringside/tls/client_context.h"
#include "ringside/tls/handoff.h"
#include "ringside/tls/server_context.h"

#include "../net/machine.h"
#include "authority.h"
#include "peer.h"

namespace ringside::tls::test {
namespace {

class EngineContexts : public ::testing::TestWithParam<config::TlsVersion> {
 protected:
  void SetUp() override {
    config::Tls tls;
    tls.name = "server";
    for (const char* name : {"a", "b"}) {
      const Issued site =
          issue({.common_name = name, .names = {join({"DNS:", name, ".test"})}}, &root);
      tls.certificates.push_back(folder.files(name, site));
    }
    tls.max_version = GetParam();
    auto loaded = load_credentials(tls, now());
    ASSERT_TRUE(loaded.credentials);
    std::shared_ptr<TicketKeys> keys =
        TicketKeys::random(loaded.credentials->session_binding, 3'600'000, 0).value();
    server = ServerContext::make(loaded.credentials, keys, {.protocols = {"http/1.1"}}).value();
    config.ca = folder.chain("ca", {&root});
    client = ClientContext::make(config, "u", TrustStore::load(config.ca).value(),
                                 {.protocols = {"http/1.1"}})
                 .value();
  }
  struct Ends {
    Ends(EngineContexts& test, const std::string& host)
        : server(test.server->new_session()), client(test.client->new_session(host, host)) {
      carry();
    }
    void carry() {
      for (std::string up = client.take(), down = server.take(); !up.empty() || !down.empty();) {
        server.give(up);
        client.give(down);
        up = client.take();
        down = server.take();
      }
    }
    Side server;
    Side client;
  };
  // What the kernel was given for a direction.
  std::string keys(int fd, int name) { return sys.option_bytes.at({fd, SOL_TLS, name}); }
  // Both ends hand over, and each direction has the same key and number at both of them.
  void hand_over(Ends& ends) {
    const int server_fd = *sys.open_stream_socket(AF_INET);
    const int client_fd = *sys.open_stream_socket(AF_INET);
    Handoff of_server(ends.server.engine);
    Handoff of_client(ends.client.engine);
    ASSERT_EQ(of_server.install_tx(sys, server_fd), 0) << describe(of_server.refusal());
    ASSERT_EQ(of_client.install_tx(sys, client_fd), 0) << describe(of_client.refusal());
    ASSERT_EQ(of_server.install_rx(sys, server_fd), 0) << describe(of_server.refusal());
    ASSERT_EQ(of_client.install_rx(sys, client_fd), 0) << describe(of_client.refusal());
    const bool tls12 = GetParam() == config::TlsVersion::tls12;
    // In TLS 1.2 what is in `iv` counts for sending alone.
    const std::size_t from = tls12 ? 4 + TLS_CIPHER_AES_GCM_128_IV_SIZE : 0;
    EXPECT_EQ(keys(server_fd, TLS_TX).substr(from), keys(client_fd, TLS_RX).substr(from));
    EXPECT_EQ(keys(client_fd, TLS_TX).substr(from), keys(server_fd, TLS_RX).substr(from));
  }

  Folder folder;
  Issued root = issue({.common_name = "root", .authority = true});
  config::UpstreamTls config;
  std::unique_ptr<ServerContext> server;
  std::unique_ptr<ClientContext> client;
  net::test::FakeSys sys;
};
INSTANTIATE_TEST_SUITE_P(Versions, EngineContexts,
                         ::testing::Values(config::TlsVersion::tls12, config::TlsVersion::tls13),
                         [](const auto& of) {
                           return of.param == config::TlsVersion::tls12 ? "Tls12" : "Tls13";
                         });

// The second name makes OpenSSL change to another SSL_CTX in the middle of the handshake.
TEST_P(EngineContexts, EveryNameIsServedAndHandedOver) {
  for (const std::string host : {"a.test", "b.test"}) {
    Ends ends(*this, host);
    ASSERT_TRUE(ends.server.engine.established()) << describe(ends.server.engine.failure());
    ASSERT_TRUE(ends.client.engine.established()) << describe(ends.client.engine.failure());
    EXPECT_EQ(ends.server.engine.role(), Role::server);
    EXPECT_EQ(ends.client.engine.role(), Role::client);
    EXPECT_EQ(ends.server.engine.info().server_name, host);
    EXPECT_EQ(ends.server.engine.info().alpn, "http/1.1");
    ends.server.send("down");
    ends.client.send("up");
    ends.carry();
    EXPECT_EQ(ends.server.received, "up");
    EXPECT_EQ(ends.client.received, "down");
    hand_over(ends);
  }
}

TEST_P(EngineContexts, SessionsAreResumedAfterAHandOff) {
  for (const bool resumed : {false, true, true}) {
    Ends ends(*this, "b.test");
    ASSERT_TRUE(ends.client.engine.established()) << describe(ends.client.engine.failure());
    EXPECT_EQ(ends.client.engine.info().resumed, resumed);
    EXPECT_EQ(ends.server.engine.info().resumed, resumed);
    ends.server.send("x");
    ends.carry();
    hand_over(ends);
  }
}

TEST_P(EngineContexts, AWrongNameIsAFailureOfTheClient) {
  Ends ends(*this, "c.test");
  EXPECT_TRUE(describe(ends.client.engine.failure()).starts_with("handshake: hostname mismatch"))
      << describe(ends.client.engine.failure());
}

TEST_P(EngineContexts, NoSessionIsNoMemory) {
  Engine engine;
  RecordScratch scratch;
  const auto started = engine.start(nullptr, scratch);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, base::ErrorCode::no_memory);
  EXPECT_FALSE(engine.has_ssl());
}

// Secrets never leave the process.
TEST_P(EngineContexts, NoKeyLogIsWritten) {
  const std::string file = folder.path("secrets");
  ::setenv("SSLKEYLOGFILE", file.c_str(), 1);
  SetUp();
  Ends ends(*this, "a.test");
  ::unsetenv("SSLKEYLOGFILE");
  ASSERT_TRUE(ends.client.engine.established());
  EXPECT_FALSE(std::filesystem::exists(file));
}

}  // namespace
}  // namespace ringside::tls::test
