#include "ringside/proxy/worker.h"

#include "counting_allocator.h"
#include "worker_fixture.h"

namespace ringside::proxy {
namespace {

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
