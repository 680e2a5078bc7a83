#include "ringside/tls/server_context.h"

#include "ringside/tls/peer_identity.h"

#include "authority.h"
#include "handshake.h"
#include "name_index.h"

namespace ringside::tls::test {
namespace {

class TlsServer : public ::testing::Test {
 protected:
  TlsServer() { tls.name = "a"; }

  void add(const std::string& name, const Issued& issued) {
    tls.certificates.push_back(folder.files(name, issued));
  }
  std::shared_ptr<const Credentials> load() {
    auto loaded = load_credentials(tls, now());
    EXPECT_EQ(loaded.errors, std::vector<std::string>());
    return loaded.credentials;
  }
  // A server of the entry as it is now.
  std::unique_ptr<ServerContext> make(std::shared_ptr<const TicketKeys> keys = nullptr,
                                      ServerOptions options = {}) {
    auto made = ServerContext::make(load(), std::move(keys), std::move(options));
    EXPECT_TRUE(made) << made.error();
    return std::move(*made);
  }
  Handshake meet(const ServerContext& server, Client& client, const std::string& name = {},
                 SSL_SESSION* resumed = nullptr) {
    last_client = client.session(name);
    if (resumed != nullptr) SSL_set_session(last_client.get(), resumed);
    last_server = server.new_session();
    return shake(last_client.get(), last_server.get());
  }
  std::string shown_for(const ServerContext& server, Client& client, const std::string& name) {
    return meet(server, client, name).done ? shown(last_client.get()) : "failed";
  }
  // The OCSP response that comes with the certificate of a.test; empty: there is none.
  Der stapled(const ServerContext& server, Client& client) {
    last_client = client.session("a.test");
    SSL_set_tlsext_status_type(last_client.get(), TLSEXT_STATUSTYPE_ocsp);
    last_server = server.new_session();
    EXPECT_TRUE(shake(last_client.get(), last_server.get()).done);
    const unsigned char* bytes = nullptr;
    const long size = SSL_get_tlsext_status_ocsp_resp(last_client.get(), &bytes);
    return {bytes, bytes + std::max(size, 0L)};
  }
  std::string cipher() const { return SSL_get_cipher_name(last_client.get()); }
  bool resumed() const { return SSL_session_reused(last_client.get()) == 1; }

  Folder folder;
  Issued root = issue({.common_name = "root", .authority = true});
  config::Tls tls;
  SslPtr last_server;
  SslPtr last_client;
};

TEST_F(TlsServer, IntermediateTakesBothVersions) {
  add("s", issue({.common_name = "s"}));
  const auto server = make();
  Client client;
  ASSERT_TRUE(meet(*server, client).done);
  EXPECT_EQ(SSL_version(last_client.get()), TLS1_3_VERSION);
  EXPECT_EQ(SSL_get_negotiated_group(last_client.get()), NID_X25519);
  Client old;
  SSL_CTX_set_max_proto_version(old.context(), TLS1_2_VERSION);
  SSL_CTX_set_cipher_list(old.context(),
                          "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES128-GCM-SHA256");
  ASSERT_TRUE(meet(*server, old).done);
  EXPECT_EQ(cipher(), "ECDHE-ECDSA-CHACHA20-POLY1305");  // the client's preference counts
  EXPECT_EQ(SSL_get_secure_renegotiation_support(last_client.get()), 1);
  SSL_CTX_set_cipher_list(old.context(), "ECDHE-ECDSA-AES128-SHA256");
  EXPECT_EQ(meet(*server, old).server, "no shared cipher");
  Client ancient;
  SSL_CTX_set_security_level(ancient.context(), 0);
  SSL_CTX_set_min_proto_version(ancient.context(), TLS1_VERSION);
  SSL_CTX_set_max_proto_version(ancient.context(), TLS1_1_VERSION);
  EXPECT_EQ(meet(*server, ancient).server, "unsupported protocol");
}

TEST_F(TlsServer, ModernTakesTls13Alone) {
  add("s", issue({.common_name = "s"}));
  tls.policy = config::TlsPolicy::modern;
  const auto server = make();
  Client client;
  EXPECT_TRUE(meet(*server, client).done);
  SSL_CTX_set_max_proto_version(client.context(), TLS1_2_VERSION);
  EXPECT_EQ(meet(*server, client).server, "unsupported protocol");
}

TEST_F(TlsServer, ExplicitChoicesGoBeforeThePolicy) {
  add("s", issue({.common_name = "s"}));
  tls.policy = config::TlsPolicy::modern;
  tls.min_version = config::TlsVersion::tls12;
  tls.ciphers = {"ECDHE-ECDSA-AES256-GCM-SHA384"};
  tls.ciphersuites = {"TLS_CHACHA20_POLY1305_SHA256"};
  tls.groups = {"P-384"};
  const auto server = make();
  Client client;
  ASSERT_TRUE(meet(*server, client).done);
  EXPECT_EQ(cipher(), "TLS_CHACHA20_POLY1305_SHA256");
  EXPECT_EQ(SSL_get_negotiated_group(last_client.get()), NID_secp384r1);
  SSL_CTX_set_max_proto_version(client.context(), TLS1_2_VERSION);
  ASSERT_TRUE(meet(*server, client).done);
  EXPECT_EQ(cipher(), "ECDHE-ECDSA-AES256-GCM-SHA384");
  tls.max_version = config::TlsVersion::tls12;
  Client newest;
  ASSERT_TRUE(meet(*make(), newest).done);
  EXPECT_EQ(SSL_version(last_client.get()), TLS1_2_VERSION);
}

TEST_F(TlsServer, RenegotiationIsRefused) {
  add("s", issue({.common_name = "s"}));
  const auto server = make();
  Client client;
  SSL_CTX_set_max_proto_version(client.context(), TLS1_2_VERSION);
  ASSERT_TRUE(meet(*server, client).done);
  ASSERT_EQ(SSL_renegotiate(last_client.get()), 1);
  SSL_do_handshake(last_client.get());
  char byte = 0;
  SSL_read(last_server.get(), &byte, 1);
  EXPECT_LE(SSL_do_handshake(last_client.get()), 0);
  EXPECT_EQ(take_reason(), "no renegotiation");
}

TEST_F(TlsServer, TheNameChoosesTheCertificate) {
  add("default", issue({.common_name = "default", .names = {"DNS:d.test"}}));
  add("wild", issue({.common_name = "wild", .names = {"DNS:*.w.test"}}));
  add("exact", issue({.common_name = "exact", .names = {"DNS:e.w.test"}}));
  const auto server = make();
  Client client;
  EXPECT_EQ(shown_for(*server, client, ""), "CN=default");
  EXPECT_EQ(shown_for(*server, client, "unknown.test"), "CN=default");
  EXPECT_EQ(shown_for(*server, client, "D.Test"), "CN=default");
  EXPECT_EQ(shown_for(*server, client, "x.w.test"), "CN=wild");
  EXPECT_EQ(shown_for(*server, client, "E.w.test"), "CN=exact");
  EXPECT_EQ(shown_for(*server, client, "e.w.test."), "CN=exact");
  EXPECT_EQ(shown_for(*server, client, "x.y.w.test"), "CN=default");
  EXPECT_EQ(shown_for(*server, client, "w.test"), "CN=default");
}

TEST_F(TlsServer, EcdsaAndRsaSideBySide) {
  add("ec", issue({.common_name = "ec", .names = {"DNS:a.test"}}));
  add("rsa", issue({.common_name = "rsa", .names = {"DNS:a.test"}, .kind = KeyKind::rsa}));
  const auto server = make();
  for (const char* name : {"", "a.test"}) {
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
      Client client;
      SSL_CTX_set_max_proto_version(client.context(), version);
      EXPECT_EQ(shown_for(*server, client, name), "CN=ec");
      SSL_CTX_set1_sigalgs_list(client.context(), "RSA-PSS+SHA256:RSA+SHA256");
      EXPECT_EQ(shown_for(*server, client, name), "CN=rsa");
    }
  }
}

TEST_F(TlsServer, AWildcardFillsInForAMissingTypeOfKey) {
  add("wild", issue({.common_name = "wild", .names = {"DNS:*.w.test"}, .kind = KeyKind::rsa}));
  add("exact", issue({.common_name = "exact", .names = {"DNS:e.w.test"}}));
  const auto server = make();
  Client client;
  EXPECT_EQ(shown_for(*server, client, "e.w.test"), "CN=exact");
  SSL_CTX_set1_sigalgs_list(client.context(), "RSA-PSS+SHA256:RSA+SHA256");
  EXPECT_EQ(shown_for(*server, client, "e.w.test"), "CN=wild");
}

TEST_F(TlsServer, Alpn) {
  add("s", issue({.common_name = "s"}));
  const auto server = make(nullptr, {.protocols = {"h2", "http/1.1"}});
  auto chosen = [&](const std::string& offered) -> std::string {
    Client client;
    if (!offered.empty()) {
      SSL_CTX_set_alpn_protos(client.context(),
                              reinterpret_cast<const unsigned char*>(offered.data()),
                              static_cast<unsigned>(offered.size()));
    }
    const Handshake result = meet(*server, client);
    if (!result.done) return result.client;
    const unsigned char* protocol = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(last_client.get(), &protocol, &size);
    return size == 0 ? "none" : std::string(reinterpret_cast<const char*>(protocol), size);
  };
  EXPECT_EQ(chosen(""), "none");
  EXPECT_EQ(chosen("\x08http/1.1\x02h2"), "h2");
  EXPECT_EQ(chosen("\x08http/1.1"), "http/1.1");
  EXPECT_EQ(chosen("\x08http/1.0\x08http/1.1"), "http/1.1");
  EXPECT_EQ(chosen("\x08http/1.0"), "tlsv1 alert no application protocol");
  EXPECT_EQ(chosen("\x02h3"), "tlsv1 alert no application protocol");
}

TEST_F(TlsServer, TicketsAreGoodOnEveryRing) {
  add("s", issue({.common_name = "s"}));
  const std::shared_ptr<TicketKeys> keys =
      TicketKeys::random(load()->session_binding, 1000, 0).value();
  const auto one = make(keys);
  const auto two = make(keys, {.library = LibraryContext::own()});
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    Client client;
    SSL_CTX_set_max_proto_version(client.context(), version);
    ASSERT_TRUE(meet(*one, client).done);
    const SessionPtr first = client.take_ticket();
    ASSERT_TRUE(first);
    EXPECT_EQ(SSL_SESSION_get_ticket_lifetime_hint(first.get()), 43'200U);
    ASSERT_TRUE(meet(*two, client, {}, first.get()).done);
    EXPECT_TRUE(resumed());
  }
}

TEST_F(TlsServer, RotationRenewsTicketsAndForgetsOldOnes) {
  add("s", issue({.common_name = "s"}));
  const std::shared_ptr<TicketKeys> keys =
      TicketKeys::random(load()->session_binding, 1000, 0).value();
  const auto server = make(keys);
  Client client;
  // TLS 1.2, where a ticket is renewed only if the server wants it.
  SSL_CTX_set_max_proto_version(client.context(), TLS1_2_VERSION);
  ASSERT_TRUE(meet(*server, client).done);
  auto session = [&] { return SessionPtr(SSL_get1_session(last_client.get())); };
  auto ticket_of = [](const SessionPtr& given) {
    const unsigned char* bytes = nullptr;
    std::size_t size = 0;
    SSL_SESSION_get0_ticket(given.get(), &bytes, &size);
    return std::vector<unsigned char>(bytes, bytes + size);
  };
  const SessionPtr first = session();
  ASSERT_TRUE(meet(*server, client, {}, first.get()).done);
  EXPECT_TRUE(resumed());
  EXPECT_EQ(ticket_of(session()), ticket_of(first));
  ASSERT_TRUE(keys->rotate(1000));
  ASSERT_TRUE(meet(*server, client, {}, first.get()).done);
  EXPECT_TRUE(resumed());
  const SessionPtr renewed = session();
  EXPECT_NE(ticket_of(renewed), ticket_of(first));
  ASSERT_TRUE(keys->rotate(2000));
  ASSERT_TRUE(meet(*server, client, {}, first.get()).done);
  EXPECT_FALSE(resumed());
  ASSERT_TRUE(meet(*server, client, {}, renewed.get()).done);
  EXPECT_TRUE(resumed());
}

TEST_F(TlsServer, NoTicketsWhenTheyAreOff) {
  add("s", issue({.common_name = "s"}));
  const std::shared_ptr<TicketKeys> keys =
      TicketKeys::random(load()->session_binding, 1000, 0).value();
  tls.tickets = false;
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    Client client;
    SSL_CTX_set_max_proto_version(client.context(), version);
    const auto server = make(keys);
    ASSERT_TRUE(meet(*server, client).done);
    const SessionPtr session = client.take_ticket();
    if (!session) continue;
    EXPECT_EQ(SSL_SESSION_has_ticket(session.get()), 0);
    ASSERT_TRUE(meet(*server, client, {}, session.get()).done);
    EXPECT_FALSE(resumed());
  }
}

// The same file of keys, and even the same keys: the rules about clients decide.
TEST_F(TlsServer, NoResumptionAcrossEntries) {
  add("s", issue({.common_name = "s"}));
  const auto open_entry = load();
  tls.name = "b";
  tls.client_certificate = config::ClientCertificate::optional;
  tls.client_ca = folder.chain("ca", {&root});
  const auto asking_entry = load();
  const std::string file = folder.write("keys", std::string(80, 'k'));
  auto keys_for = [&](const Credentials& entry) -> std::shared_ptr<TicketKeys> {
    return TicketKeys::from_file(entry.session_binding, file).value();
  };
  for (const bool same_keys : {false, true}) {
    const auto keys = keys_for(*open_entry);
    const auto open = ServerContext::make(open_entry, keys).value();
    const auto asking =
        ServerContext::make(asking_entry, same_keys ? keys : keys_for(*asking_entry)).value();
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
      Client client;
      SSL_CTX_set_max_proto_version(client.context(), version);
      ASSERT_TRUE(meet(*open, client).done);
      const SessionPtr ticket = client.take_ticket();
      ASSERT_TRUE(ticket);
      ASSERT_TRUE(meet(*asking, client, {}, ticket.get()).done);
      EXPECT_FALSE(resumed()) << same_keys << version;
      ASSERT_TRUE(meet(*open, client, {}, ticket.get()).done);
      EXPECT_TRUE(resumed()) << same_keys << version;
    }
  }
}

// What stands between the colons.
Der der_in_field(std::string_view field) {
  if (field.size() < 6 || !field.starts_with(':') || !field.ends_with(':')) return {};
  Der der(field.size());
  const int size =
      EVP_DecodeBlock(der.data(), reinterpret_cast<const unsigned char*>(field.data() + 1),
                      static_cast<int>(field.size() - 2));
  const bool two = field.ends_with("==:");
  const bool one = field.ends_with("=:");
  der.resize(size < 0 ? 0 : static_cast<std::size_t>(size) - (two ? 2U : one ? 1U : 0U));
  return der;
}

TEST_F(TlsServer, ClientCertificates) {
  add("s", issue({.common_name = "s"}));
  tls.client_ca = folder.chain("ca", {&root});
  tls.client_certificate = config::ClientCertificate::required;
  const auto required = make();
  tls.client_certificate = config::ClientCertificate::optional;
  const auto optional = make();
  const Issued stranger_root = issue({.common_name = "stranger", .authority = true});
  const Issued stranger = issue({.common_name = "me"}, &stranger_root);
  const Issued me =
      issue({.common_name = "me",
             .names = {"DNS:m.test", "IP:10.0.0.1", "URI:spiffe://t/a b\\c", "email:a@b.test"}},
            &root);
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    Client nobody;
    SSL_CTX_set_max_proto_version(nobody.context(), version);
    EXPECT_EQ(meet(*required, nobody).server, "peer did not return a certificate");
    EXPECT_TRUE(meet(*optional, nobody).done);
    EXPECT_FALSE(Peer(last_server.get()).verified());
    EXPECT_EQ(Peer(last_server.get()).identity(), nullptr);
    EXPECT_EQ(Peer(last_server.get()).certificate_field(), "");
    Client wrong;
    SSL_CTX_set_max_proto_version(wrong.context(), version);
    wrong.use(stranger);
    EXPECT_EQ(meet(*required, wrong).server, "certificate verify failed");
    EXPECT_EQ(meet(*optional, wrong).server, "certificate verify failed");
    Client right;
    SSL_CTX_set_max_proto_version(right.context(), version);
    right.use(me);
    EXPECT_TRUE(meet(*optional, right).done);
    EXPECT_TRUE(Peer(last_server.get()).verified());
    ASSERT_TRUE(meet(*required, right).done);
    ASSERT_EQ(sk_X509_NAME_num(SSL_get_client_CA_list(last_client.get())), 1);
    Peer peer(last_server.get());
    // As when the kernel takes over.
    last_server.reset();
    const PeerIdentity* identity = peer.identity();
    ASSERT_NE(identity, nullptr);
    EXPECT_EQ(identity->subject, "CN=me");
    EXPECT_EQ(identity->common_name, "me");
    EXPECT_EQ(identity->issuer, "CN=root");
    EXPECT_EQ(identity->names,
              "DNS:m.test, IP:10.0.0.1, URI:spiffe://t/a\\20b\\5Cc, email:a@b.test");
    EXPECT_EQ(identity->dns, "m.test");
    EXPECT_EQ(identity->uri, "spiffe://t/a\\20b\\5Cc");
    EXPECT_EQ(identity->email, "a@b.test");
    EXPECT_EQ(identity->fingerprint.size(), 64U);
    EXPECT_FALSE(identity->serial.empty());
    EXPECT_EQ(peer.identity(), identity);
    EXPECT_EQ(der_in_field(peer.certificate_field()), der_of(me.certificate.get()));
  }
}

TEST_F(TlsServer, ThePeerRemembersWhatWasAgreedOn) {
  add("s", issue({.common_name = "s"}));
  const auto server = make();
  Client client;
  SSL_CTX_set_max_proto_version(client.context(), TLS1_2_VERSION);
  ASSERT_TRUE(meet(*server, client, "WWW.A.test.").done);
  const Peer peer(last_server.get());
  EXPECT_EQ(peer.version(), "TLSv1.2");
  EXPECT_TRUE(peer.cipher().starts_with("ECDHE-"));
  EXPECT_EQ(peer.server_name(), "www.a.test");
  EXPECT_TRUE(peer.names_host());
  EXPECT_EQ(peer.alpn(), "");
  ASSERT_TRUE(meet(*server, client, "a\r\nx: y").done);
  EXPECT_FALSE(Peer(last_server.get()).names_host());
  Client newer;
  ASSERT_TRUE(meet(*server, newer).done);
  const Peer nameless(last_server.get());
  EXPECT_EQ(nameless.version(), "TLSv1.3");
  EXPECT_EQ(nameless.server_name(), "");
  EXPECT_FALSE(nameless.names_host());
}

TEST_F(TlsServer, TheIdentityIsKnownInAResumedSession) {
  add("s", issue({.common_name = "s"}));
  tls.client_ca = folder.chain("ca", {&root});
  tls.client_certificate = config::ClientCertificate::required;
  const std::shared_ptr<TicketKeys> keys =
      TicketKeys::random(load()->session_binding, 1000, 0).value();
  const auto server = make(keys);
  Client client;
  client.use(issue({.common_name = "me"}, &root));
  ASSERT_TRUE(meet(*server, client).done);
  const SessionPtr ticket = client.take_ticket();
  ASSERT_TRUE(meet(*server, client, {}, ticket.get()).done);
  ASSERT_TRUE(resumed());
  Peer peer(last_server.get());
  ASSERT_NE(peer.identity(), nullptr);
  EXPECT_EQ(peer.identity()->subject, "CN=me");
}

TEST_F(TlsServer, StaplesGoWithTheirCertificate) {
  const Issued ec = issue({.common_name = "ec", .names = {"DNS:a.test"}}, &root);
  const Issued rsa =
      issue({.common_name = "rsa", .names = {"DNS:a.test"}, .kind = KeyKind::rsa}, &root);
  add("ec", ec);
  add("rsa", rsa);
  const std::string response = ocsp_response(ec, root, 3600);
  tls.certificates[0].ocsp = folder.write("ocsp", response);
  const auto server = make();
  Client client;
  EXPECT_EQ(stapled(*server, client), Der(response.begin(), response.end()));
  SSL_CTX_set1_sigalgs_list(client.context(), "RSA-PSS+SHA256");
  EXPECT_EQ(stapled(*server, client), Der());
}

TEST_F(TlsServer, WhatIsFetchedIsStapledFromThenOnAndUntilItExpires) {
  const Issued site = issue(
      {.common_name = "site", .names = {"DNS:a.test"}, .responders = {"http://o.test/"}}, &root);
  tls.certificates.push_back(folder.files("site", site, &root));
  tls.ocsp = config::Ocsp::fetch;
  const auto credentials = load_credentials(tls, now()).credentials;
  ASSERT_TRUE(credentials);
  const auto server = ServerContext::make(credentials, nullptr).value();
  Client client;
  StapleSlot& slot = *credentials->certificates[0].staple;
  EXPECT_EQ(stapled(*server, client), Der());
  slot.put(std::make_shared<const Staple>(Staple{{1, 2}, now() - 10, now() + 3600}));
  EXPECT_EQ(stapled(*server, client), (Der{1, 2}));
  slot.put(std::make_shared<const Staple>(Staple{{3}, now() - 10, now() + 3600}));
  EXPECT_EQ(stapled(*server, client), Der{3});
  slot.put(std::make_shared<const Staple>(Staple{{4}, now() - 10, now()}));
  EXPECT_EQ(stapled(*server, client), Der());
  slot.put(nullptr);
  EXPECT_EQ(stapled(*server, client), Der());
}

TEST(TlsNameIndex, SetsOfCertificates) {
  std::vector<Certificate> all(3);
  all[0].names = {"a.test", "b.test"};
  all[1].names = {"b.test", "*.c.test"};
  all[2].names = {"b.test"};
  all[0].key_type = all[2].key_type = 1;
  all[1].key_type = 2;
  const NameIndex index(all);
  using Sets = std::vector<std::vector<std::uint32_t>>;
  EXPECT_EQ(index.sets(), (Sets{{0}, {0, 1}, {1}}));
  EXPECT_EQ(index.find("a.test"), 0);
  EXPECT_EQ(index.find("B.TEST"), 1);
  EXPECT_EQ(index.find("x.c.test"), 2);
  EXPECT_EQ(index.find("*.c.test"), 2);
  EXPECT_EQ(index.find("c.test"), -1);
  EXPECT_EQ(index.find(".c.test"), -1);
  EXPECT_EQ(index.find(""), -1);
  EXPECT_EQ(index.find("."), -1);
  EXPECT_EQ(index.find(std::string(300, 'a')), -1);
  EXPECT_EQ(index.unused(), std::vector<std::uint32_t>{2});
}

}  // namespace
}  // namespace ringside::tls::test
