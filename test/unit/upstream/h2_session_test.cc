// Connections that speak HTTP/2: who shares them, and what becomes of requests when they end.
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "../http/h2_peer.h"
#include "pools_fixture.h"

namespace ringside::upstream::test {
namespace {

using namespace ringside::test;

constexpr std::uint8_t type_reset = 3;
constexpr std::uint8_t type_ping = 6;
constexpr std::uint8_t type_goaway = 7;
constexpr std::uint8_t type_window = 8;

config::Snapshot h2_snapshot(std::uint32_t connections_max, std::uint32_t streams_max) {
  config::Snapshot out = snapshot(1, connections_max);
  config::Upstream& upstream = out.upstreams[0];
  upstream.protocol = upstream.servers[0].protocol = config::UpstreamProtocol::h2;
  upstream.servers[0].streams_max = streams_max;
  return out;
}

class H2SessionTest : public PoolsTest {
 protected:
  explicit H2SessionTest(std::uint32_t connections_max = 0, std::uint32_t streams_max = 100)
      : PoolsTest(h2_snapshot(connections_max, streams_max), {.window_bytes = 65'535}) {}
  ~H2SessionTest() override {
    for (auto& request : requests_) {
      request->action = nullptr;
      if (request->session != nullptr) request->abandon();
      request->arena.release();
    }
    for (const int fd : std::vector<int>(sys_.open.begin(), sys_.open.end())) {
      if (machine_.waits(IORING_OP_CONNECT, fd))
        machine_.finish(IORING_OP_CONNECT, fd, -ECONNREFUSED);
    }
    pools_.close_idle();
    machine_.settle();
    pass_on();
  }

  Request& make() {
    requests_.push_back(std::make_unique<Request>(chunks_));
    return *requests_.back();
  }
  // What the connection sends now, in frames.
  std::vector<H2Frame> frames(int fd) {
    std::string out = machine_.leave_all(fd);
    if (out.starts_with(h2_preface)) out.erase(0, h2_preface.size());
    return h2_split(out);
  }
  // Those of a type.
  std::vector<H2Frame> sent(int fd, std::uint8_t type) {
    std::vector<H2Frame> out;
    for (const H2Frame& frame : frames(fd)) {
      if (frame.type == type) out.push_back(frame);
    }
    return out;
  }
  // Lets everything that waits leave, on every connection.
  void pass_on() {
    for (const int fd : std::vector<int>(sys_.open.begin(), sys_.open.end()))
      machine_.leave_all(fd);
    machine_.settle();
  }
  // The connection that was opened last comes to stand.
  int greet(std::string_view settings = {}) {
    const int fd = newest();
    machine_.finish(IORING_OP_CONNECT, fd, 0);
    machine_.leave_all(fd);
    machine_.arrive(fd, h2_settings(settings));
    machine_.leave_all(fd);
    return fd;
  }
  // A request with a connection of its own, if there is none, that has left.
  Request& ask(int& fd) {
    Request& request = make();
    acquire(request);
    if (request.waiting()) fd = greet();
    EXPECT_EQ(request.news(), (News{"session"}));
    request.send();
    machine_.settle();
    pass_on();
    return request;
  }
  static std::string answer(std::uint32_t stream, bool end = true) {
    return h2_headers(stream, {{":status", "200"}}, end);
  }

  std::vector<std::unique_ptr<Request>> requests_;
};

TEST_F(H2SessionTest, nothing_is_sent_before_the_server_has_spoken) {
  Request& request = make();
  acquire(request);
  const int fd = newest();
  machine_.finish(IORING_OP_CONNECT, fd, 0);
  EXPECT_TRUE(machine_.leave_all(fd).starts_with(h2_preface));
  EXPECT_EQ(request.news(), News{});
  EXPECT_TRUE(request.waiting());
  machine_.arrive(fd, h2_settings());
  EXPECT_EQ(request.news(), (News{"session"}));
}

TEST_F(H2SessionTest, a_server_that_speaks_http_1_fails_the_connect) {
  Request& request = make();
  acquire(request);
  const int fd = newest();
  machine_.finish(IORING_OP_CONNECT, fd, 0);
  machine_.leave_all(fd);
  machine_.arrive(fd, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(request.news(), (News{"none: bad message"}));
  EXPECT_EQ(request.error.retry, base::Retry::yes) << "nothing reached it";
  EXPECT_EQ(request.server, &server());
}

TEST_F(H2SessionTest, a_server_that_says_nothing_fails_the_connect) {
  upstream().timeouts.connect_ms = 500;
  Request& request = make();
  acquire(request);
  machine_.finish(IORING_OP_CONNECT, newest(), 0);
  machine_.leave_all(newest());
  machine_.pass_ms(501);
  EXPECT_EQ(request.news(), (News{"none: timed out"}));
}

TEST_F(H2SessionTest, requests_wait_together_for_one_connection) {
  Request& one = make();
  Request& two = make();
  Request& three = make();
  acquire(one);
  acquire(two);
  acquire(three);
  EXPECT_EQ(pools_.counters().connects, 1U);
  pools_.abandon(two);
  greet();
  EXPECT_EQ(one.news(), (News{"session"}));
  EXPECT_EQ(two.news(), News{});
  EXPECT_EQ(three.news(), (News{"session"}));
  EXPECT_EQ(pools_.counters().connects, 1U);
}

TEST_F(H2SessionTest, a_connect_that_fails_fails_all_who_wait_for_it) {
  Request& one = make();
  Request& two = make();
  acquire(one);
  acquire(two);
  machine_.finish(IORING_OP_CONNECT, newest(), -ECONNREFUSED);
  EXPECT_EQ(one.news(), (News{"none: refused"}));
  EXPECT_EQ(two.news(), (News{"none: refused"}));
}

TEST_F(H2SessionTest, answers_come_in_any_order) {
  int fd = -1;
  Request& one = ask(fd);
  Request& two = ask(fd);
  EXPECT_FALSE(one.reused);
  EXPECT_TRUE(two.reused);
  machine_.arrive(fd, answer(3, false) + h2_data(3, "abc", true) + answer(1));
  EXPECT_EQ(two.news(), (News{"head 200", "body", "end"}));
  EXPECT_EQ(two.body, "abc");
  EXPECT_EQ(one.news(), (News{"head 200", "end"}));
  EXPECT_EQ(one.session->request_pending(), 0U);
  one.finish();
  two.finish();
  machine_.settle();
  EXPECT_EQ(server().open(), 1U) << "it is kept";
}

TEST_F(H2SessionTest, a_parked_response_keeps_its_window_and_holds_up_no_other) {
  int fd = -1;
  Request& slow = ask(fd);
  Request& other = ask(fd);
  slow.session->park();
  std::string in = answer(1, false);
  for (int i = 0; i < 4; ++i)
    in += h2_data(1, std::string(10'000, 'x'), i == 3);
  for (std::size_t at = 0; at < in.size(); at += 512)
    machine_.arrive(fd, std::string_view(in).substr(at, 512));
  machine_.arrive(fd, answer(3));
  EXPECT_EQ(other.news(), (News{"head 200", "end"}));
  EXPECT_EQ(slow.news(), (News{"head 200"}));
  EXPECT_TRUE(sent(fd, type_window).empty());
  slow.session->resume();
  machine_.settle();
  EXPECT_EQ(slow.news(), (News{"body", "end"}));
  EXPECT_EQ(slow.body.size(), 40'000U);
}

TEST_F(H2SessionTest, abandoning_resets_the_stream_alone) {
  int fd = -1;
  Request& one = ask(fd);
  Request& two = ask(fd);
  one.abandon();
  machine_.settle();
  const auto resets = sent(fd, type_reset);
  ASSERT_EQ(resets.size(), 1U);
  EXPECT_EQ(resets[0].stream, 1U);
  EXPECT_EQ(resets[0].number(0), 8U);
  machine_.arrive(fd, answer(1) + answer(3));
  EXPECT_EQ(two.news(), (News{"head 200", "end"}));
}

TEST_F(H2SessionTest, what_a_server_refuses_may_be_sent_again) {
  int fd = -1;
  Request& request = ask(fd);
  machine_.arrive(fd, h2_reset(1, 7));
  EXPECT_EQ(request.news(), (News{"failed: refused, upstream, yes"}));
  Request& second = ask(fd);
  machine_.arrive(fd, h2_reset(3, 8));
  EXPECT_EQ(second.news(), (News{"failed: reset, upstream, no"}));
}

TEST_F(H2SessionTest, goaway_finishes_what_the_server_took) {
  int fd = -1;
  Request& one = ask(fd);
  Request& two = ask(fd);
  machine_.arrive(fd, h2_frame(type_goaway, 0, 0, h2_number(1, 4) + h2_number(0, 4)));
  EXPECT_EQ(two.news(), (News{"failed: refused, upstream, yes"}));
  EXPECT_NE(newest(), fd) << "another connection is on its way";
  machine_.arrive(fd, answer(1));
  EXPECT_EQ(one.news(), (News{"head 200", "end"}));
  one.finish();
  machine_.settle();
  pass_on();
  machine_.tidy();
  EXPECT_FALSE(sys_.open.contains(fd));
}

TEST_F(H2SessionTest, a_connection_that_ends_says_what_may_be_sent_again) {
  int fd = -1;
  Request& first = ask(fd);
  Request& later = ask(fd);
  Request& answered = ask(fd);
  Request& unsent = make();
  acquire(unsent);
  unsent.send();
  machine_.arrive(fd, answer(5, false));
  machine_.end_receive(fd, 0);
  EXPECT_EQ(first.news(), (News{"failed: closed, upstream, no"}));
  EXPECT_EQ(later.news(), (News{"failed: closed, upstream, reused_only"}));
  EXPECT_EQ(answered.news(), (News{"head 200", "failed: closed, upstream, no"}));
  EXPECT_EQ(unsent.error.code, base::ErrorCode::closed);
}

TEST_F(H2SessionTest, a_whole_response_outlives_its_connection) {
  int fd = -1;
  Request& request = ask(fd);
  request.session->park();
  machine_.arrive(fd, answer(1, false) + h2_data(1, "abc", true));
  machine_.end_receive(fd, 0);
  machine_.tidy();
  EXPECT_EQ(request.news(), (News{"head 200"}));
  request.session->resume();
  machine_.settle();
  EXPECT_EQ(request.news(), (News{"body", "end"}));
  request.finish();
  machine_.settle();
  EXPECT_EQ(pools_.sessions(), 0U);
}

TEST_F(H2SessionTest, an_idle_connection_is_closed_with_goaway) {
  upstream().idle_timeout_ms = 500;
  int fd = -1;
  Request& request = ask(fd);
  machine_.arrive(fd, answer(1));
  request.finish();
  machine_.settle();
  pass_on();
  machine_.pass_ms(499);
  EXPECT_TRUE(sent(fd, type_goaway).empty());
  machine_.pass_ms(2);
  EXPECT_EQ(sent(fd, type_goaway).size(), 1U);
  machine_.tidy();
  EXPECT_FALSE(sys_.open.contains(fd));
}

TEST_F(H2SessionTest, a_quiet_connection_is_asked_and_given_up) {
  upstream().ping_interval_ms = 1000;
  upstream().ping_timeout_ms = 200;
  int fd = -1;
  Request& request = ask(fd);
  machine_.pass_ms(1001);
  EXPECT_EQ(sent(fd, type_ping).size(), 1U);
  machine_.arrive(fd, h2_frame(type_ping, 1, 0, std::string(8, '\0')));
  machine_.pass_ms(5000);
  EXPECT_TRUE(sent(fd, type_ping).empty()) << "once in a quiet time";
  machine_.arrive(fd, answer(1, false));
  machine_.pass_ms(1001);
  machine_.pass_ms(1001);
  EXPECT_EQ(sent(fd, type_ping).size(), 1U);
  machine_.pass_ms(201);
  EXPECT_EQ(request.news(), (News{"head 200", "failed: timed out, upstream, no"}));
}

class FewStreamsTest : public H2SessionTest {
 protected:
  FewStreamsTest() : H2SessionTest(1, 2) {}
};

TEST_F(FewStreamsTest, requests_queue_for_a_stream) {
  int fd = -1;
  Request& one = ask(fd);
  ask(fd);
  Request& three = make();
  acquire(three);
  EXPECT_TRUE(three.queued());
  machine_.arrive(fd, answer(1));
  one.finish();
  machine_.settle();
  EXPECT_EQ(three.news(), (News{"session"}));
  EXPECT_EQ(pools_.counters().connects, 1U);
}

class MoreConnectionsTest : public H2SessionTest {
 protected:
  MoreConnectionsTest() : H2SessionTest(0, 8) {}
};

TEST_F(MoreConnectionsTest, another_is_opened_before_the_first_is_full) {
  int fd = -1;
  for (int i = 0; i < 6; ++i)
    ask(fd);
  EXPECT_EQ(pools_.counters().connects, 1U);
  ask(fd);
  EXPECT_EQ(pools_.counters().connects, 2U) << "one of eight is left";
  ask(fd);
  EXPECT_EQ(pools_.counters().connects, 2U) << "one is on its way";
  greet();
  Request& next = make();
  acquire(next);
  EXPECT_EQ(next.news(), (News{"session"}));
  EXPECT_EQ(pools_.counters().connects, 2U);
}

}  // namespace
}  // namespace ringside::upstream::test
