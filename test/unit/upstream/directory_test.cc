#include "ringside/upstream/directory.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace ringside::upstream {
namespace {

config::UpstreamServer server(std::string host, std::uint16_t port, std::uint32_t limit = 0) {
  config::UpstreamServer out;
  bool name = host.find_first_not_of("0123456789.") != std::string::npos;
  out.endpoint.kind = name ? config::Endpoint::Kind::name : config::Endpoint::Kind::ipv4;
  out.endpoint.text = host + ":" + std::to_string(port);
  out.endpoint.host = std::move(host);
  out.endpoint.port = port;
  out.connections_max = limit;
  return out;
}

config::Snapshot with(std::vector<config::UpstreamServer> servers, std::string name = "app") {
  config::Snapshot snapshot;
  config::Upstream upstream;
  upstream.name = std::move(name);
  upstream.servers = std::move(servers);
  snapshot.upstreams.push_back(upstream);
  return snapshot;
}

TEST(Directory, a_literal_has_its_address_a_name_has_none_yet) {
  Directory directory(with({server("10.0.0.1", 80), server("app.internal", 80)}), 2);
  EXPECT_EQ(directory.server(0, 0).version(), 1U);
  ASSERT_EQ(directory.server(0, 0).addresses().size(), 1U);
  EXPECT_EQ(directory.server(0, 0).addresses()[0].to_string(), "10.0.0.1:80");
  EXPECT_FALSE(directory.server(0, 0).needs_resolving());
  EXPECT_EQ(directory.server(0, 1).version(), 0U);
  EXPECT_TRUE(directory.server(0, 1).needs_resolving());
}

TEST(Directory, the_version_grows_only_with_a_change_and_an_empty_answer_changes_nothing) {
  Directory directory(with({server("app.internal", 80)}), 1);
  SharedServer& shared = directory.server(0, 0);
  std::vector<net::Address> one = {*net::Address::from_ip("10.0.0.1", 80)};
  shared.set_addresses(one);
  EXPECT_EQ(shared.version(), 1U);
  shared.set_addresses(one);
  EXPECT_EQ(shared.version(), 1U);
  shared.set_addresses({});
  EXPECT_EQ(shared.version(), 1U);
  EXPECT_EQ(shared.addresses(), one) << "the last good addresses stay";
  shared.set_addresses({*net::Address::from_ip("10.0.0.2", 80)});
  EXPECT_EQ(shared.version(), 2U);
}

TEST(Directory, the_same_server_is_carried_over_and_another_is_not) {
  Directory first(with({server("10.0.0.1", 80), server("10.0.0.2", 80)}), 2);
  Directory second(with({server("10.0.0.2", 80), server("10.0.0.3", 80)}), 2, &first);
  EXPECT_EQ(first.share(0, 1), second.share(0, 0));
  EXPECT_NE(first.share(0, 0), second.share(0, 1));
  Directory renamed(with({server("10.0.0.1", 80)}, "other"), 2, &first);
  EXPECT_NE(first.share(0, 0), renamed.share(0, 0)) << "another upstream's pool is another pool";
  Directory limited(with({server("10.0.0.1", 80, 5)}), 2, &first);
  EXPECT_NE(first.share(0, 0), limited.share(0, 0)) << "a new limit counts from the start";
}

TEST(Directory, places_are_limited_over_all_threads) {
  Directory directory(with({server("10.0.0.1", 80, 100)}), 4);
  SharedServer& shared = directory.server(0, 0);
  std::atomic<int> taken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 1000; ++n)
        taken += shared.open_place() ? 1 : 0;
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(taken, 100);
  EXPECT_EQ(shared.open(), 100U);
  shared.close_place();
  EXPECT_TRUE(shared.open_place());
  EXPECT_FALSE(shared.open_place());
}

TEST(Directory, no_limit_means_none) {
  Directory directory(with({server("10.0.0.1", 80)}), 1);
  for (int i = 0; i < 10'000; ++i)
    ASSERT_TRUE(directory.server(0, 0).open_place());
}

}  // namespace
}  // namespace ringside::upstream
