#include "messages.h"

namespace ringside::filter {
namespace {

bool secure(std::string_view fields, bool trusted, std::string_view scheme = "http") {
  Exchange e(fields);
  if (trusted) e.trust_peer();
  e.facts.scheme = scheme;
  return client_is_secure(e.facts, e.arena());
}

TEST(ClientIsSecure, ByItsOwnConnection) {
  EXPECT_FALSE(secure("", false));
  EXPECT_TRUE(secure("", false, "https"));
  EXPECT_FALSE(secure("X-Forwarded-Proto: https\n", false));
  EXPECT_FALSE(secure("Forwarded: proto=https\n", false));
  EXPECT_TRUE(secure("X-Forwarded-Proto: http\n", false, "https"));
}

TEST(ClientIsSecure, ByTheWordOfATrustedProxy) {
  EXPECT_FALSE(secure("", true));
  EXPECT_TRUE(secure("", true, "https"));
  EXPECT_TRUE(secure("X-Forwarded-Proto: https\n", true));
  EXPECT_TRUE(secure("X-Forwarded-Proto: HTTPS , http\n", true));
  EXPECT_TRUE(secure("X-Forwarded-Proto: wss\n", true));
  EXPECT_FALSE(secure("X-Forwarded-Proto: http, https\n", true));
  EXPECT_FALSE(secure("X-Forwarded-Proto: httpsx\n", true));
  // It took what the client sent in clear text to TLS.
  EXPECT_FALSE(secure("X-Forwarded-Proto: http\n", true, "https"));
  EXPECT_TRUE(secure("Forwarded: for=1.1.1.1;Proto=\"https\", proto=http\n", true));
  EXPECT_FALSE(secure("Forwarded: for=1.1.1.1;proto=http, proto=https\n", true));
  EXPECT_FALSE(secure("Forwarded: proto=https;proto=http\n", true));
  EXPECT_FALSE(secure("X-Forwarded-Proto: http\nForwarded: proto=https\n", true));
}

std::string location(std::string_view line, std::string_view host, std::uint16_t port = 443) {
  Exchange e("", line);
  return std::string(https_location(e.facts, host, port, e.arena()));
}

TEST(HttpsLocation, KeepsTheTarget) {
  EXPECT_EQ(location("GET /a%2Fb?x=1&y=?/ HTTP/1.1", "a.test"), "https://a.test/a%2Fb?x=1&y=?/");
  EXPECT_EQ(location("GET //evil.test/x HTTP/1.1", "a.test"), "https://a.test//evil.test/x");
  EXPECT_EQ(location("GET /? HTTP/1.1", "a.test"), "https://a.test/?");
  EXPECT_EQ(location("GET http://a.test:80?q HTTP/1.1", "a.test"), "https://a.test/?q");
  EXPECT_EQ(location("GET http://a.test/x HTTP/1.1", "a.test"), "https://a.test/x");
  EXPECT_EQ(location("OPTIONS * HTTP/1.1", "a.test"), "https://a.test");
  EXPECT_EQ(location("GET / HTTP/1.1", "a.test", 8443), "https://a.test:8443/");
  EXPECT_EQ(location("GET / HTTP/1.1", "[2001:db8::1]", 65535), "https://[2001:db8::1]:65535/");
  EXPECT_EQ(location("GET / HTTP/1.1", "x_y-z.10.test"), "https://x_y-z.10.test/");
}

TEST(HttpsLocation, TakesNoHostThatCouldBeReadInTwoWays) {
  for (std::string_view host :
       {"", "evil.test%2f.a.test", "evil.test;.a.test", "evil.test@a.test", "evil.test\\.a.test",
        "a.test:80", "evil.test,a.test", "a b", "a/b", "a?b", "a#b", "[::1%25eth0]", "A.test"}) {
    EXPECT_EQ(location("GET / HTTP/1.1", host), "") << host;
  }
}

TEST(ResponseFields, HstsOfTheSiteTakesThePlaceOfTheServers) {
  constexpr std::string_view theirs = "Strict-Transport-Security: max-age=1\nContent-Length: 0\n";
  Exchange e;
  e.forwarding.via = false;
  EXPECT_EQ(e.answered(theirs), "Strict-Transport-Security: max-age=1\n");
  e.hsts = {.value = "max-age=9", .secure = true};
  EXPECT_EQ(e.answered(theirs), "Strict-Transport-Security: max-age=9\n");
  EXPECT_EQ(e.answered("Content-Length: 0\n"), "Strict-Transport-Security: max-age=9\n");
  e.edits.set = {{"strict-transport-security", text("max-age=5")}};
  EXPECT_EQ(e.answered(theirs), "strict-transport-security: max-age=5\n");
  e.edits = {};
  e.edits.remove = {"strict-*"};
  EXPECT_EQ(e.answered(theirs), "");
  e.edits = {};
  e.hsts.secure = false;  // RFC 6797 §7.2
  EXPECT_EQ(e.answered(theirs), "");
}

// Says of each variable what it was asked for.
struct Named final : TlsFacts {
  std::string_view value(config::Variable variable) override {
    ++asked;
    return variable == config::Variable::tls_client_subject ? "CN=me"
           : variable == config::Variable::tls_sni          ? "a\r\nx: y"
                                                            : "";
  }
  int asked = 0;
};

TEST(TlsVariables, AreAskedForWhereTheyAreNamed) {
  Exchange e;
  Named tls;
  e.facts.tls = &tls;
  EXPECT_EQ(e.expanded(variable(config::Variable::listener)), "web");
  EXPECT_EQ(tls.asked, 0);
  EXPECT_EQ(e.expanded(variable(config::Variable::tls_client_subject)), "CN=me");
  EXPECT_EQ(e.expanded(variable(config::Variable::tls_sni)), "ax: y");
  EXPECT_GT(tls.asked, 0);
  e.facts.tls = nullptr;
  EXPECT_EQ(e.expanded(variable(config::Variable::tls_client_subject)), "");
  EXPECT_EQ(e.expanded(variable(config::Variable::tls_client_verified)), "false");
}

TEST(TlsVariables, WhatAClientSaysOfItsCertificateDoesNotTravel) {
  constexpr std::string_view fields =
      "Client-Cert: :AA==:\nClient_Cert: :BB==:\nclient-cert-chain: :CC==:\nClient-Certs: 1\n";
  Exchange stranger(fields);
  stranger.forwarding = {.x_forwarded = false, .via = false, .request_id = false};
  EXPECT_EQ(stranger.sent(), "Client-Certs: 1\n");
  Exchange proxy(fields);
  proxy.trust_peer();
  proxy.forwarding = stranger.forwarding;
  EXPECT_EQ(proxy.sent(), "Client-Cert: :AA==:\nclient-cert-chain: :CC==:\nClient-Certs: 1\n");
  // Empty, so there is no field: neither ours nor anybody's.
  proxy.edits.set = {{"client-cert", variable(config::Variable::tls_client_cert)}};
  EXPECT_EQ(proxy.sent(), "client-cert-chain: :CC==:\nClient-Certs: 1\n");
}

}  // namespace
}  // namespace ringside::filter
