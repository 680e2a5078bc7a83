// HTTP/2 clients of a worker.
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "../http/h2_peer.h"
#include "counting_allocator.h"
#include "worker_fixture.h"

namespace ringside::proxy {
namespace {

using namespace test;

struct H2ClientTest : WorkerTest {
  int greet(std::string_view settings = {}) {
    const int fd = connect();
    send(fd, std::string(h2_preface) + h2_settings(settings));
    return fd;
  }
  // Turns the loop until `streams` streams have ended since the last call, or the connection has.
  int receive_ends(int fd, int streams) {
    int ended = 0;
    for (int turns = 0; ended < streams && turns < 5000; ++turns) {
      worker_->run_once(1);
      const ssize_t got = ::recv(fd, in_, sizeof in_, MSG_DONTWAIT);
      if (got == 0) break;
      if (got > 0) ended += count_ends({in_, static_cast<std::size_t>(got)});
    }
    return ended;
  }
  // Of frames that come whole, as those of small answers do; allocates nothing.
  static int count_ends(std::string_view bytes) {
    int ends = 0;
    auto byte = [&](std::size_t at) { return static_cast<std::uint8_t>(bytes[at]); };
    while (bytes.size() >= 9) {
      const std::size_t length = std::size_t{byte(0)} << 16 | byte(1) << 8 | byte(2);
      if (byte(3) <= 1 && (byte(4) & h2_end_stream) != 0) ++ends;
      bytes.remove_prefix(std::min(bytes.size(), 9 + length));
    }
    return ends;
  }

  char in_[65536];
};

TEST_F(H2ClientTest, many_requests_are_served_at_once) {
  const int fd = greet();
  std::string input;
  for (std::uint32_t i = 0; i < 50; ++i)
    input += h2_headers(2 * i + 1, h2_request("GET", "/up/x"), true);
  send(fd, input);
  EXPECT_EQ(receive_ends(fd, 50), 50);
  EXPECT_EQ(records_.count, 50);
  EXPECT_EQ(records_.end.cause, Cause::complete);
}

TEST_F(H2ClientTest, the_preface_may_come_in_pieces) {
  const int fd = connect();
  for (char c : std::string(h2_preface) + h2_settings()) {
    send(fd, {&c, 1});
    worker_->run_once(1);
  }
  send(fd, h2_headers(1, h2_request("GET", "/up/x"), true));
  EXPECT_EQ(receive_ends(fd, 1), 1);
}

TEST_F(H2ClientTest, what_only_begins_like_the_preface_is_http_1) {
  const int fd = connect();
  send(fd, "PRI * HTTP/2.0\r\n\r\nS");
  worker_->run_once(1);
  expected_end_ = "never";
  send(fd, "X");
  char out[4096];
  const std::string answer(out, receive(fd, out, sizeof out));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 505 ")) << answer;
}

TEST_F(H2ClientTest, steady_state_allocates_nothing) {
  const int fd = greet();
  std::uint32_t id = 1;
  auto requests = [&](int count) {
    std::string heads;
    for (; count > 0; --count, id += 2)
      heads += h2_headers(id, h2_request("GET", "/up/x", {{"user-agent", "test"}}), true);
    return heads;
  };
  // More at once than later, where that depends on how they bunch in the socket; and with two
  // values of Date, since the table of header fields holds more entries then.
  for (int date = 0; date < 2; ++date) {
    for (int round = 0; round < 30; ++round) {
      send(fd, requests(16));
      ASSERT_EQ(receive_ends(fd, 16), 16);
    }
    const std::time_t now = std::time(nullptr);
    while (date == 0 && std::time(nullptr) == now)
      worker_->run_once(10);
  }
  std::vector<std::string> rounds(200);
  for (std::string& round : rounds)
    round = requests(8);
  const int before = records_.count;
  test::AllocationCount allocations;
  for (const std::string& round : rounds) {
    send(fd, round);
    ASSERT_EQ(receive_ends(fd, 8), 8);
  }
  EXPECT_EQ(allocations.count(), 0U) << "for " << records_.count - before << " requests";
  EXPECT_EQ(records_.count - before, 1600);
}

// What is made here is copied into blocks, of which a ring has 1280 with 64 connections.
TEST_F(H2ClientTest, blocks_are_used_again) {
  auto changed = std::make_shared<config::Snapshot>(*snapshot("one", origin_port_));
  changed->sites[0].routes = {respond("/*", std::string(9000, 'x'))};
  worker_->request_swap(std::make_shared<Runtime>(changed, 1, runtime_.get()));
  worker_->run_once(1);
  const int fd = greet(h2_number(4, 2) + h2_number(1U << 30, 4));
  send(fd, h2_window(0, 1U << 30));
  for (std::uint32_t i = 0; i < 1000; ++i) {
    send(fd, h2_headers(2 * i + 1, h2_request("GET", "/"), true));
    for (int turns = 0; records_.count <= static_cast<int>(i) && turns < 1000; ++turns) {
      worker_->run_once(1);
      while (::recv(fd, in_, sizeof in_, MSG_DONTWAIT) > 0) {
      }
    }
    ASSERT_EQ(records_.end.cause, Cause::complete) << "request " << i;
  }
  EXPECT_EQ(records_.count, 1000);
}

TEST_F(H2ClientTest, a_connection_that_breaks_takes_its_exchanges_with_it) {
  const int fd = greet(h2_number(4, 2) + h2_number(0, 4));  // no window: nothing of a body leaves
  send(fd, h2_headers(1, h2_request("GET", "/up/x"), true) +
               h2_headers(3, h2_request("POST", "/up/x"), false));
  while (worker_->holdings().exchanges < 2)
    worker_->run_once(1);
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  ::close(fd);
  std::erase(clients_, fd);
  for (int turns = 0; records_.count < 2 && turns < 1000; ++turns)
    worker_->run_once(1);
  EXPECT_EQ(records_.count, 2);
  EXPECT_EQ(records_.end.who, base::Origin::client);
}

TEST_F(H2ClientTest, stopping_ends_streams_that_are_open) {
  const int fd = greet();
  send(fd, h2_headers(1, h2_request("POST", "/up/x"), false));
  while (worker_->holdings().exchanges < 1)
    worker_->run_once(1);
  worker_->request_stop();
  for (int turns = 0; !worker_->finished() && turns < 1000; ++turns)
    worker_->run_once(10);
  EXPECT_TRUE(worker_->finished());
  EXPECT_EQ(records_.end, (EndReason{base::Origin::self, records_.end.stage, Cause::shutdown}));
}

}  // namespace
}  // namespace ringside::proxy
