// A worker on the real kernel: its own client and upstream in one thread, so that what it allocates
// can be counted.
#include "ringside/proxy/worker.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "counting_allocator.h"

namespace ringside::proxy {
namespace {

// Keeps what the worker says of its holdings.
struct HoldingsLogger final : base::Logger {
  void log(base::LogLevel level, std::string_view event, std::string_view text) override {
    if (event == "holdings") lines.emplace_back(level, text);
  }
  std::vector<std::pair<base::LogLevel, std::string>> lines;
};

// Counts; keeps the last record of the proxying listener. Allocates nothing.
struct Records final : AccessSink {
  void record(const AccessRecord& record) override {
    if (record.listener == "web") {
      ++count;
      status = record.status;
      end = record.end;
      tries = record.tries;
      reused = record.reused;
    }
  }
  int count = 0;
  std::uint16_t status = 0;
  std::uint8_t tries = 0;
  bool reused = false;
  EndReason end;
};

config::Listen listen(std::string name) {
  config::Listen out;
  out.name = std::move(name);
  config::Endpoint any;
  any.text = "127.0.0.1:0";
  any.host = "127.0.0.1";
  out.addresses = {any};
  return out;
}

config::Route respond(std::string path, std::string body) {
  config::Route route;
  route.path = std::move(path);
  route.respond = config::Respond{.status = 200, .body = std::move(body), .headers = {}};
  return route;
}

// "web" proxies "/up/*" to "origin", which answers `origin_body`.
config::SnapshotRef snapshot(const std::string& origin_body, std::uint16_t origin_port) {
  auto out = std::make_shared<config::Snapshot>();
  out->listens = {listen("web"), listen("origin")};
  out->timeouts.linger_ms = 50;
  config::Upstream upstream;
  upstream.name = "app";
  config::UpstreamServer server;
  server.endpoint.host = "127.0.0.1";
  server.endpoint.port = origin_port;
  server.endpoint.text = "127.0.0.1:" + std::to_string(origin_port);
  upstream.servers = {server};
  out->upstreams = {upstream};
  config::Site web;
  web.hosts = {"*"};
  web.listens = {0};
  config::Route proxied;
  proxied.path = "/up/*";
  proxied.upstream = 0;
  web.routes = {proxied};
  config::Site origin;
  origin.hosts = {"*"};
  origin.listens = {1};
  origin.routes = {respond("/*", origin_body)};
  out->sites = {web, origin};
  return out;
}

void no_sleep(unsigned) {}

class WorkerTest : public testing::Test {
 protected:
  void SetUp() override {
    net::ListenerSet listeners(net::real_sys());
    ASSERT_TRUE(listeners.open(*snapshot("", 1), 1, no_sleep).empty());
    web_ = listeners.listeners()[0].address;
    origin_port_ = listeners.listeners()[1].address.port();
    runtime_ = std::make_shared<Runtime>(snapshot("one", origin_port_), 1);
    auto worker = Worker::create({.kernel = ring::real_kernel(),
                                  .sys = net::real_sys(),
                                  .logger = logger_,
                                  .access = &records_,
                                  .connections_max = 64},
                                 runtime_, listeners.release());
    ASSERT_TRUE(worker.has_value()) << ring::Ring::explain(worker.error());
    worker_ = std::move(*worker);
  }
  void TearDown() override {
    for (int fd : clients_)
      ::close(fd);
    worker_->request_drain();
    while (!worker_->finished())
      worker_->run_once(100);
    Worker::Holdings held = worker_->holdings();
    EXPECT_EQ(held.client_connections + held.exchanges + held.upstream_connections + held.leases +
                  held.arena_chunks + held.slices + held.pipes + held.operations,
              0U);
  }

  int connect() {
    int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::connect(fd, web_.raw(), web_.length()), 0);
    clients_.push_back(fd);
    return fd;
  }
  void send(int fd, std::string_view bytes) {
    ASSERT_EQ(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL), ssize_t(bytes.size()));
  }
  // Turns the loop until the client has `bytes` bytes, or the connection's end.
  std::size_t receive(int fd, char* out, std::size_t bytes) {
    std::size_t have = 0;
    for (int turns = 0; have < bytes && turns < 5000; ++turns) {
      worker_->run_once(1);
      ssize_t got = ::recv(fd, out + have, bytes - have, MSG_DONTWAIT);
      if (got == 0) break;
      if (got > 0) have += std::size_t(got);
      if (got > 0 && std::string_view(out, have).ends_with(expected_end_)) break;
    }
    return have;
  }
  std::string get(int fd, std::string_view path) {
    send(fd, "GET " + std::string(path) + " HTTP/1.1\r\nHost: a.test\r\n\r\n");
    char out[4096];
    return {out, receive(fd, out, sizeof out)};
  }

  HoldingsLogger logger_;
  Records records_;
  net::Address web_;
  std::uint16_t origin_port_ = 0;
  RuntimeRef runtime_;
  std::unique_ptr<Worker> worker_;
  std::vector<int> clients_;
  std::string_view expected_end_ = "\r\n\r\none";
};

TEST_F(WorkerTest, proxies_and_reuses_the_server_connection) {
  int client = connect();
  EXPECT_TRUE(get(client, "/up/a").starts_with("HTTP/1.1 200 OK\r\n"));
  EXPECT_FALSE(records_.reused);
  EXPECT_TRUE(get(client, "/up/b").starts_with("HTTP/1.1 200 OK\r\n"));
  EXPECT_TRUE(records_.reused);
  EXPECT_EQ(records_.count, 2);
  EXPECT_EQ(records_.end.cause, Cause::complete);
  EXPECT_EQ(worker_->pool_counters().connects, 1U);
}

TEST_F(WorkerTest, counts_what_moved_the_bodies_of_others) {
  int client = connect();
  get(client, "/up/a");
  get(client, "/up/b");
  auto copy = static_cast<std::size_t>(net::Mover::copy);
  for (std::size_t mover = 0; mover < net::movers; ++mover) {
    // The origin is on this ring too; what it answers itself is moved by nothing.
    EXPECT_EQ(worker_->counters().bodies[mover], mover == copy ? 2U : 0U);
    EXPECT_EQ(worker_->counters().moved_bytes[mover], mover == copy ? 6U : 0U);
  }
}

TEST_F(WorkerTest, steady_state_allocates_nothing) {
  static constexpr std::string_view request =
      "GET /up/x HTTP/1.1\r\nHost: a.test\r\nUser-Agent: test\r\nAccept: */*\r\n\r\n";
  std::vector<int> fds;
  for (int i = 0; i < 8; ++i)
    fds.push_back(connect());
  char out[4096];
  auto round = [&] {
    for (int fd : fds)
      send(fd, request);
    for (int fd : fds)
      ASSERT_GT(receive(fd, out, sizeof out), 0U);
  };
  for (int i = 0; i < 50; ++i)
    round();
  int before = records_.count;
  test::AllocationCount allocations;
  for (int i = 0; i < 200; ++i)
    round();
  EXPECT_EQ(allocations.count(), 0U) << "for " << records_.count - before << " requests";
  EXPECT_EQ(records_.count - before, 1600);
}

TEST_F(WorkerTest, an_exchange_keeps_the_configuration_that_it_began_with) {
  int client = connect();
  send(client, "POST /up/x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\n\r\n");
  while (worker_->holdings().exchanges == 0)
    worker_->run_once(1);
  // The new one has no upstream at all.
  auto changed = std::make_shared<config::Snapshot>(*snapshot("one", origin_port_));
  changed->upstreams.clear();
  changed->sites[0].routes = {respond("/*", "changed")};
  worker_->request_swap(std::make_shared<Runtime>(changed, 1, runtime_.get()));
  for (int i = 0; i < 3; ++i)
    worker_->run_once(1);
  send(client, "body");
  char out[4096];
  std::string first(out, receive(client, out, sizeof out));
  EXPECT_TRUE(first.starts_with("HTTP/1.1 200 OK\r\n")) << first;
  EXPECT_NE(first.find("Via: 1.1 ringside"), std::string::npos) << "from the server";
  expected_end_ = "changed";
  std::string rest = get(client, "/up/x");
  EXPECT_TRUE(rest.ends_with("changed")) << rest;
}

// A send that is being cancelled may still be tried once more by the kernel.
TEST_F(WorkerTest, a_body_outlives_the_send_that_points_to_it) {
  auto large = std::make_shared<config::Snapshot>(*snapshot("", origin_port_));
  large->sites[0].routes = {respond("/*", std::string(std::size_t{16} << 20, 'x'))};
  large->timeouts.drain_ms = 1;
  std::weak_ptr<const config::Snapshot> body = large;
  worker_->request_swap(std::make_shared<Runtime>(std::move(large), 1, runtime_.get()));
  worker_->run_once(1);
  send(connect(), "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
  while (worker_->holdings().exchanges == 0)
    worker_->run_once(1);
  auto next = std::make_shared<config::Snapshot>(*snapshot("", origin_port_));
  next->timeouts.drain_ms = 1;
  worker_->request_swap(std::make_shared<Runtime>(std::move(next), 1, runtime_.get()));
  worker_->run_once(1);
  worker_->request_drain();
  int alone = 0;
  for (; worker_->holdings().client_connections != 0; worker_->run_once(1)) {
    EXPECT_FALSE(body.expired());
    if (worker_->holdings().exchanges == 0) ++alone;
  }
  EXPECT_GT(alone, 0) << "the exchange was over first";
  EXPECT_TRUE(body.expired());
}

TEST_F(WorkerTest, reports_what_it_holds) {
  auto report = [&] {
    logger_.lines.clear();
    worker_->request_report();
    for (int turns = 0; logger_.lines.empty() && turns < 100; ++turns)
      worker_->run_once(10);
    return logger_.lines.empty() ? std::string("nothing") : logger_.lines[0].second;
  };
  // Two listeners and the mailbox.
  EXPECT_EQ(report(),
            "ring=0 clients=0 exchanges=0 servers=0 leases=0 chunks=0 slices=0 pipes=0 "
            "operations=3");
  EXPECT_EQ(logger_.lines[0].first, base::LogLevel::info);
  int client = connect();
  send(client, "POST /up/x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\n\r\n");
  while (worker_->holdings().exchanges < 2)  // its own, and that of the origin
    worker_->run_once(1);
  std::string busy = report();
  EXPECT_TRUE(busy.starts_with("ring=0 clients=2 exchanges=2 servers=1 leases=0 ")) << busy;
  Worker::Holdings held = worker_->holdings();
  EXPECT_GT(held.arena_chunks, 0U);
  EXPECT_GT(held.operations, 3U);
}

TEST_F(WorkerTest, says_why_an_exchange_ended) {
  int client = connect();
  expected_end_ = "Nothing is served here.\n";
  EXPECT_TRUE(get(client, "/none").starts_with("HTTP/1.1 404 Not Found\r\n"));
  EXPECT_EQ(records_.end, (EndReason{base::Origin::client, Stage::route, Cause::not_found}));
  send(client, "GET /up/x HTTP/1.1\r\nHost: a.test\r\nBad Name: x\r\n\r\n");
  char out[4096];
  expected_end_ = "never";
  std::string answer(out, receive(client, out, sizeof out));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 Bad Request\r\n")) << answer;
  EXPECT_EQ(records_.end, (EndReason{base::Origin::client, Stage::read_head, Cause::bad_message}));
  EXPECT_EQ(records_.count, 2);
}

}  // namespace
}  // namespace ringside::proxy
