#include "loading.h"

namespace ringside::config {
namespace {

TEST(ConfigSettings, DefaultsWhenNothingIsSet) {
  const auto snapshot = good(complete(""));
  EXPECT_EQ(snapshot->file, "t.toml");
  EXPECT_EQ(snapshot->server.rings, 0U);
  EXPECT_EQ(snapshot->server.buffer_bytes, 16'384U);
  EXPECT_EQ(snapshot->timeouts.keep_alive_ms, 75'000U);
  EXPECT_EQ(snapshot->limits.header_count_max, 100U);
  EXPECT_EQ(snapshot->log.access, Log::Access::json);
  EXPECT_TRUE(snapshot->forwarding.x_forwarded);
  EXPECT_FALSE(snapshot->forwarding.forwarded);
}

TEST(ConfigSettings, EveryKeyIsRead) {
  const auto snapshot = good(complete(R"(
[server]
rings = 3
ring_entries = 2048
buffers = 512
buffer_bytes = "32KiB"
name = "edge-1"
body_mover = "zero_copy"
batch_wait = false
large_buffers = 32
zero_copy_bytes_min = 65536
[timeouts]
client_header = "1s"
keep_alive = "2m"
body_idle = "none"
body_grace = "9s"
connect = "250ms"
response_header = "3s"
queue = "4s"
tunnel_idle = "2h"
linger = "0s"
drain = "7s"
[limits]
request_line = "4KiB"
header_bytes = "16KiB"
header_count = 50
body_size = "10MiB"
connections = 1000
connections_per_address = 30
body_rate = "2KiB/s"
requests_per_connection = 20
streams_per_connection = 7
buffered_bytes = "64KiB"
[log]
level = "warn"
file = "/var/log/e.log"
access = { format = "combined", file = "/var/log/a.log" }
[forwarding]
trusted_proxies = ["10.0.0.0/8", "::1", "unix"]
x_forwarded = false
forwarded = true
via = false
request_id = false
underscore_names = true
)"));
  EXPECT_EQ(snapshot->server.rings, 3U);
  EXPECT_EQ(snapshot->server.ring_entries, 2048U);
  EXPECT_EQ(snapshot->server.buffers, 512U);
  EXPECT_EQ(snapshot->server.buffer_bytes, 32'768U);
  EXPECT_EQ(snapshot->server.server_name, "edge-1");
  EXPECT_EQ(snapshot->server.body_mover, BodyMover::zero_copy);
  EXPECT_FALSE(snapshot->server.batch_wait);
  EXPECT_EQ(snapshot->server.large_buffers, 32U);
  EXPECT_EQ(snapshot->server.zero_copy_bytes_min, 65'536U);
  EXPECT_EQ(snapshot->timeouts.client_header_ms, 1'000U);
  EXPECT_EQ(snapshot->timeouts.keep_alive_ms, 120'000U);
  EXPECT_EQ(snapshot->timeouts.body_idle_ms, 0U);
  EXPECT_EQ(snapshot->timeouts.body_grace_ms, 9'000U);
  EXPECT_EQ(snapshot->timeouts.connect_ms, 250U);
  EXPECT_EQ(snapshot->timeouts.response_header_ms, 3'000U);
  EXPECT_EQ(snapshot->timeouts.queue_ms, 4'000U);
  EXPECT_EQ(snapshot->timeouts.tunnel_idle_ms, 7'200'000U);
  EXPECT_EQ(snapshot->timeouts.linger_ms, 0U);
  EXPECT_EQ(snapshot->timeouts.drain_ms, 7'000U);
  EXPECT_EQ(snapshot->limits.request_line_bytes_max, 4'096U);
  EXPECT_EQ(snapshot->limits.header_bytes_max, 16'384U);
  EXPECT_EQ(snapshot->limits.header_count_max, 50U);
  EXPECT_EQ(snapshot->limits.body_bytes_max, 10U << 20);
  EXPECT_EQ(snapshot->limits.connections_max, 1000U);
  EXPECT_EQ(snapshot->limits.connections_per_address_max, 30U);
  EXPECT_EQ(snapshot->limits.body_rate_min, 2048U);
  EXPECT_EQ(snapshot->limits.requests_per_connection_max, 20U);
  EXPECT_EQ(snapshot->limits.streams_per_connection_max, 7U);
  EXPECT_EQ(snapshot->limits.buffered_bytes_max, 65'536U);
  EXPECT_EQ(snapshot->log.level, Log::Level::warn);
  EXPECT_EQ(snapshot->log.file, "/var/log/e.log");
  EXPECT_EQ(snapshot->log.access, Log::Access::combined);
  EXPECT_EQ(snapshot->log.access_file, "/var/log/a.log");
  EXPECT_EQ(snapshot->forwarding.trusted_proxies, (Lines{"10.0.0.0/8", "::1", "unix"}));
  EXPECT_FALSE(snapshot->forwarding.x_forwarded);
  EXPECT_TRUE(snapshot->forwarding.forwarded);
  EXPECT_FALSE(snapshot->forwarding.via);
  EXPECT_FALSE(snapshot->forwarding.request_id);
  EXPECT_TRUE(snapshot->forwarding.underscore_names);
}

TEST(ConfigSettings, RatesAndTheirAbsence) {
  auto rate_of = [](const char* text) {
    return good(complete(std::string("limits.body_rate = ") + text + "\n"))->limits.body_rate_min;
  };
  EXPECT_EQ(good(complete(""))->limits.body_rate_min, 0U);
  EXPECT_EQ(rate_of("\"none\""), 0U);
  EXPECT_EQ(rate_of("0"), 0U);
  EXPECT_EQ(rate_of("\"0B/s\""), 0U);
  EXPECT_EQ(rate_of("\"500B/s\""), 500U);
  EXPECT_EQ(rate_of("\"1GiB/s\""), 1U << 30);
  auto of = [](const char* text) {
    return problems(complete(std::string("limits.body_rate = ") + text + "\n"));
  };
  EXPECT_EQ(of("\"1KiB\""), Lines{"t.toml:1:20: \"body_rate\" is a rate and needs \"/s\", not "
                                  "\"1KiB\" (did you mean \"1KiB/s\"?)"});
  EXPECT_EQ(of("500"), Lines{"t.toml:1:20: \"body_rate\" needs a unit (did you mean \"500B/s\"?)"});
  EXPECT_EQ(of("\"2GiB/s\""), Lines{"t.toml:1:20: \"body_rate\" must be from 1 to 1073741824 bytes "
                                    "a second, not \"2GiB/s\""});
  EXPECT_EQ(of("\"fast\"").size(), 1U);
  EXPECT_EQ(of("\"1Kib/s\"").size(), 1U);
  EXPECT_EQ(of("true").size(), 1U);
}

TEST(ConfigSettings, ASiteHasABodyRateButNoLimitForAnAddress) {
  const std::string site = "[[site]]\nhosts = [\"b.test\"]\nroute = [{ redirect = \"/\" }]\n";
  const auto snapshot = good(complete("[limits]\nbody_rate = \"1KiB/s\"\n") + site +
                             "limits = { body_rate = \"none\" }\n"
                             "timeouts = { body_grace = \"3s\" }\n");
  EXPECT_EQ(snapshot->sites.front().limits.body_rate_min, 1024U);
  EXPECT_EQ(snapshot->sites.front().timeouts.body_grace_ms, 10'000U);
  EXPECT_EQ(snapshot->sites.back().limits.body_rate_min, 0U);
  EXPECT_EQ(snapshot->sites.back().timeouts.body_grace_ms, 3'000U);
  const auto found = problems(complete("") + site + "limits = { connections_per_address = 3 }\n");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].find("\"connections_per_address\" cannot be set in"), std::string::npos);
  const auto none = problems(complete("timeouts.body_grace = \"none\"\n"));
  ASSERT_EQ(none.size(), 1U);
  EXPECT_NE(none[0].find("\"body_grace\" cannot be \"none\""), std::string::npos);
}

TEST(ConfigSettings, UnknownKeysGetTheNearestKnownOne) {
  EXPECT_EQ(
      problems(complete("[server]\nring_entires = 1\n[timeuots]\nx = 1\n")),
      (Lines{
          "t.toml:2:1: unknown key \"ring_entires\" in [server] (did you mean \"ring_entries\"?)",
          "t.toml:3:2: unknown key \"timeuots\" in the configuration (did you mean "
          "\"timeouts\"?)"}));
}

TEST(ConfigSettings, KeysOfFeaturesThatDoNotExistAreUnknown) {
  const auto found = problems(complete("[admin]\n"));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].find("unknown key \"admin\""), std::string::npos);
}

TEST(ConfigSettings, AllMistakesInOneGoInFileOrder) {
  EXPECT_EQ(
      problems(complete("[timeouts]\nconnect = 5\nqueue = \"x\"\n[server]\nrings = 0\n")),
      (Lines{"t.toml:2:11: \"connect\" needs a unit (did you mean \"5s\"?)",
             "t.toml:3:9: \"queue\" must be a time, not \"x\" (like \"500ms\", \"5s\", \"2m\" or "
             "\"1h\")",
             "t.toml:5:9: \"rings\" must be from 1 to 256, not 0"}));
}

TEST(ConfigSettings, Durations) {
  auto of = [](const char* text) {
    return problems(complete(std::string("timeouts.connect = ") + text + "\n"));
  };
  EXPECT_EQ(
      of("\"75\""),
      Lines{"t.toml:1:20: \"connect\" needs a unit (like \"75s\"; the units are ms, s, m and h)"});
  EXPECT_EQ(of("\"5sec\""),
            Lines{"t.toml:1:20: \"connect\" has an unknown unit of time in \"5sec\" "
                  "(like \"5s\"; the units are ms, s, m and h)"});
  EXPECT_EQ(of("\"1.5s\""), Lines{"t.toml:1:20: \"connect\" must be a whole number, not \"1.5s\" "
                                  "(take a smaller unit, like \"1500ms\")"});
  EXPECT_EQ(of("\"721h\""),
            Lines{"t.toml:1:20: \"connect\" is too long: \"721h\" (at most \"720h\")"});
  EXPECT_EQ(
      of("\"99999999999999999999s\""),
      Lines{"t.toml:1:20: \"connect\" is too long: \"99999999999999999999s\" (at most \"720h\")"});
  EXPECT_EQ(of("\"0s\""), Lines{"t.toml:1:20: \"connect\" must be at least \"1ms\", not \"0s\""});
  EXPECT_EQ(of("\"none\""), Lines{"t.toml:1:20: \"connect\" cannot be \"none\""});
  EXPECT_EQ(of("true"),
            Lines{"t.toml:1:20: \"connect\" must be a time like \"5s\", not true or false"});
  EXPECT_EQ(of("\"-5s\"").size(), 1U);
}

TEST(ConfigSettings, Sizes) {
  auto of = [](const char* text) {
    return problems(complete(std::string("limits.body_size = ") + text + "\n"));
  };
  auto value = [](const char* text) {
    return good(complete(std::string("limits.body_size = ") + text + "\n"))->limits.body_bytes_max;
  };
  EXPECT_EQ(value("\"512B\""), 512U);
  EXPECT_EQ(value("\"10MB\""), 10'000'000U);
  EXPECT_EQ(value("\"2GiB\""), 2ULL << 30);
  EXPECT_EQ(value("\"none\""), 0U);
  EXPECT_EQ(value("0"), 0U);
  EXPECT_EQ(value("12345"), 12'345U);
  EXPECT_EQ(of("\"10M\""),
            Lines{"t.toml:1:20: \"body_size\" has an unknown unit of size in \"10M\" (did "
                  "you mean \"10MiB\"?)"});
  EXPECT_EQ(of("\"10\""), Lines{"t.toml:1:20: \"body_size\" needs a unit (did you mean \"10B\"?)"});
  EXPECT_EQ(of("-1").size(), 1U);
  EXPECT_EQ(of("\"99999999999999TiB\""),
            Lines{"t.toml:1:20: \"body_size\" is too large: \"99999999999999TiB\""});
  EXPECT_EQ(of("1.5"), Lines{"t.toml:1:20: \"body_size\" must be a size, not a decimal number"});
}

TEST(ConfigSettings, RangesAndPowersOfTwo) {
  EXPECT_EQ(problems(complete("server.buffers = 100\n")),
            Lines{"t.toml:1:18: \"buffers\" must be a power of two, not 100 (64 or 128)"});
  EXPECT_EQ(problems(complete("server.buffers = 0\n")),
            Lines{"t.toml:1:18: \"buffers\" must be from 16 to 32768, not 0"});
  EXPECT_EQ(problems(complete("server.rings = 257\n")),
            Lines{"t.toml:1:16: \"rings\" must be from 1 to 256, not 257"});
  EXPECT_EQ(problems(complete("server.rings = \"many\"\n")),
            Lines{"t.toml:1:16: \"rings\" must be a number or \"auto\", not \"many\""});
  EXPECT_EQ(problems(complete("server.rings = \"4\"\n")),
            Lines{"t.toml:1:16: \"rings\" must be a number or \"auto\", not \"4\""});
  EXPECT_EQ(problems(complete("server.name = \"a b\"\n")).size(), 1U);
  EXPECT_EQ(problems(complete("server.body_mover = \"splices\"\n")),
            Lines{"t.toml:1:21: \"body_mover\" cannot be \"splices\" (did you mean \"splice\"?)"});
  EXPECT_EQ(
      problems(complete("server.batch_wait = \"true\"\n")),
      Lines{"t.toml:1:21: \"batch_wait\" must be true or false, not \"true\" (write it without "
            "quotes: true)"});
}

TEST(ConfigSettings, LimitsMustFitEachOther) {
  EXPECT_EQ(problems(complete("limits.buffered_bytes = 4096\n")),
            Lines{"t.toml:1:25: buffered_bytes (4096) must hold at least one receive buffer "
                  "(buffer_bytes, 16384)"});
  EXPECT_EQ(
      problems(complete("limits.header_bytes = 4096\n")),
      Lines{"t.toml:1:23: \"header_bytes\" does not fit: request_line (8192 bytes) is a part of "
            "header_bytes (4096)"});
}

TEST(ConfigSettings, WordsAreSuggested) {
  EXPECT_EQ(problems(complete("log.level = \"warning\"\n")),
            Lines{"t.toml:1:13: \"level\" cannot be \"warning\" (did you mean \"warn\"?)"});
  EXPECT_EQ(problems(complete("log.access = \"jsno\"\n")),
            Lines{"t.toml:1:14: \"access\" cannot be \"jsno\" (did you mean \"json\"?)"});
  EXPECT_EQ(
      problems(complete("log.access = 5\n")),
      Lines{"t.toml:1:14: \"access\" must be \"json\", \"combined\", \"off\", or a table of format "
            "and file, not a number"});
}

TEST(ConfigSettings, TrustedRanges) {
  auto of = [](const std::string& text) {
    return problems(complete("forwarding.trusted_proxies = [\"" + text + "\"]\n"));
  };
  EXPECT_EQ(
      of("10.0.0.1/8"),
      Lines{"t.toml:1:31: \"trusted_proxies\" has \"10.0.0.1/8\", which has bits set behind its "
            "prefix length (did you mean \"10.0.0.0/8\" or \"10.0.0.1\"?)"});
  EXPECT_EQ(of("2001:db8::1/33").size(), 1U);
  EXPECT_EQ(of("10.0.0.0/33"),
            Lines{"t.toml:1:31: \"trusted_proxies\" has \"10.0.0.0/33\", which needs a "
                  "prefix length from 0 to 32"});
  EXPECT_EQ(of("10.0.0.0/").size(), 1U);
  EXPECT_EQ(of("10.0.0").size(), 1U);
  EXPECT_EQ(of("example.org").size(), 1U);
  EXPECT_EQ(of("0.0.0.0/0"), Lines{});
  EXPECT_EQ(of("2001:db8::/32"), Lines{});
  EXPECT_TRUE(
      good(complete("forwarding.trusted_proxies = []\n"))->forwarding.trusted_proxies.empty());
}

TEST(ConfigSettings, WrongTypesSayWhatIsExpected) {
  EXPECT_EQ(problems(complete("server = 5\n")),
            Lines{"t.toml:1:10: \"server\" must be a table, not a number"});
  EXPECT_EQ(problems(complete("log.file = [1]\n")),
            Lines{"t.toml:1:12: \"file\" must be a string, not an array"});
  EXPECT_EQ(problems(complete("limits.header_count = \"many\"\n")),
            Lines{"t.toml:1:23: \"header_count\" must be a number, not \"many\""});
  EXPECT_EQ(problems(complete("limits.header_count = 2026-01-01\n")),
            Lines{"t.toml:1:23: \"header_count\" must be a number, not a date"});
}

}  // namespace
}  // namespace ringside::config
