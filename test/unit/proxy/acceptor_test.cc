// Connections that come so fast that the worker looks for them once a turn, on the real kernel.
#include <string>
#include <vector>

#include "accept_pace.h"
#include "worker_fixture.h"

namespace ringside::proxy {
namespace {

class AcceptorTest : public WorkerTest {
 protected:
  AcceptorTest() {
    accept_fast_ = 1;
    connections_max_ = 300;
  }
  std::uint64_t in_turns() const { return worker_->counters().accepted_in_turns.load(); }
  bool served(int fd) { return get(fd, "/up/x").ends_with(expected_end_); }
  // The first connection is accepted by the ring's operation, and ends that.
  void begin_turns() {
    EXPECT_TRUE(served(connect()));
    for (int i = 0; i < 3; ++i)
      worker_->run_once(0);
  }
  // Nobody has come for some windows.
  void end_turns() {
    const base::Millis end = worker_->ring().now_ms() + 3 * AcceptPace::window_ms;
    while (worker_->ring().now_ms() < end)
      worker_->run_once(1);
  }
  // Clients that have connected and sent a request, none of them accepted.
  std::vector<int> crowd(unsigned clients, const std::string& path) {
    std::vector<int> out;
    for (unsigned i = 0; i < clients; ++i) {
      out.push_back(connect());
      send(out.back(), "GET " + path + " HTTP/1.1\r\nHost: a.test\r\n\r\n");
    }
    return out;
  }
  void expect_answers(const std::vector<int>& crowd, std::string_view begin) {
    for (const int fd : crowd) {
      char out[4096];
      const std::string got(out, receive(fd, out, sizeof out));
      EXPECT_TRUE(got.starts_with(begin)) << got;
    }
  }
};

TEST_F(AcceptorTest, serves_whom_it_finds_and_knows_their_address) {
  begin_turns();
  const std::uint64_t before = in_turns();
  EXPECT_TRUE(served(connect()));
  EXPECT_EQ(in_turns(), before + 1);
  EXPECT_EQ(records_.count, 2);
  EXPECT_TRUE(records_.of_loopback);
}

TEST_F(AcceptorTest, is_woken_again_when_nobody_comes) {
  begin_turns();
  end_turns();
  const std::uint64_t before = in_turns();
  EXPECT_TRUE(served(connect()));
  EXPECT_EQ(in_turns(), before);
}

TEST_F(AcceptorTest, a_crowd_of_more_than_a_turn_takes_is_served) {
  begin_turns();
  const std::uint64_t before = in_turns();
  expect_answers(crowd(100, "/up/x"), "HTTP/1.1 200 ");
  EXPECT_GE(in_turns(), before + 100);
}

TEST_F(AcceptorTest, at_the_end_nobody_who_waits_is_lost) {
  begin_turns();
  const std::vector<int> waiting = crowd(20, "/nowhere");
  expected_end_ = "\r\n\r\n404 Not Found\n";
  worker_->request_drain();
  expect_answers(waiting, "HTTP/1.1 404 ");
}

}  // namespace
}  // namespace ringside::proxy
