#include "name_resolver.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace ringside::app {
namespace {

using Answer = std::expected<std::vector<net::Address>, std::string>;

class MemoryLogger final : public base::Logger {
 public:
  void log(base::LogLevel level, std::string_view event, std::string_view text) override {
    const std::lock_guard lock(mutex_);
    lines_.push_back(std::to_string(static_cast<int>(level)) + " " + std::string(event) + " " +
                     std::string(text));
    changed_.notify_all();
  }
  std::vector<std::string> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return lines_.size() >= count; });
    return lines_;
  }
  std::size_t count() {
    const std::lock_guard lock(mutex_);
    return lines_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
};

// Answers from a table; a name can be held up. Its state is shared with the function that it hands
// out, since a thread of a resolver may outlive the test.
class FakeSystem {
 public:
  void answer(const std::string& name, Answer answer) {
    const std::lock_guard lock(state_->mutex);
    state_->answers.insert_or_assign(name, std::move(answer));
  }
  void hold(bool held) {
    const std::lock_guard lock(state_->mutex);
    state_->held = held;
    state_->changed.notify_all();
  }
  Resolve function() {
    return [state = state_](const std::string& name) { return state->resolve(name); };
  }
  void wait_for_calls(unsigned more) {
    std::unique_lock lock(state_->mutex);
    const unsigned target = state_->calls + more;
    state_->changed.wait(lock, [&] { return state_->calls >= target; });
  }
  void wait_until_nobody_is_inside() {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait(lock, [&] { return state_->inside == 0; });
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<std::string, Answer> answers;
    bool held = false;
    unsigned calls = 0;
    unsigned inside = 0;

    Answer resolve(const std::string& name) {
      std::unique_lock lock(mutex);
      ++calls;
      ++inside;
      changed.notify_all();
      changed.wait(lock, [&] { return !held || name != "a-slow.test"; });
      --inside;
      changed.notify_all();
      const auto found = answers.find(name);
      return found == answers.end() ? Answer(std::unexpected("unknown name")) : found->second;
    }
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

std::shared_ptr<upstream::SharedServer> server_of(const std::string& name, std::uint16_t port) {
  config::UpstreamServer server;
  server.endpoint.kind = config::Endpoint::Kind::name;
  server.endpoint.host = name;
  server.endpoint.port = port;
  server.endpoint.text = name + ":" + std::to_string(port);
  return std::make_shared<upstream::SharedServer>(server, 1);
}

Answer addresses(std::initializer_list<const char*> texts) {
  std::vector<net::Address> list;
  for (const char* text : texts)
    list.push_back(*net::Address::from_ip(text, 0));
  return list;
}

std::string list_of(const upstream::SharedServer& server) {
  std::string out;
  for (const net::Address& address : server.addresses())
    out += address.to_string() + " ";
  return out;
}

constexpr std::uint64_t long_ms = 3'600'000;

class NameResolverTest : public ::testing::Test {
 protected:
  FakeSystem system_;
  MemoryLogger logger_;
};

TEST_F(NameResolverTest, PublishesWithThePortOfEachServer) {
  system_.answer("app.test", addresses({"10.0.0.1", "2001:db8::1"}));
  const auto one = server_of("app.test", 80);
  const auto two = server_of("app.test", 8080);
  NameResolver resolver({{one, long_ms}, {two, long_ms}}, logger_, system_.function());
  ASSERT_TRUE(resolver.wait_for_first_round(60'000));
  EXPECT_EQ(list_of(*one), "10.0.0.1:80 [2001:db8::1]:80 ");
  EXPECT_EQ(list_of(*two), "10.0.0.1:8080 [2001:db8::1]:8080 ");
  EXPECT_EQ(logger_.wait_for(1)[0], "1 resolve app.test is 10.0.0.1, 2001:db8::1");
}

TEST_F(NameResolverTest, NeedsNoThreadForNoName) {
  NameResolver resolver({}, logger_, system_.function());
  EXPECT_TRUE(resolver.wait_for_first_round(0));
}

TEST_F(NameResolverTest, LooksAgainAndLogsWhatChanged) {
  system_.answer("app.test", addresses({"10.0.0.1"}));
  const auto server = server_of("app.test", 80);
  NameResolver resolver({{server, 1}}, logger_, system_.function());
  logger_.wait_for(1);
  const auto version = server->version();
  system_.wait_for_calls(3);
  EXPECT_EQ(server->version(), version);
  EXPECT_EQ(logger_.count(), 1U);
  system_.answer("app.test", addresses({"10.0.0.2", "10.0.0.1"}));
  EXPECT_EQ(logger_.wait_for(2)[1], "1 resolve app.test is 10.0.0.1, 10.0.0.2, was 10.0.0.1");
  EXPECT_EQ(list_of(*server), "10.0.0.2:80 10.0.0.1:80 ");
  // The same in another order is no change.
  const auto changed = server->version();
  system_.answer("app.test", addresses({"10.0.0.1", "10.0.0.2"}));
  system_.wait_for_calls(3);
  EXPECT_EQ(server->version(), changed);
  EXPECT_EQ(logger_.count(), 2U);
}

TEST_F(NameResolverTest, KeepsTheLastAddressesWhenALookupFails) {
  system_.answer("app.test", addresses({"10.0.0.1"}));
  const auto server = server_of("app.test", 80);
  NameResolver resolver({{server, 1}}, logger_, system_.function());
  logger_.wait_for(1);
  system_.answer("app.test", std::unexpected("server failure"));
  EXPECT_EQ(logger_.wait_for(2)[1], "2 resolve app.test: server failure; it stays 10.0.0.1");
  EXPECT_EQ(list_of(*server), "10.0.0.1:80 ");
}

TEST_F(NameResolverTest, CountsAFailureAsLookedUp) {
  const auto server = server_of("missing.test", 80);
  NameResolver resolver({{server, long_ms}}, logger_, system_.function());
  EXPECT_TRUE(resolver.wait_for_first_round(60'000));
  EXPECT_EQ(server->version(), 0U);
  EXPECT_EQ(logger_.wait_for(1)[0],
            "2 resolve missing.test: unknown name; it has no address yet, and is tried again");
}

TEST_F(NameResolverTest, IsHeldUpByNoSlowName) {
  system_.hold(true);
  system_.answer("app.test", addresses({"10.0.0.1"}));
  const auto slow = server_of("a-slow.test", 80);
  const auto quick = server_of("app.test", 80);
  NameResolver resolver({{slow, long_ms}, {quick, long_ms}}, logger_, system_.function());
  logger_.wait_for(1);
  EXPECT_EQ(list_of(*quick), "10.0.0.1:80 ");
  EXPECT_FALSE(resolver.wait_for_first_round(1));
  // A stop does not wait for it, and what it finds later goes nowhere.
  resolver.stop();
  system_.answer("a-slow.test", addresses({"10.0.0.9"}));
  system_.hold(false);
  system_.wait_until_nobody_is_inside();
  EXPECT_EQ(slow->version(), 0U);
  EXPECT_EQ(logger_.count(), 1U);
}

TEST(ResolverTargets, AreTheServersWithNames) {
  config::Snapshot snapshot;
  snapshot.upstreams.resize(2);
  snapshot.upstreams[0].name = "a";
  snapshot.upstreams[0].servers.push_back({server_of("app.test", 80)->config()});
  config::UpstreamServer literal;
  literal.endpoint = {config::Endpoint::Kind::ipv4, "10.0.0.1:80", "10.0.0.1", 80, ""};
  snapshot.upstreams[0].servers.push_back(literal);
  snapshot.upstreams[1].name = "b";
  snapshot.upstreams[1].resolve_interval_ms = 7;
  snapshot.upstreams[1].servers.push_back({server_of("other.test", 81)->config()});
  const upstream::Directory directory(snapshot, 1);
  const auto targets = resolver_targets(snapshot, directory);
  ASSERT_EQ(targets.size(), 2U);
  EXPECT_EQ(targets[0].server, directory.share(0, 0));
  EXPECT_EQ(targets[1].server, directory.share(1, 0));
  EXPECT_EQ(targets[1].interval_ms, 7U);
}

TEST(ResolveBySystem, KnowsLocalhost) {
  const auto found = resolve_by_system("localhost");
  ASSERT_TRUE(found) << found.error();
  ASSERT_FALSE(found->empty());
  const std::string text = (*found)[0].to_string();
  EXPECT_TRUE(text == "127.0.0.1:0" || text == "[::1]:0") << text;
}

}  // namespace
}  // namespace ringside::app
