#include "loading.h"

namespace ringside::config {
namespace {

// One entry, whose keys begin at line 2, and a listener that uses it.
std::string entry(std::string_view keys) {
  return complete("[tls.a]\n" + std::string(keys) +
                  "certificates = [{ cert = \"/c.pem\", key = \"/k.pem\" }]\n"
                  "[listen.s]\naddress = \"127.0.0.1:1\"\ntls = \"a\"\n");
}

Lines of(std::string_view keys) {
  return problems(entry(keys));
}

TEST(ConfigTls, Defaults) {
  const auto snapshot = good(entry(""));
  ASSERT_EQ(snapshot->tls.size(), 1U);
  const Tls& tls = snapshot->tls[0];
  EXPECT_EQ(tls.name, "a");
  EXPECT_EQ(tls.policy, TlsPolicy::intermediate);
  EXPECT_FALSE(tls.min_version || tls.max_version);
  EXPECT_EQ(tls.client_certificate, ClientCertificate::off);
  EXPECT_TRUE(tls.tickets);
  EXPECT_FALSE(tls.early_data);
  EXPECT_EQ(tls.early_data_bytes_max, 16'384U);
  EXPECT_EQ(tls.ticket_rotation_ms, 12U * 3'600'000);
  EXPECT_EQ(tls.ktls, KernelTls::automatic);
  EXPECT_EQ(tls.ocsp, Ocsp::off);
  EXPECT_TRUE(tls.ciphers.empty() && tls.ciphersuites.empty() && tls.groups.empty());
}

TEST(ConfigTls, EveryKeyIsRead) {
  const auto snapshot = good(complete(R"([tls.b]
certificates = [{ cert = "/e.pem", key = "/e.key", ocsp = "/e.ocsp" }, { cert = "/r.pem", key = "/r.key" }]
policy = "modern"
min_version = "1.2"
max_version = "1.3"
ciphers = ["ECDHE+AESGCM", "!aNULL"]
ciphersuites = "TLS_AES_128_GCM_SHA256"
groups = ["X25519", "P-256"]
client_certificate = "required"
client_ca = "/ca.pem"
ticket_keys_file = "/t.key"
ktls = "require"
ocsp = "fetch"
[tls.c]
certificates = [{ cert = "/e.pem", key = "/e.key" }]
client_certificate = "optional"
client_ca = "/ca.pem"
ticket_rotation = "2h"
ktls = "off"
)"));
  ASSERT_EQ(snapshot->tls.size(), 2U);
  const Tls& tls = snapshot->tls[0];
  ASSERT_EQ(tls.certificates.size(), 2U);
  EXPECT_EQ(tls.certificates[0].cert, "/e.pem");
  EXPECT_EQ(tls.certificates[0].key, "/e.key");
  EXPECT_EQ(tls.certificates[0].ocsp, "/e.ocsp");
  EXPECT_EQ(tls.certificates[1].cert, "/r.pem");
  EXPECT_EQ(tls.certificates[1].ocsp, "");
  EXPECT_EQ(tls.policy, TlsPolicy::modern);
  EXPECT_EQ(tls.min_version, TlsVersion::tls12);
  EXPECT_EQ(tls.max_version, TlsVersion::tls13);
  EXPECT_EQ(tls.ciphers, (Lines{"ECDHE+AESGCM", "!aNULL"}));
  EXPECT_EQ(tls.ciphersuites, Lines{"TLS_AES_128_GCM_SHA256"});
  EXPECT_EQ(tls.groups, (Lines{"X25519", "P-256"}));
  EXPECT_EQ(tls.client_certificate, ClientCertificate::required);
  EXPECT_EQ(tls.client_ca, "/ca.pem");
  EXPECT_EQ(tls.ticket_keys_file, "/t.key");
  EXPECT_EQ(tls.ktls, KernelTls::require);
  EXPECT_EQ(tls.ocsp, Ocsp::fetch);
  EXPECT_EQ(snapshot->tls[1].client_certificate, ClientCertificate::optional);
  EXPECT_EQ(snapshot->tls[1].ticket_rotation_ms, 7'200'000U);
  EXPECT_EQ(snapshot->tls[1].ktls, KernelTls::off);
  EXPECT_FALSE(good(entry("tickets = false\n"))->tls[0].tickets);
}

TEST(ConfigTls, RelativePathsBeginAtTheFolderOfTheFile) {
  const std::string text = complete(
      "[tls.a]\ncertificates = [{ cert = \"c.pem\", key = \"../k.pem\", ocsp = \"/o\" }]\n");
  const auto loaded = load_text(text, "/etc/ringside/r.toml", environment_of({}));
  ASSERT_TRUE(loaded.snapshot);
  const TlsCertificate& certificate = loaded.snapshot->tls[0].certificates[0];
  EXPECT_EQ(certificate.cert, "/etc/ringside/c.pem");
  EXPECT_EQ(certificate.key, "/etc/ringside/../k.pem");
  EXPECT_EQ(certificate.ocsp, "/o");
  const auto placeless = load_text(text, "<text>", environment_of({}));
  ASSERT_TRUE(placeless.snapshot);
  EXPECT_EQ(placeless.snapshot->tls[0].certificates[0].cert, "c.pem");
}

TEST(ConfigTls, CertificatesAreNeeded) {
  EXPECT_EQ(problems(complete("[tls.a]\n")),
            Lines{"t.toml:1:1: [tls.a] has no certificates (like certificates = [{ cert = "
                  "\"site.pem\", key = \"site.key\" }])"});
  EXPECT_EQ(problems(complete("[tls.a]\ncertificates = []\n")),
            Lines{"t.toml:2:16: [tls.a] has no certificates (like certificates = [{ cert = "
                  "\"site.pem\", key = \"site.key\" }])"});
  EXPECT_EQ(
      problems(complete("[tls.a]\ncertificates = [{ cert = \"c\" }, { key = \"k\" }, \"x\"]\n")),
      (Lines{"t.toml:2:17: \"certificates\" has an entry without key (like { cert = "
             "\"site.pem\", key = \"site.key\" })",
             "t.toml:2:33: \"certificates\" has an entry without cert (like { cert = "
             "\"site.pem\", key = \"site.key\" })",
             "t.toml:2:48: \"certificates\" must be a list of tables of cert and key, not a "
             "string"}));
  EXPECT_EQ(problems(complete("[tls.a]\ncertificates = [{ cert = \"\", kye = \"k\", key = 1 }]\n")),
            (Lines{"t.toml:2:26: \"cert\" has no usable file name",
                   "t.toml:2:30: unknown key \"kye\" in certificates of [tls.a] (did you mean "
                   "\"key\"?)",
                   "t.toml:2:47: \"key\" must be a string, not a number"}));
}

TEST(ConfigTls, Versions) {
  EXPECT_EQ(of("min_version = \"1.1\"\n"),
            Lines{"t.toml:2:15: \"min_version\" must be \"1.2\" or \"1.3\": TLS 1.0 and 1.1 are no "
                  "longer secure (RFC 8996)"});
  EXPECT_EQ(of("min_version = 1.2\n"), Lines{"t.toml:2:15: \"min_version\" must be one of \"1.2\", "
                                             "\"1.3\", not a decimal number"});
  EXPECT_EQ(of("min_version = \"1.3\"\nmax_version = \"1.2\"\n"),
            Lines{"t.toml:2:15: \"min_version\" \"1.3\" is above max_version, \"1.2\""});
  EXPECT_EQ(of("policy = \"modern\"\nmax_version = \"1.2\"\n"),
            Lines{"t.toml:3:15: \"max_version\" \"1.2\" leaves nothing of policy = \"modern\""});
  EXPECT_EQ(of("policy = \"moderm\"\n"),
            Lines{"t.toml:2:10: \"policy\" cannot be \"moderm\" (did you mean \"modern\"?)"});
}

TEST(ConfigTls, NamesOfAlgorithms) {
  EXPECT_EQ(of("ciphers = \"A:B\"\n"), Lines{"t.toml:2:11: \"ciphers\" has several names in one "
                                             "string: \"A:B\" (write a list, [\"A\", \"B\"])"});
  EXPECT_EQ(of("groups = [\"X25519\", \"P/256\"]\n"),
            Lines{"t.toml:2:21: \"groups\" has \"P/256\", which cannot be a name"});
  EXPECT_EQ(warnings(entry("policy = \"modern\"\nciphers = \"A\"\n")),
            Lines{"t.toml:3:11: \"ciphers\" is for TLS 1.2, which is not in use here (ciphersuites "
                  "is for TLS 1.3)"});
  EXPECT_EQ(warnings(entry("max_version = \"1.2\"\nciphersuites = \"A\"\n")),
            Lines{"t.toml:3:16: \"ciphersuites\" is for TLS 1.3, which is not in use here (ciphers "
                  "is for TLS 1.2)"});
}

TEST(ConfigTls, ClientCertificates) {
  EXPECT_EQ(of("client_ca = \"/x\"\n"),
            Lines{"t.toml:2:13: \"client_ca\" does nothing without client_certificate "
                  "(client_certificate = \"required\" or \"optional\")"});
  EXPECT_EQ(
      of("client_certificate = \"required\"\n"),
      Lines{"t.toml:2:22: \"client_certificate\" needs client_ca, the authorities that client "
            "certificates must come from (like client_ca = \"clients-ca.pem\")"});
  EXPECT_EQ(warnings(entry("client_certificate = \"off\"\nclient_ca = \"/x\"\n")),
            Lines{"t.toml:3:13: \"client_ca\" is not used, since client_certificate is \"off\""});
}

TEST(ConfigTls, EarlyData) {
  const auto snapshot = good(entry("early_data = true\nearly_data_max = \"8KiB\"\n"));
  EXPECT_TRUE(snapshot->tls[0].early_data);
  EXPECT_EQ(snapshot->tls[0].early_data_bytes_max, 8192U);
  EXPECT_EQ(of("early_data_max = \"8KiB\"\n"),
            Lines{"t.toml:2:18: \"early_data_max\" does nothing without early_data = true"});
  EXPECT_EQ(
      of("early_data = true\ntickets = false\n"),
      Lines{"t.toml:2:14: \"early_data\" needs tickets: it comes with a session that is resumed"});
  EXPECT_EQ(of("early_data = true\nmax_version = \"1.2\"\n"),
            Lines{"t.toml:2:14: \"early_data\" needs TLS 1.3, and max_version is \"1.2\""});
}

TEST(ConfigTls, Tickets) {
  EXPECT_EQ(
      of("ticket_rotation = \"200h\"\n"),
      Lines{"t.toml:2:19: \"ticket_rotation\" is too long: tickets are good for seven days at "
            "most (at most \"168h\")"});
  EXPECT_EQ(of("ticket_rotation = \"1h\"\nticket_keys_file = \"/t\"\n"),
            Lines{"t.toml:2:19: \"ticket_rotation\" does nothing with ticket_keys_file (whoever "
                  "writes that file rotates its keys)"});
  EXPECT_EQ(of("tickets = false\nticket_keys_file = \"/t\"\n"),
            Lines{"t.toml:3:20: \"ticket_keys_file\" does nothing with tickets = false"});
  EXPECT_EQ(of("tickets = false\nticket_rotation = \"1h\"\n"),
            Lines{"t.toml:3:19: \"ticket_rotation\" does nothing with tickets = false"});
}

TEST(ConfigTls, OcspResponses) {
  EXPECT_EQ(of("ocsp = \"file\"\n"),
            Lines{"t.toml:2:8: \"ocsp\" cannot be \"file\" (one of \"off\", \"fetch\")"});
  EXPECT_EQ(
      warnings(complete("[tls.a]\ncertificates = [{ cert = \"c\", key = \"k\", ocsp = "
                        "\"o\" }]\nocsp = \"fetch\"\n")),
      (Lines{"t.toml:1:1: no listener uses the entry [tls.a]",
             "t.toml:3:8: \"ocsp\" fetches nothing, since every certificate has an OCSP file"}));
  EXPECT_EQ(warnings(entry("ocsp = \"fetch\"\n")), Lines());
}

TEST(ConfigTls, AllMistakesTogether) {
  EXPECT_EQ(of("ktls = \"on\"\npolcy = 1\nclient_certificate = \"yes\"\n"),
            (Lines{"t.toml:2:8: \"ktls\" cannot be \"on\" (one of \"auto\", \"off\", \"require\")",
                   "t.toml:3:1: unknown key \"polcy\" in [tls.a] (did you mean \"policy\"?)",
                   "t.toml:4:22: \"client_certificate\" cannot be \"yes\" (one of \"off\", "
                   "\"optional\", \"required\")"}));
}

TEST(ConfigTls, AListenerNamesItsEntry) {
  const auto snapshot = good(entry(""));
  ASSERT_EQ(snapshot->listens.size(), 2U);
  EXPECT_EQ(snapshot->listens[0].tls, 0U);
  EXPECT_EQ(snapshot->listens[1].tls, std::nullopt);
  const std::string two = "[tls.site]\ncertificates = [{ cert = \"/c\", key = \"/k\" }]\n";
  EXPECT_EQ(problems(complete(two + "[listen.s]\naddress = \"[::1]:1\"\ntls = \"sita\"\n")),
            Lines{"t.toml:5:7: \"tls\" names \"sita\", but there is no [tls.sita] (did you mean "
                  "\"site\"?)"});
  EXPECT_EQ(problems(complete("[listen.s]\naddress = \"[::1]:1\"\ntls = true\n")),
            Lines{"t.toml:3:7: \"tls\" must be the NAME of a [tls.NAME], not true or false"});
  EXPECT_EQ(warnings(complete(two)), Lines{"t.toml:1:1: no listener uses the entry [tls.site]"});
}

// An upstream whose servers are at line 2.
std::string upstream(std::string_view servers, std::string_view tls = {}) {
  return "[upstream.u]\nservers = " + std::string(servers) + "\n" + std::string(tls) + R"(
[listen.w]
address = "127.0.0.1:0"
[[site]]
hosts = ["base.test"]
[[site.route]]
path = "/*"
upstream = "u"
)";
}

TEST(ConfigTls, ServersOverTls) {
  const auto snapshot = good(upstream(
      R"(["https://a.test:8443", "https://b.test", "https://[::1]", "https://10.0.0.1:1", "c.test:80"])",
      R"([upstream.u.tls]
ca = "/ca.pem"
server_name = "x.test"
cert = "/c.pem"
key = "/k.pem"
min_version = "1.3"
max_version = "1.3"
ktls = "off"
)"));
  ASSERT_EQ(snapshot->upstreams.size(), 1U);
  const Upstream& read = snapshot->upstreams[0];
  ASSERT_EQ(read.servers.size(), 5U);
  EXPECT_EQ(read.servers[0].endpoint.text, "a.test:8443");
  EXPECT_EQ(read.servers[1].endpoint.text, "b.test:443");
  EXPECT_EQ(read.servers[2].endpoint.host, "::1");
  EXPECT_EQ(read.servers[2].endpoint.port, 443);
  EXPECT_EQ(read.servers[3].endpoint.kind, Endpoint::Kind::ipv4);
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_TRUE(read.servers[i].tls) << i;
  EXPECT_FALSE(read.servers[4].tls);
  EXPECT_TRUE(read.tls.verify);
  EXPECT_EQ(read.tls.ca, "/ca.pem");
  EXPECT_EQ(read.tls.server_name, "x.test");
  EXPECT_EQ(read.tls.cert, "/c.pem");
  EXPECT_EQ(read.tls.key, "/k.pem");
  EXPECT_EQ(read.tls.min_version, TlsVersion::tls13);
  EXPECT_EQ(read.tls.max_version, TlsVersion::tls13);
  EXPECT_EQ(read.tls.ktls, KernelTls::off);
}

TEST(ConfigTls, MistakesAboutServersOverTls) {
  EXPECT_EQ(problems(upstream(R"("https://a/")")),
            Lines{"t.toml:2:11: \"servers\" has \"https://a/\", which has a path (did you mean "
                  "\"https://a\"?)"});
  EXPECT_EQ(
      problems(upstream(R"("a:1")", "[upstream.u.tls]\n")),
      Lines{"t.toml:3:1: [upstream.u.tls] does nothing, since no server is spoken to over TLS "
            "(like servers = [\"https://10.0.0.1:8443\"])"});
  EXPECT_EQ(
      problems(upstream(R"("https://a")", "tls = { cert = \"/c\", server_name = \"\" }\n")),
      (Lines{"t.toml:3:16: \"cert\" does nothing without key",
             "t.toml:3:36: \"server_name\" is empty (leave it out to take the server's own)"}));
  EXPECT_EQ(
      problems(upstream(R"("https://a")", "tls = { key = \"/k\", verify = false, ca = \"/x\" }\n")),
      (Lines{"t.toml:3:15: \"key\" does nothing without cert",
             "t.toml:3:42: \"ca\" does nothing with verify = false"}));
  EXPECT_EQ(warnings(upstream(R"("https://a")", "tls = { verify = false }\n")),
            Lines{"t.toml:3:18: \"verify\" is false: whoever is between here and the servers can "
                  "read and change everything"});
}

}  // namespace
}  // namespace ringside::config
