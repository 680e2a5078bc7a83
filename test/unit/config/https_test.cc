#include <algorithm>

#include "loading.h"

namespace ringside::config {
namespace {

// A listener in clear text and one of TLS, and a site of both whose keys begin at line 9.
std::string site(std::string_view keys, std::string_view route_keys = "") {
  return R"([tls.t]
certificates = [{ cert = "/c.pem", key = "/k.pem" }]
[listen.s]
address = "127.0.0.1:1"
tls = "t"
[[site]]
hosts = ["x.test"]
listen = ["w", "s"]
)" + std::string(keys) +
         "\n[[site.route]]\nrespond = { status = 204 }\n" + std::string(route_keys) + complete("");
}

Site first(std::string_view keys, std::string_view route_keys = "") {
  return good(site(keys, route_keys))->sites[0];
}

Lines wrong(std::string_view keys, std::string_view route_keys = "") {
  return problems(site(keys, route_keys));
}

TEST(RedirectHttps, IsReadInEveryForm) {
  EXPECT_FALSE(first("").redirect_https);
  EXPECT_FALSE(first("redirect_https = false").redirect_https->on);
  const auto plain = first("redirect_https = true").redirect_https.value();
  EXPECT_TRUE(plain.on);
  EXPECT_EQ(plain.status, 308);
  EXPECT_EQ(plain.port, 443);
  const auto table = first("redirect_https = { status = 301, port = 8443 }").redirect_https.value();
  EXPECT_TRUE(table.on);
  EXPECT_EQ(table.status, 301);
  EXPECT_EQ(table.port, 8443);
  EXPECT_TRUE(good(complete("[listen.p]\naddress = \"127.0.0.1:2\"\nredirect_https = true\n"))
                  ->listens[0]
                  .redirect_https.on);
}

TEST(RedirectHttps, RoutesMayStayInClearText) {
  EXPECT_TRUE(first("").routes[0].redirect_https);
  EXPECT_FALSE(first("", "redirect_https = false\n").routes[0].redirect_https);
  for (std::string_view path : {"/.well-known/acme-challenge/*", "/.well-known/acme-challenge",
                                "/.well-known/acme-challenge/x"}) {
    const std::string key = "path = \"" + std::string(path) + "\"\n";
    EXPECT_FALSE(first("", key).routes[0].redirect_https) << path;
    EXPECT_TRUE(first("", key + "redirect_https = true\n").routes[0].redirect_https) << path;
  }
  EXPECT_TRUE(first("", "path = \"/.well-known/acme-challenges\"\n").routes[0].redirect_https);
  EXPECT_TRUE(first("", "path = \"/.well-known/*\"\n").routes[0].redirect_https);
}

TEST(RedirectHttps, Mistakes) {
  EXPECT_EQ(wrong("redirect_https = 301"),
            Lines{"t.toml:9:18: \"redirect_https\" must be true, false or a table, not a number "
                  "(like { status = 301, port = 8443 })"});
  EXPECT_EQ(wrong("redirect_https = \"yes\""),
            Lines{"t.toml:9:18: \"redirect_https\" must be true or false, not \"yes\""});
  EXPECT_EQ(wrong("redirect_https = { status = 303 }"),
            Lines{"t.toml:9:29: \"status\" cannot be 303 (one of 301, 302, 307, 308)"});
  EXPECT_EQ(wrong("redirect_https = { port = 0 }"),
            Lines{"t.toml:9:27: \"port\" must be from 1 to 65535, not 0"});
  EXPECT_EQ(wrong("redirect_https = { ports = 1 }"),
            Lines{"t.toml:9:20: unknown key \"ports\" in redirect_https (did you mean \"port\"?)"});
  EXPECT_EQ(
      problems(complete("[tls.t]\ncertificates = [{ cert = \"/c.pem\", key = \"/k.pem\" }]\n"
                        "[listen.s]\naddress = \"127.0.0.1:1\"\ntls = \"t\"\nredirect_https = "
                        "true\n")),
      Lines{"t.toml:6:18: \"redirect_https\" is for a listener in clear text, but this one speaks "
            "TLS (leave one of tls and redirect_https out)"});
}

TEST(Hsts, IsReadInEveryForm) {
  EXPECT_EQ(first("").hsts, "");
  EXPECT_EQ(first("hsts = false").hsts, "");
  EXPECT_EQ(first("hsts = true").hsts, "max-age=31536000");
  EXPECT_EQ(first("hsts = \"12h\"").hsts, "max-age=43200");
  EXPECT_EQ(first("hsts = \"0s\"").hsts, "max-age=0");
  EXPECT_EQ(first("hsts = { include_subdomains = true }").hsts,
            "max-age=31536000; includeSubDomains");
  EXPECT_EQ(first("hsts = { max_age = \"730d\", include_subdomains = true, preload = true }").hsts,
            "max-age=63072000; includeSubDomains; preload");
}

TEST(Hsts, Mistakes) {
  EXPECT_EQ(wrong("hsts = 31536000"),
            Lines{"t.toml:9:8: \"hsts\" must be true, false, a time or a table, not a number (like "
                  "\"365d\")"});
  EXPECT_EQ(wrong("hsts = \"1y\""),
            Lines{"t.toml:9:8: \"hsts\" must be a time, not \"1y\" (like \"1d\"; the units are s, "
                  "m, h and d)"});
  EXPECT_EQ(wrong("hsts = \"4000d\""),
            Lines{"t.toml:9:8: \"hsts\" is too long: \"4000d\" (at most \"3650d\")"});
  EXPECT_EQ(wrong("hsts = \"true\""), Lines{"t.toml:9:8: \"hsts\" must be true or false, not "
                                            "\"true\" (write it without quotes: true)"});
  EXPECT_EQ(wrong("hsts = { preload = true }"),
            Lines{"t.toml:9:20: \"preload\" needs include_subdomains = true (hstspreload.org)"});
  EXPECT_EQ(wrong("hsts = { max_age = \"364d\", include_subdomains = true, preload = true }"),
            Lines{"t.toml:9:65: \"preload\" needs a max_age of at least \"365d\" "
                  "(hstspreload.org)"});
}

TEST(Https, WarnsOfWhatCannotWork) {
  EXPECT_EQ(warnings(site("redirect_https = true\nhsts = true")), Lines());
  const std::string clear =
      "[[site]]\nhosts = [\"x.test\"]\nredirect_https = true\nhsts = true\n[[site.route]]\n"
      "respond = { status = 204 }\n";
  const auto all = warnings(clear + complete(""));
  ASSERT_EQ(all.size(), 2U);
  EXPECT_TRUE(
      all[0].starts_with("t.toml:3:18: \"redirect_https\" sends clients to https, but no "
                         "listener of this site speaks TLS ("));
  EXPECT_TRUE(
      all[1].starts_with("t.toml:4:8: \"hsts\" is never sent, since no listener of this "
                         "site speaks TLS ("));
  EXPECT_EQ(warnings(clear + complete("[forwarding]\ntrusted_proxies = \"10.0.0.1\"\n")), Lines());
  EXPECT_EQ(
      warnings(complete("[listen.p]\naddress = \"127.0.0.1:2\"\nredirect_https = true\n")).size(),
      1U);
}

TEST(Https, WarnsOfVariablesThatSayNothing) {
  const std::string_view route = "request_headers.set.x-a = \"{tls_client_cn}\"\n";
  const std::string text = site("", route);
  const auto all = warnings(text);
  const auto about = [](const Lines& lines) {
    return std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
      return line.starts_with("t.toml:10:1: the \"{tls_client_...}\" of this route say nothing");
    });
  };
  EXPECT_EQ(about(all), 1);
  const std::string asking = "client_certificate = \"optional\"\nclient_ca = \"/ca.pem\"\n";
  std::string asked = text;
  asked.insert(asked.find("[listen.s]"), asking);
  EXPECT_EQ(warnings(asked),
            Lines{"t.toml:14:1: \"request_headers\" does nothing in a route without upstream"});
  EXPECT_EQ(about(warnings(site("", "request_headers.set.x-a = \"{tls_sni}\"\n"))), 0);
}

TEST(TlsVariables, AreKnown) {
  const Site got =
      first("", "response_headers = { set = { \"x-a\" = \"{tls_version}{tls_client_cert}\" } }\n");
  const Template& text = got.routes[0].response_headers.set[0].second;
  ASSERT_EQ(text.size(), 2U);
  EXPECT_EQ(text[0].variable, Variable::tls_version);
  EXPECT_EQ(text[1].variable, Variable::tls_client_cert);
  EXPECT_TRUE(is_of_client_certificate(text[1].variable));
  EXPECT_FALSE(is_of_client_certificate(text[0].variable));
}

}  // namespace
}  // namespace ringside::config
