#include "ringside/tls/client_context.h"

#include <sys/stat.h>

#include "authority.h"
#include "handshake.h"
#include "session_store.h"

namespace ringside::tls::test {
namespace {

class TlsClient : public ::testing::Test {
 protected:
  void SetUp() override {
    config::Tls tls;
    tls.name = "server";
    tls.certificates.push_back(folder.files("s", site));
    tls.client_certificate = config::ClientCertificate::optional;
    tls.client_ca = ca;
    auto loaded = load_credentials(tls, now());
    ASSERT_TRUE(loaded.credentials);
    tickets = TicketKeys::random(loaded.credentials->session_binding, 3'600'000, 0).value();
    server = ServerContext::make(loaded.credentials, tickets, {.protocols = {"http/1.1"}}).value();
    config.ca = ca;
  }
  std::unique_ptr<ClientContext> client() {
    auto trust = TrustStore::load(config.ca).value();
    return ClientContext::make(config, "u", trust, {.protocols = {"http/1.1"}}).value();
  }
  // What went wrong for the client; empty when nothing did.
  std::string connect(ClientContext& context, std::string_view host) {
    last_client = context.new_session(host, host);
    last_server = server->new_session();
    const Handshake result = shake(last_client.get(), last_server.get());
    if (result.done) return {};
    const std::string why = verify_failure(last_client.get());
    return why.empty() ? result.client : why;
  }

  Folder folder;
  Issued root = issue({.common_name = "root", .authority = true});
  Issued site = issue(
      {.common_name = "site", .names = {"DNS:a.test", "DNS:*.w.test", "IP:127.0.0.1"}}, &root);
  std::string ca = folder.chain("ca", {&root});
  config::UpstreamTls config;
  std::shared_ptr<TicketKeys> tickets;
  std::unique_ptr<ServerContext> server;
  SslPtr last_server;
  SslPtr last_client;
};

TEST_F(TlsClient, NamesAndAddressesAreChecked) {
  const auto context = client();
  EXPECT_TRUE(context->warnings().empty());
  EXPECT_EQ(connect(*context, "a.test"), "");
  EXPECT_STREQ(SSL_get_servername(last_server.get(), TLSEXT_NAMETYPE_host_name), "a.test");
  const unsigned char* protocol = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(last_client.get(), &protocol, &size);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(protocol), size), "http/1.1");
  EXPECT_EQ(connect(*context, "x.w.test"), "");
  EXPECT_EQ(connect(*context, "127.0.0.1"), "");
  EXPECT_EQ(SSL_get_servername(last_server.get(), TLSEXT_NAMETYPE_host_name), nullptr);
  EXPECT_EQ(connect(*context, "b.test"), "hostname mismatch");
  EXPECT_EQ(connect(*context, "127.0.0.2"), "IP address mismatch");
  EXPECT_EQ(context->new_session("", "x"), nullptr);
  config.server_name = "a.test";
  EXPECT_EQ(connect(*client(), "b.test"), "");
}

TEST_F(TlsClient, StrangersAreRefusedUnlessVerificationIsOff) {
  const Issued other = issue({.common_name = "other", .authority = true});
  config.ca = folder.chain("other", {&other});
  EXPECT_EQ(connect(*client(), "a.test"), "unable to get local issuer certificate");
  config.ca.clear();
  EXPECT_EQ(connect(*client(), "a.test"), "unable to get local issuer certificate");
  config.verify = false;
  const auto blind = ClientContext::make(config, "u", nullptr).value();
  ASSERT_EQ(blind->warnings().size(), 1U);
  EXPECT_TRUE(blind->warnings()[0].starts_with("[upstream.u.tls] verify = false: "));
  EXPECT_EQ(connect(*blind, "b.test"), "");
  config.verify = true;
  EXPECT_FALSE(ClientContext::make(config, "u", nullptr));
}

TEST_F(TlsClient, SessionsAreResumedForTheSameServerAlone) {
  for (const auto most : {config::TlsVersion::tls12, config::TlsVersion::tls13}) {
    config.max_version = most;
    const auto context = client();
    EXPECT_EQ(connect(*context, "a.test"), "");
    EXPECT_EQ(SSL_session_reused(last_client.get()), 0);
    EXPECT_EQ(connect(*context, "x.w.test"), "");
    EXPECT_EQ(SSL_session_reused(last_client.get()), 0);
    EXPECT_EQ(connect(*context, "a.test"), "");
    EXPECT_EQ(SSL_session_reused(last_client.get()), 1);
  }
}

TEST_F(TlsClient, TheClientsOwnCertificateIsShown) {
  const Issued me = issue({.common_name = "me"}, &root);
  config.cert = folder.chain("me.pem", {&me});
  config.key = folder.key("me.key", me);
  EXPECT_EQ(connect(*client(), "a.test"), "");
  EXPECT_EQ(shown(last_server.get()), "CN=me");
  ASSERT_EQ(::chmod(config.key.c_str(), 0644), 0);
  EXPECT_EQ(client()->warnings().size(), 1U);
  config.key = folder.key("other.key", root);
  const auto wrong = ClientContext::make(config, "u", TrustStore::load(ca).value());
  ASSERT_FALSE(wrong);
  EXPECT_TRUE(wrong.error().starts_with("the key in " + config.key +
                                        " does not belong to the certificate in " + config.cert));
  EXPECT_EQ(TrustStore::load(folder.path("none")).error(),
            folder.path("none") + " cannot be read: No such file or directory");
}

TEST_F(TlsClient, VersionsAreKept) {
  config.max_version = config::TlsVersion::tls12;
  EXPECT_EQ(connect(*client(), "a.test"), "");
  EXPECT_EQ(SSL_version(last_client.get()), TLS1_2_VERSION);
  config.max_version.reset();
  config.min_version = config::TlsVersion::tls13;
  EXPECT_EQ(connect(*client(), "a.test"), "");
  EXPECT_EQ(SSL_version(last_client.get()), TLS1_3_VERSION);
}

TEST(TlsSessionStore, IsBounded) {
  SessionStore store;
  auto session = [] {
    SessionPtr made(SSL_SESSION_new());
    SSL_SESSION_set_protocol_version(made.get(), TLS1_3_VERSION);
    return made;
  };
  for (std::size_t i = 0; i < SessionStore::sessions_max + 3; ++i)
    store.put("a", session());
  for (std::size_t i = 0; i < SessionStore::sessions_max; ++i)
    EXPECT_NE(store.take("a"), nullptr);
  EXPECT_EQ(store.take("a"), nullptr);
  for (std::size_t i = 0; i < SessionStore::servers_max; ++i)
    store.put(std::to_string(i), session());
  EXPECT_EQ(store.take(std::to_string(SessionStore::servers_max - 1)), nullptr);
  EXPECT_NE(store.take("0"), nullptr);
}

}  // namespace
}  // namespace ringside::tls::test
