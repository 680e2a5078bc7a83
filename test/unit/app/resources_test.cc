#include "resources.h"

#include <gtest/gtest.h>

#include "sizing_sheet.h"

namespace ringside::app {
namespace {

config::Snapshot snapshot_with(std::uint32_t connections_max) {
  config::Snapshot snapshot;
  snapshot.limits.connections_max = connections_max;
  snapshot.listens.resize(1);
  snapshot.listens[0].addresses.resize(2);
  return snapshot;
}

TEST(MakePlan, DerivesConnectionsFromDescriptors) {
  const Limits limits{.descriptors = 1024, .descriptors_hard = 1024, .locked_bytes = no_limit};
  const Plan plan = make_plan(snapshot_with(0), limits, 2);
  EXPECT_GT(plan.connections_max, 200U);
  EXPECT_LE(plan.descriptors, limits.descriptors);
  const Plan one = make_plan(snapshot_with(0), limits, 1);
  EXPECT_GT(one.connections_max, plan.connections_max);
}

TEST(MakePlan, KeepsAtLeastOneConnectionARing) {
  const Plan plan = make_plan(snapshot_with(0), {.descriptors = 16}, 4);
  EXPECT_EQ(plan.connections_max, 1U);
  EXPECT_FALSE(plan.advice.empty());
}

TEST(MakePlan, LeavesDescriptorsForServers) {
  const Plan plan = make_plan(snapshot_with(0), {.descriptors = 20'000}, 2);
  EXPECT_GT(2 * plan.connections_max, 10'600U);
  EXPECT_LT(2 * plan.connections_max, 12'000U);
  EXPECT_EQ(plan.descriptors, 20'000U);
}

TEST(MakePlan, SaysWhenItDerivesFewConnections) {
  const Plan few = make_plan(snapshot_with(0), {.descriptors = 16'000}, 1);
  EXPECT_LT(few.connections_max, 10'000U);
  ASSERT_EQ(few.advice.size(), 1U);
  EXPECT_NE(few.advice[0].find("RLIMIT_NOFILE is 16000"), std::string::npos);
  EXPECT_NE(few.advice[0].find(std::to_string(few.connections_max) + " client connections"),
            std::string::npos);
  EXPECT_TRUE(make_plan(snapshot_with(0), {.descriptors = 20'000}, 1).advice.empty());
  // Who asks for few has said that they are enough.
  EXPECT_TRUE(make_plan(snapshot_with(400), {.descriptors = 1024}, 1).advice.empty());
}

TEST(MakePlan, DoesNotGrowWithoutBound) {
  const Plan plan = make_plan(snapshot_with(0), {}, 2);
  EXPECT_EQ(plan.connections_max, 50'000U);
}

TEST(MakePlan, DividesAConfiguredLimitAmongTheRings) {
  EXPECT_EQ(make_plan(snapshot_with(1000), {}, 3).connections_max, 334U);
  EXPECT_EQ(make_plan(snapshot_with(1), {}, 3).connections_max, 1U);
}

TEST(MakePlan, AdvisesWhenDescriptorsAreTooFew) {
  const Plan plan = make_plan(snapshot_with(10'000), {.descriptors = 1024}, 2);
  EXPECT_EQ(plan.connections_max, 5'000U);
  ASSERT_EQ(plan.advice.size(), 1U);
  EXPECT_NE(plan.advice[0].find("RLIMIT_NOFILE is 1024"), std::string::npos);
  EXPECT_TRUE(make_plan(snapshot_with(10'000), {.descriptors = 65'536}, 2).advice.empty());
}

TEST(MakePlan, AdvisesWhenLockedMemoryIsTooSmall) {
  const auto snapshot = snapshot_with(100);
  EXPECT_TRUE(make_plan(snapshot, {.locked_bytes = 8 << 20}, 8).advice.empty());
  const Plan plan = make_plan(snapshot, {.locked_bytes = 64 << 10}, 1);
  ASSERT_EQ(plan.advice.size(), 1U);
  EXPECT_NE(plan.advice[0].find("RLIMIT_MEMLOCK is 64 KiB"), std::string::npos);
}

TEST(MakePlan, AdvisesWhenRingsHaveToWaitForEachOthersConnections) {
  auto snapshot = snapshot_with(100);
  snapshot.upstreams.resize(1);
  snapshot.upstreams[0].name = "app";
  config::UpstreamServer& server = snapshot.upstreams[0].servers.emplace_back();
  server.endpoint.text = "10.0.0.1:80";
  auto advice = [&](unsigned rings) { return make_plan(snapshot, {}, rings).advice; };
  server.connections_max = 2;
  EXPECT_TRUE(advice(3).empty()) << "idle ones are lent";
  server.protocol = config::UpstreamProtocol::automatic;
  EXPECT_TRUE(advice(3).empty()) << "without TLS it is HTTP/1.1";
  server.tls = true;
  EXPECT_EQ(advice(3).size(), 1U);
  server.protocol = config::UpstreamProtocol::h2;
  ASSERT_EQ(advice(3).size(), 1U);
  EXPECT_EQ(advice(3)[0].find("[upstream.app] max_connections = 2 for 10.0.0.1:80"), 0U);
  EXPECT_NE(advice(3)[0].find("server.rings = 2"), std::string::npos);
  EXPECT_TRUE(advice(2).empty());
  server.connections_max = 0;
  EXPECT_TRUE(advice(3).empty());
}

TEST(MakePlan, CountsRegisteredBuffersOnlyWhenThereAreSome) {
  auto snapshot = snapshot_with(100);
  const std::uint64_t without = make_plan(snapshot, {}, 1).locked_bytes;
  snapshot.server.body_mover = config::BodyMover::zero_copy;
  const config::Server& server = snapshot.server;
  EXPECT_EQ(make_plan(snapshot, {}, 1).locked_bytes - without,
            std::uint64_t{server.large_buffers} * snapshot.limits.buffered_bytes_max);
  EXPECT_EQ(make_plan(snapshot, {}, 3).locked_bytes, 3 * make_plan(snapshot, {}, 1).locked_bytes);
}

TEST(ReadableBytes, HasThreeDigits) {
  EXPECT_EQ(readable_bytes(0), "0 B");
  EXPECT_EQ(readable_bytes(1023), "1023 B");
  EXPECT_EQ(readable_bytes(1024), "1 KiB");
  EXPECT_EQ(readable_bytes(1536), "1.50 KiB");
  EXPECT_EQ(readable_bytes(50 * 1024 + 512), "50.5 KiB");
  EXPECT_EQ(readable_bytes(100 * 1024 + 100), "100 KiB");
  EXPECT_EQ(readable_bytes(64ULL << 20), "64 MiB");
  EXPECT_EQ(readable_bytes(~std::uint64_t{0}), "16 EiB");
}

TEST(SizingSheet, SumsTermsAndRings) {
  Plan plan;
  plan.rings = 3;
  plan.connections_max = 500;
  plan.descriptors = 3100;
  plan.locked_bytes = 1 << 20;
  plan.advice = {"do this"};
  const std::string sheet = sizing_sheet({{"buffers", 256, 16'384}, {"connections", 1024, 2048}},
                                         plan, {.descriptors = 4096, .locked_bytes = no_limit});
  const auto has = [&sheet](const char* pattern) {
    return sheet.find(pattern) != std::string::npos;
  };
  EXPECT_TRUE(has("buffers"));
  EXPECT_TRUE(has("16 KiB        4 MiB"));
  EXPECT_TRUE(has("2 KiB        2 MiB"));
  EXPECT_TRUE(has("6 MiB"));
  EXPECT_TRUE(has("18 MiB"));
  EXPECT_TRUE(has("500 a ring, 1500 in all"));
  EXPECT_TRUE(has("up to 3100; RLIMIT_NOFILE is 4096"));
  EXPECT_TRUE(has("1 MiB; RLIMIT_MEMLOCK is unlimited"));
  EXPECT_TRUE(has("warning: do this"));
}

}  // namespace
}  // namespace ringside::app
