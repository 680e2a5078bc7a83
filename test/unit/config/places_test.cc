// Listeners, upstreams and the hosts of sites.
#include "loading.h"

namespace ringside::config {
namespace {

Lines listener(const std::string& address) {
  return problems("[listen.w]\naddress = \"" + address +
                  "\"\n[[site]]\nhosts=\"*\"\nroute=[{respond={}}]\n");
}

Lines server(const std::string& address) {
  return problems(complete("[upstream.x]\nservers = [\"" + address + "\"]\n"));
}

TEST(ConfigListen, Addresses) {
  const auto snapshot =
      good(complete("[listen.a]\naddress = [\"10.0.0.1:80\", \"[::1]:65535\", "
                    "\"unix:/run/x.sock\"]\nbacklog = 7\n"));
  ASSERT_EQ(snapshot->listens.size(), 2U);
  const Listen& listen = snapshot->listens[0];
  EXPECT_EQ(listen.name, "a");
  EXPECT_EQ(listen.backlog, 7U);
  ASSERT_EQ(listen.addresses.size(), 3U);
  EXPECT_EQ(listen.addresses[0].kind, Endpoint::Kind::ipv4);
  EXPECT_EQ(listen.addresses[0].host, "10.0.0.1");
  EXPECT_EQ(listen.addresses[0].port, 80);
  EXPECT_EQ(listen.addresses[0].text, "10.0.0.1:80");
  EXPECT_EQ(listen.addresses[1].kind, Endpoint::Kind::ipv6);
  EXPECT_EQ(listen.addresses[1].host, "::1");
  EXPECT_EQ(listen.addresses[1].port, 65'535);
  EXPECT_EQ(listen.addresses[2].kind, Endpoint::Kind::unix_socket);
  EXPECT_EQ(listen.addresses[2].path, "/run/x.sock");
}

TEST(ConfigListen, Protocols) {
  const auto listen = [](const std::string& line) {
    return good(complete("[listen.a]\naddress = \"127.0.0.1:0\"\n" + line + "\n"))->listens.at(0);
  };
  const Listen neither = listen("");
  EXPECT_TRUE(neither.http1);
  EXPECT_FALSE(neither.http2);
  const Listen both = listen(R"(protocols = ["h2", "http/1.1"])");
  EXPECT_TRUE(both.http1 && both.http2);
  EXPECT_FALSE(both.http1_preferred);
  EXPECT_TRUE(listen(R"(protocols = ["http/1.1", "h2"])").http1_preferred);
  const Listen h2 = listen(R"(protocols = "h2")");
  EXPECT_TRUE(h2.http2);
  EXPECT_FALSE(h2.http1);
  EXPECT_FALSE(listen(R"(protocols = ["http/1.1"])").http2);
}

TEST(ConfigListen, BadProtocols) {
  const auto wrong = [](const std::string& line) {
    return problems(complete("[listen.a]\naddress = \"127.0.0.1:0\"\n" + line + "\n"));
  };
  EXPECT_EQ(wrong("protocols = [\"h3\"]"),
            Lines{"t.toml:3:14: \"protocols\" cannot be \"h3\" (did you mean \"h2\"?)"});
  EXPECT_EQ(wrong("protocols = []"),
            Lines{"t.toml:3:13: \"protocols\" is empty ([\"h2\", \"http/1.1\"])"});
  EXPECT_EQ(wrong("protocols = [\"h2\", \"h2\"]"),
            Lines{"t.toml:3:20: \"protocols\" has \"h2\" twice"});
}

Lines deferred(const std::string& value, const std::string& address = "127.0.0.1:0") {
  return problems(complete("[listen.a]\naddress = \"" + address + "\"\ndefer_accept = " + value));
}

TEST(ConfigListen, DeferAcceptIsWholeSecondsOfTcp) {
  const auto of = [](const std::string& line) {
    return good(complete("[listen.a]\naddress = [\"unix:/s\", \"[::1]:0\"]\n" + line))
        ->listens[0]
        .defer_accept_ms;
  };
  EXPECT_EQ(of(""), 0U);
  EXPECT_EQ(of("defer_accept = \"none\""), 0U);
  EXPECT_EQ(of("defer_accept = \"1s\""), 1000U);
  EXPECT_EQ(of("defer_accept = \"15s\""), 15'000U);
  const std::string at = "t.toml:3:16: \"defer_accept\" ";
  EXPECT_EQ(deferred("\"999ms\""), Lines{at + "must be at least \"1000ms\", not \"999ms\""});
  for (const char* bad : {"\"1500ms\"", "\"16s\""})
    EXPECT_EQ(deferred(bad), Lines{at + "must be whole seconds, at most \"15s\""});
  EXPECT_EQ(deferred("1"), Lines{at + "needs a unit (did you mean \"1s\"?)"});
  EXPECT_EQ(deferred("\"-1s\"").size(), 1U);
  EXPECT_EQ(deferred("\"1s\"", "unix:/s"),
            Lines{at + "is for TCP, but all addresses are unix sockets"});
}

TEST(ConfigListen, TheOrderIsThatOfTheFile) {
  const auto snapshot =
      good(complete("[listen.z]\naddress=\"127.0.0.1:0\"\n[listen.a]\naddress=\"127.0.0.1:0\"\n"));
  ASSERT_EQ(snapshot->listens.size(), 3U);
  EXPECT_EQ(snapshot->listens[0].name, "z");
  EXPECT_EQ(snapshot->listens[1].name, "a");
  EXPECT_EQ(snapshot->listens[2].name, "w");
}

TEST(ConfigListen, BadAddressesGetTheRightOne) {
  const std::string at = "t.toml:2:11: \"address\" has ";
  EXPECT_EQ(listener("localhost:80"),
            Lines{at + "\"localhost:80\", which is a name; a listener takes literal addresses only "
                       "(\"127.0.0.1:80\")"});
  EXPECT_EQ(listener(":80"),
            Lines{at + "\":80\", which has no address (\"0.0.0.0:80\" or \"[::]:80\")"});
  EXPECT_EQ(listener("*:80"),
            Lines{at + "\"*:80\", which has no address (\"0.0.0.0:80\" or \"[::]:80\")"});
  EXPECT_EQ(listener("80"), Lines{at + "\"80\", which has no address (\"0.0.0.0:80\")"});
  EXPECT_EQ(listener("::1"),
            Lines{at + "\"::1\", which needs brackets and a port (\"[::1]:8080\")"});
  EXPECT_EQ(listener("10.0.0.1"),
            Lines{at + "\"10.0.0.1\", which has no port (\"10.0.0.1:8080\")"});
  EXPECT_EQ(listener("[::1]"), Lines{at + "\"[::1]\", which has no port (\"[::1]:8080\")"});
  EXPECT_EQ(
      listener("http://10.0.0.1:80/x"),
      Lines{at + "\"http://10.0.0.1:80/x\", which is a URL, not an address (\"10.0.0.1:80\")"});
  EXPECT_EQ(listener("/run/x.sock"),
            Lines{at + "\"/run/x.sock\", which is no address (\"unix:/run/x.sock\")"});
  for (const char* bad : {"10.0.0.1:65536", "10.0.0.1:+1", "10.0.0.1:", "10.0.0.256:80", "1.2.3:80",
                          "[::g]:80", "[fe80::1%eth0]:80", "unix:", "unix:x", "a b:80"}) {
    EXPECT_EQ(listener(bad).size(), 1U) << bad;
  }
  EXPECT_EQ(listener("unix:/" + std::string(106, 'x')), Lines{});
  EXPECT_EQ(listener("unix:/" + std::string(107, 'x')).size(), 1U);
}

TEST(ConfigListen, NoneAtAllAndNoAddress) {
  EXPECT_EQ(problems("[[site]]\nhosts=\"*\"\nroute=[{respond={}}]\n"),
            Lines{"t.toml: there is no listener (add [listen.web] with an address)"});
  EXPECT_EQ(problems(complete("[listen.x]\n")),
            Lines{"t.toml:1:1: [listen.x] has no address (like address = \"0.0.0.0:8080\")"});
  EXPECT_EQ(problems(complete("[listen.x]\naddress = []\n")),
            Lines{"t.toml:2:11: \"address\" is an empty list"});
  EXPECT_EQ(problems(complete("[listen]\nx = 5\n")),
            Lines{"t.toml:2:5: \"x\" must be a table, [listen.NAME], not a number"});
  EXPECT_EQ(problems(complete("[listen.\"a b\"]\naddress = \"127.0.0.1:0\"\n")).size(), 1U);
}

TEST(ConfigListen, AddressesAreDistinct) {
  EXPECT_EQ(problems(complete(
                "[listen.a]\naddress = [\"[::1]:80\", \"127.0.0.1:80\"]\n[listen.b]\naddress "
                "= \"127.0.0.1:80\"\n")),
            Lines{"t.toml:4:11: the address \"127.0.0.1:80\" is listened on already, at t.toml:2"});
}

TEST(ConfigUpstream, ServersAsStringsAndTables) {
  const auto snapshot = good(complete(R"(
[upstream.a]
servers = ["10.0.0.1:80", { address = "app.internal:8080", weight = 5, max_connections = 9 }, "unix:/x"]
max_connections = 3
balance = "round_robin"
queue = 1
queue_timeout = "2s"
idle_timeout = "3s"
idle_connections = 4
connect_timeout = "5s"
response_header_timeout = "6s"
body_idle_timeout = "8s"
resolve_interval = "7s"
)"));
  const Upstream& upstream = snapshot->upstreams.at(0);
  EXPECT_EQ(upstream.name, "a");
  ASSERT_EQ(upstream.servers.size(), 3U);
  EXPECT_EQ(upstream.servers[0].connections_max, 3U);
  EXPECT_EQ(upstream.servers[1].endpoint.kind, Endpoint::Kind::name);
  EXPECT_EQ(upstream.servers[1].endpoint.host, "app.internal");
  EXPECT_EQ(upstream.servers[1].weight, 5U);
  EXPECT_EQ(upstream.servers[1].connections_max, 9U);
  EXPECT_EQ(upstream.servers[2].endpoint.kind, Endpoint::Kind::unix_socket);
  EXPECT_EQ(upstream.queue_max, 1U);
  EXPECT_EQ(upstream.timeouts.queue_ms, 2'000U);
  EXPECT_EQ(upstream.idle_timeout_ms, 3'000U);
  EXPECT_EQ(upstream.idle_max, 4U);
  EXPECT_EQ(upstream.timeouts.connect_ms, 5'000U);
  EXPECT_EQ(upstream.timeouts.response_header_ms, 6'000U);
  EXPECT_EQ(upstream.timeouts.body_idle_ms, 8'000U);
  EXPECT_EQ(upstream.resolve_interval_ms, 7'000U);
}

TEST(ConfigUpstream, TimeoutsComeFromTheGlobalOnes) {
  const auto snapshot = good(complete("[timeouts]\nconnect = \"9s\"\n"));
  EXPECT_EQ(snapshot->upstreams.at(0).timeouts.connect_ms, 9'000U);
}

TEST(ConfigUpstream, Mistakes) {
  EXPECT_EQ(server("app"),
            Lines{"t.toml:2:12: \"servers\" has \"app\", which has no port (\"app:8080\")"});
  EXPECT_EQ(server("app:0").size(), 1U);
  EXPECT_EQ(server("-app:80").size(), 1U);
  EXPECT_EQ(server("1.2.3.4.5:80").size(), 1U);
  EXPECT_EQ(server("http://app/"), Lines{"t.toml:2:12: \"servers\" has \"http://app/\", which is "
                                         "a URL, not an address (\"app\")"});
  EXPECT_EQ(problems(complete("[upstream.x]\n")),
            Lines{"t.toml:1:1: [upstream.x] has no servers (like servers = [\"10.0.0.1:8080\"])"});
  EXPECT_EQ(problems(complete("[upstream.x]\nservers = []\n")).size(), 1U);
  EXPECT_EQ(problems(complete("[upstream.x]\nservers = [{ weight = 2 }]\n")).size(), 1U);
  EXPECT_EQ(problems(complete("[upstream.x]\nservers = [{ address = \"a:1\", weight = 0 }]\n")),
            Lines{"t.toml:2:40: \"weight\" must be from 1 to 1000, not 0"});
  EXPECT_EQ(problems(complete("[upstream.x]\nservers = [{ adress = \"a:1\" }]\n")).at(1),
            "t.toml:2:14: unknown key \"adress\" in servers of [upstream.x] (did you mean "
            "\"address\"?)");
  EXPECT_EQ(
      problems(complete("[upstream.x]\nservers = \"a:1\"\nbalance = \"round_robbin\"\n")),
      Lines{"t.toml:3:11: \"balance\" cannot be \"round_robbin\" (did you mean \"round_robin\"?)"});
}

TEST(ConfigUpstream, UnusedAndRepeatedOnesAreWarnings) {
  EXPECT_EQ(warnings(complete("[upstream.x]\nservers = [\"a:1\", \"a:1\"]\n")),
            (Lines{"t.toml:1:1: no route uses the upstream \"x\"",
                   "t.toml:2:19: \"servers\" has \"a:1\" twice (give it a weight instead)"}));
}

Lines hosts(const std::string& list) {
  return problems(complete("[[site]]\nhosts = [" + list + "]\nroute = [{ respond = {} }]\n"));
}

TEST(ConfigSite, HostsAreNormalised) {
  const auto snapshot =
      good(complete("[[site]]\nhosts = [\"A.Test.\", \"*.B.test\", \"[::1]\", \"10.0.0.1\", "
                    "\"*\"]\nroute = [{ respond = {} }]\n"));
  EXPECT_EQ(snapshot->sites.at(0).hosts, (Lines{"a.test", "*.b.test", "[::1]", "10.0.0.1", "*"}));
}

TEST(ConfigSite, BadHosts) {
  const std::string at = "t.toml:2:10: \"hosts\" has ";
  EXPECT_EQ(
      hosts("\"a.test:80\""),
      Lines{at + "\"a.test:80\", which has a port; ports belong to [listen.NAME] (\"a.test\")"});
  EXPECT_EQ(hosts("\"*foo\"").size(), 1U);
  EXPECT_EQ(hosts("\"a.*.test\"").size(), 1U);
  EXPECT_EQ(hosts("\".a.test\""),
            Lines{at + "\".a.test\", which begins with a dot (\"*.a.test\")"});
  EXPECT_EQ(hosts("\"::1\""), Lines{at + "\"::1\", which needs brackets (\"[::1]\")"});
  EXPECT_EQ(hosts("\"b\u00fccher.de\"").size(), 1U);
  EXPECT_EQ(hosts("\"http://a.test\"").size(), 1U);
  EXPECT_EQ(hosts("\"a..test\"").size(), 1U);
  EXPECT_EQ(hosts("\"a_b.test\""), Lines{});
  EXPECT_EQ(hosts(""), Lines{"t.toml:2:9: \"hosts\" is an empty list"});
  EXPECT_EQ(hosts("\"a.test\", \"A.test\""), Lines{"t.toml:2:20: \"hosts\" has \"a.test\" twice"});
  EXPECT_EQ(hosts("5"), Lines{"t.toml:2:10: \"hosts\" must be a list of strings, not a number"});
}

TEST(ConfigSite, HostsAreDistinctOnAListener) {
  EXPECT_EQ(hosts("\"base.test\""), Lines{"t.toml:10:10: the host \"base.test\" has a site on "
                                          "listener \"w\" already, at t.toml:2"});
  // The same host on two listeners is two sites.
  const auto snapshot =
      good(complete("[listen.x]\naddress=\"127.0.0.1:0\"\n[[site]]\nhosts=\"a\"\nlisten="
                    "\"x\"\nroute=[{respond={}}]\n"
                    "[[site]]\nhosts=\"a\"\nlisten=\"w\"\nroute=[{respond={}}]\n"));
  EXPECT_EQ(snapshot->sites.at(0).listens, std::vector<std::uint32_t>{0});
  EXPECT_EQ(snapshot->sites.at(1).listens, std::vector<std::uint32_t>{1});
}

TEST(ConfigSite, ListenersByName) {
  EXPECT_EQ(
      problems(complete("[[site]]\nhosts=\"a\"\nlisten=\"ww\"\nroute=[{respond={}}]\n")),
      Lines{"t.toml:3:8: \"listen\" names \"ww\", but there is no such listener (only \"w\")"});
  EXPECT_EQ(warnings("[listen.a]\naddress=\"127.0.0.1:0\"\n[listen.b]\naddress=\"127.0.0.1:0\"\n"
                     "[[site]]\nhosts=\"a\"\nlisten=\"a\"\nroute=[{respond={}}]\n"),
            Lines{"t.toml:3:1: no site uses the listener \"b\""});
}

TEST(ConfigSite, OwnTimeoutsAndLimits) {
  const auto snapshot = good(complete(R"([timeouts]
keep_alive = "9s"
linger = "1s"
[limits]
body_size = "1MiB"
[[site]]
hosts = "a"
timeouts = { keep_alive = "3s" }
limits = { body_size = "none", requests_per_connection = 5 }
route = [{ respond = {} }]
)"));
  const Site& site = snapshot->sites.at(0);
  EXPECT_EQ(site.timeouts.keep_alive_ms, 3'000U);
  EXPECT_EQ(site.timeouts.linger_ms, 1'000U);
  EXPECT_EQ(site.limits.body_bytes_max, 0U);
  EXPECT_EQ(site.limits.requests_per_connection_max, 5U);
  EXPECT_EQ(snapshot->sites.at(1).limits.body_bytes_max, 1U << 20);
  // What counts before the site is known, or elsewhere.
  EXPECT_EQ(
      problems(
          complete("[[site]]\nhosts=\"a\"\ntimeouts={connect=\"1s\"}\nlimits={header_count=5}\n"
                   "route=[{respond={}}]\n"))
          .size(),
      2U);
}

TEST(ConfigSite, MissingParts) {
  EXPECT_EQ(
      problems(complete("[[site]]\nroute=[{respond={}}]\n")),
      Lines{
          "t.toml:1:1: [[site]] has no hosts (like hosts = [\"example.org\"]; \"*\" is any host)"});
  EXPECT_EQ(
      warnings(complete("[[site]]\nhosts=\"a\"\n")),
      Lines{"t.toml:1:1: [[site]] has no routes, so all it says is 404 (add [[site.route]])"});
  EXPECT_EQ(
      warnings("[listen.w]\naddress=\"127.0.0.1:0\"\n"),
      Lines{"t.toml: there is no site, so every request is answered with 404 (add [[site]])"});
  EXPECT_EQ(problems("[site]\nhosts=\"a\"\n[listen.w]\naddress=\"127.0.0.1:0\"\n").at(0),
            "t.toml:1:1: \"site\" must be a list of tables, [[site]], not a table");
}

}  // namespace
}  // namespace ringside::config
