// Connections of one ring: reuse, limits, the queue, failures, the end.
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "pools_fixture.h"

namespace ringside::upstream::test {
namespace {

// ---- connecting

TEST_F(PoolsTest, connects_and_hands_out_the_session) {
  Request request(chunks_);
  acquire(request);
  EXPECT_TRUE(request.waiting());
  EXPECT_FALSE(request.queued());
  int fd = newest();
  EXPECT_EQ(connect_target(machine_, fd), "10.0.0.1:80");
  EXPECT_EQ(server().open(), 1U);
  machine_.finish(IORING_OP_CONNECT, fd, 0);
  EXPECT_EQ(request.news(), (News{"session"}));
  EXPECT_FALSE(request.waiting());
  EXPECT_EQ(&request.session->server(), &server());
  EXPECT_EQ(pools_.counters().connects, 1U);
  machine_.pass_ms(upstream().timeouts.connect_ms + 1);
  EXPECT_EQ(request.news(), News{}) << "the connect's time-out goes with the connect";
  serve(request, fd);
  EXPECT_FALSE(request.reused);
}

TEST_F(PoolsTest, a_refused_connect_names_the_server_and_gives_the_place_back) {
  Request request(chunks_);
  acquire(request);
  int fd = newest();
  machine_.finish(IORING_OP_CONNECT, fd, -ECONNREFUSED);
  EXPECT_EQ(request.news(), (News{"none: refused"}));
  EXPECT_EQ(request.server, &server());
  EXPECT_EQ(request.error.origin, base::Origin::upstream);
  EXPECT_EQ(request.error.retry, base::Retry::yes) << "nothing reached a server";
  EXPECT_FALSE(request.waiting());
  machine_.finish_close(fd);
  EXPECT_EQ(server().open(), 0U);
}

TEST_F(PoolsTest, a_connect_that_takes_too_long_is_ended) {
  upstream().timeouts.connect_ms = 500;
  Request request(chunks_);
  acquire(request);
  int fd = newest();
  machine_.pass_ms(499);
  EXPECT_EQ(request.news(), News{});
  machine_.pass_ms(2);
  EXPECT_EQ(request.news(), (News{"none: timed out"}));
  EXPECT_EQ(request.server, &server());
  EXPECT_EQ(request.error.origin, base::Origin::upstream);
  EXPECT_EQ(request.error.retry, base::Retry::yes);
  EXPECT_TRUE(machine_.cancelled(machine_.look(IORING_OP_CONNECT, fd)));
  machine_.tidy();
  EXPECT_EQ(server().open(), 0U);
}

TEST_F(PoolsTest, no_descriptor_is_no_servers_fault) {
  sys_.open_errno = EMFILE;
  Request request(chunks_);
  acquire(request);
  EXPECT_EQ(request.news(), (News{"none: out of descriptors"}));
  EXPECT_EQ(request.server, nullptr);
  EXPECT_EQ(request.error.origin, base::Origin::self);
  ASSERT_EQ(log_.lines.size(), 1U);
  EXPECT_EQ(log_.lines[0],
            "no connection to a server of app: out of descriptors: raise RLIMIT_NOFILE "
            "(LimitNOFILE= of systemd, ulimit -n) or lower limits.connections");
  EXPECT_EQ(server().open(), 0U);
  EXPECT_TRUE(pools_.idle());
}

class NoSessionTest : public PoolsTest {
 protected:
  NoSessionTest() : PoolsTest(snapshot(1), {.sessions_max = 1}) {}
};

TEST_F(NoSessionTest, all_sessions_in_use_is_told_and_takes_no_place) {
  Request first(chunks_), second(chunks_);
  int fd = connect(first);
  acquire(second);
  EXPECT_EQ(second.news(), (News{"none: limit reached"}));
  EXPECT_EQ(second.server, nullptr);
  EXPECT_EQ(log_.lines,
            std::vector<std::string>{"no connection to a server of app: limit reached"});
  EXPECT_EQ(server().open(), 1U);
  serve(first, fd);
}

TEST_F(PoolsTest, a_server_whose_name_has_no_address_yet) {
  config::Snapshot named = snapshot(1);
  named.upstreams[0].servers[0].endpoint.kind = config::Endpoint::Kind::name;
  Directory directory(named, 1);
  std::unique_ptr<PoolTable> table = pools_.make_table(named, directory);
  Request request(chunks_);
  pools_.acquire(request, *table, 0, nullptr);
  EXPECT_EQ(request.news(), (News{"none: no address"}));
  EXPECT_EQ(request.error.origin, base::Origin::upstream);
  EXPECT_EQ(request.server, nullptr);
  // And once it has two, they take turns.
  directory.server(0, 0).set_addresses(
      {*net::Address::from_ip("10.1.0.1", 80), *net::Address::from_ip("10.1.0.2", 80)});
  std::string order;
  for (int i = 0; i < 4; ++i) {
    pools_.acquire(request, *table, 0, nullptr);
    machine_.settle();
    order += connect_target(machine_, newest()) + ' ';
    machine_.finish(IORING_OP_CONNECT, newest(), -EHOSTUNREACH);
    EXPECT_EQ(request.news(), (News{"none: unreachable"}));
    machine_.tidy();
  }
  EXPECT_EQ(order, "10.1.0.1:80 10.1.0.2:80 10.1.0.1:80 10.1.0.2:80 ");
  EXPECT_EQ(directory.server(0, 0).open(), 0U);
}

// ---- reuse

TEST_F(PoolsTest, an_idle_connection_is_used_again_at_once) {
  Request request(chunks_);
  int fd = connect(request);
  serve(request, fd);
  pools_.acquire(request, *table_, 0, nullptr);
  EXPECT_EQ(request.news(), (News{"session"})) << "before acquire returns";
  EXPECT_EQ(pools_.counters().connects, 1U);
  EXPECT_EQ(pools_.counters().reuses, 1U);
  EXPECT_EQ(server().open(), 1U);
  EXPECT_EQ(sys_.open.size(), 1U);
  serve(request, fd);
  EXPECT_TRUE(request.reused);
}

TEST_F(PoolsTest, the_most_recently_used_is_used_first) {
  Request first(chunks_), second(chunks_), third(chunks_);
  int one = connect(first);
  int two = connect(second);
  int three = connect(third);
  serve(second, two);
  serve(third, three);
  serve(first, one);
  EXPECT_EQ(server().idle(0), 3U);
  for (int fd : {one, three, two}) {
    Request& request = fd == one ? first : fd == three ? third : second;
    acquire(request);
    EXPECT_EQ(request.news(), (News{"session"}));
    send(request, fd);
    EXPECT_TRUE(machine_.receiving(fd));
  }
  EXPECT_EQ(server().idle(0), 0U);
  for (Request* request : {&first, &second, &third})
    request->abandon();
}

TEST_F(PoolsTest, no_more_than_idle_max_are_kept) {
  upstream().idle_max = 1;
  Request first(chunks_), second(chunks_);
  int one = connect(first);
  int two = connect(second);
  serve(first, one);
  serve(second, two);
  machine_.tidy();
  EXPECT_EQ(sys_.open, std::set<int>{one});
  EXPECT_EQ(server().idle(0), 1U);
  EXPECT_EQ(server().open(), 1U);
}

TEST_F(PoolsTest, an_idle_connection_is_closed_after_its_time) {
  upstream().idle_timeout_ms = 1'000;
  Request request(chunks_);
  int fd = connect(request);
  serve(request, fd);
  machine_.pass_ms(900);
  acquire(request);
  machine_.pass_ms(2'000);
  EXPECT_TRUE(sys_.open.contains(fd)) << "in use it has no such time";
  request.news();
  serve(request, fd);
  machine_.pass_ms(900);
  machine_.tidy();
  EXPECT_EQ(server().idle(0), 1U);
  machine_.pass_ms(101);
  EXPECT_EQ(server().idle(0), 0U);
  machine_.tidy();
  EXPECT_TRUE(sys_.open.empty());
  EXPECT_EQ(server().open(), 0U);
}

TEST_F(PoolsTest, an_idle_connection_that_the_server_gave_up_is_not_used) {
  for (int how = 0; how < 3; ++how) {
    SCOPED_TRACE(how);
    Request request(chunks_);
    int fd = connect(request);
    serve(request, fd);
    ASSERT_TRUE(machine_.receiving(fd)) << "it listens for the server's end";
    if (how == 0) machine_.end_receive(fd, 0);
    if (how == 1) machine_.end_receive(fd, -ECONNRESET);
    if (how == 2) machine_.arrive(fd, "HTTP/1.1 408 Request Timeout\r\n\r\n");
    EXPECT_EQ(server().idle(0), 0U);
    acquire(request);
    EXPECT_NE(newest(), fd);
    EXPECT_TRUE(machine_.waits(IORING_OP_CONNECT, newest()));
    machine_.finish(IORING_OP_CONNECT, newest(), 0);
    EXPECT_EQ(request.news(), (News{"session"}));
    request.abandon();
    machine_.tidy();
    EXPECT_EQ(server().open(), 0U);
  }
}

TEST_F(PoolsTest, abandoned_while_it_connects_the_connection_is_kept_for_the_next) {
  Request first(chunks_), second(chunks_);
  acquire(first);
  int fd = newest();
  pools_.abandon(first);
  EXPECT_FALSE(first.waiting());
  machine_.finish(IORING_OP_CONNECT, fd, 0);
  EXPECT_EQ(first.news(), News{});
  EXPECT_EQ(server().idle(0), 1U);
  acquire(second);
  EXPECT_EQ(second.news(), (News{"session"}));
  serve(second, fd);
  EXPECT_FALSE(second.reused) << "it had served nobody yet";
}

TEST_F(PoolsTest, abandoned_while_it_connects_nobody_hears_of_the_failure) {
  Request request(chunks_);
  acquire(request);
  pools_.abandon(request);
  machine_.finish(IORING_OP_CONNECT, newest(), -ECONNREFUSED);
  machine_.tidy();
  EXPECT_EQ(request.news(), News{});
  EXPECT_EQ(server().open(), 0U);
  acquire(request);
  pools_.abandon(request);
  machine_.pass_ms(upstream().timeouts.connect_ms + 1);
  machine_.tidy();
  EXPECT_EQ(request.news(), News{});
  EXPECT_EQ(server().open(), 0U);
  pools_.abandon(request);  // allowed
}

// ---- the queue

class QueueTest : public PoolsTest {
 protected:
  QueueTest() : PoolsTest(snapshot(1, 1)) { fd_ = connect(user_); }
  Request user_{chunks_};
  int fd_;
};

TEST_F(QueueTest, a_full_server_is_waited_for_first_come_first_served) {
  Request first(chunks_), second(chunks_);
  acquire(first);
  acquire(second);
  EXPECT_TRUE(first.queued());
  EXPECT_TRUE(second.queued());
  EXPECT_EQ(server().waiting(0), 2U);
  EXPECT_EQ(server().open(), 1U);
  serve(user_, fd_);
  EXPECT_EQ(first.news(), (News{"session"}));
  EXPECT_EQ(second.news(), News{});
  EXPECT_EQ(server().waiting(0), 1U);
  serve(first, fd_);
  EXPECT_TRUE(first.reused);
  EXPECT_EQ(second.news(), (News{"session"}));
  serve(second, fd_);
  EXPECT_EQ(pools_.counters().connects, 1U);
  machine_.pass_ms(upstream().timeouts.queue_ms + 1);
  EXPECT_EQ(first.news(), News{}) << "the time-out of the queue goes with the queue";
}

TEST_F(QueueTest, nobody_overtakes_the_queue) {
  Request first(chunks_), second(chunks_);
  acquire(first);
  first.action = [&](const std::string& event) {
    if (event == "session") pools_.acquire(second, *table_, 0, nullptr);
  };
  send(user_, fd_);
  machine_.arrive(fd_, "HTTP/1.1 204 No Content\r\n\r\n");
  user_.finish();
  machine_.settle();
  EXPECT_EQ(first.news(), (News{"session"}));
  EXPECT_TRUE(second.queued());
  first.action = nullptr;
  serve(first, fd_);
  EXPECT_EQ(second.news(), (News{"session"}));
  serve(second, fd_);
}

TEST_F(QueueTest, nor_does_whoever_asks_while_a_place_is_free_and_the_queue_is_being_served) {
  Request first(chunks_), second(chunks_), third(chunks_);
  acquire(first);
  acquire(second);
  first.action = [&](const std::string&) {
    sys_.open_errno = 0;
    pools_.acquire(third, *table_, 0, nullptr);
  };
  user_.abandon();
  sys_.open_errno = EMFILE;
  machine_.tidy();
  EXPECT_EQ(first.news(), (News{"none: out of descriptors"}));
  EXPECT_FALSE(second.queued());
  EXPECT_TRUE(third.queued());
  machine_.finish(IORING_OP_CONNECT, newest(), 0);
  EXPECT_EQ(second.news(), (News{"session"}));
  serve(second, newest());
  EXPECT_EQ(third.news(), (News{"session"}));
  serve(third, newest());
}

TEST_F(QueueTest, a_connection_that_ends_leaves_its_place_to_the_queue) {
  Request waiting(chunks_);
  acquire(waiting);
  user_.abandon();
  machine_.tidy();
  int fd = newest();
  EXPECT_NE(fd, fd_);
  machine_.finish(IORING_OP_CONNECT, fd, 0);
  EXPECT_EQ(waiting.news(), (News{"session"}));
  EXPECT_EQ(server().open(), 1U);
  serve(waiting, fd);
}

TEST_F(QueueTest, a_refused_connect_does_not_stop_the_queue) {
  Request first(chunks_), second(chunks_);
  acquire(first);
  acquire(second);
  user_.abandon();
  machine_.tidy();
  machine_.finish(IORING_OP_CONNECT, newest(), -ECONNREFUSED);
  EXPECT_EQ(first.news(), (News{"none: refused"}));
  machine_.tidy();
  machine_.finish(IORING_OP_CONNECT, newest(), 0);
  EXPECT_EQ(second.news(), (News{"session"}));
  serve(second, newest());
}

TEST_F(QueueTest, a_full_queue_refuses_at_once) {
  upstream().queue_max = 1;
  Request first(chunks_), second(chunks_);
  acquire(first);
  acquire(second);
  EXPECT_EQ(second.news(), (News{"none: queue full"}));
  EXPECT_EQ(second.server, nullptr);
  EXPECT_EQ(second.error.origin, base::Origin::self);
  EXPECT_EQ(second.error.retry, base::Retry::no);
  EXPECT_FALSE(second.waiting());
  pools_.abandon(first);
  EXPECT_EQ(server().waiting(0), 0U);
  acquire(second);
  EXPECT_TRUE(second.queued()) << "there is a place in the queue again";
  pools_.abandon(second);
  user_.abandon();
}

TEST_F(QueueTest, whoever_waits_too_long_is_told_and_is_not_served_later) {
  upstream().timeouts.queue_ms = 300;
  Request waiting(chunks_);
  acquire(waiting);
  machine_.pass_ms(299);
  EXPECT_EQ(waiting.news(), News{});
  machine_.pass_ms(2);
  EXPECT_EQ(waiting.news(), (News{"none: timed out"}));
  EXPECT_EQ(waiting.server, nullptr);
  EXPECT_EQ(waiting.error.origin, base::Origin::self);
  EXPECT_FALSE(waiting.waiting());
  EXPECT_EQ(server().waiting(0), 0U);
  serve(user_, fd_);
  EXPECT_EQ(waiting.news(), News{});
  EXPECT_EQ(server().idle(0), 1U);
}

TEST_F(QueueTest, whoever_left_the_queue_is_not_served) {
  Request first(chunks_), second(chunks_);
  acquire(first);
  acquire(second);
  pools_.abandon(first);
  EXPECT_FALSE(first.waiting());
  serve(user_, fd_);
  EXPECT_EQ(first.news(), News{});
  EXPECT_EQ(second.news(), (News{"session"}));
  machine_.pass_ms(upstream().timeouts.queue_ms + 1);
  EXPECT_EQ(first.news(), News{});
  serve(second, fd_);
}

// ---- several servers

class ServersTest : public PoolsTest {
 protected:
  explicit ServersTest(config::Snapshot config = snapshot(2)) : PoolsTest(std::move(config)) {}
  // The last digit of the address of each of so many connections.
  std::string order(int count, const SharedServer* avoid = nullptr) {
    std::string out;
    for (int i = 0; i < count; ++i) {
      Request request(chunks_);
      acquire(request, avoid);
      std::string target = connect_target(machine_, newest());
      out += target[target.size() - 4];
      machine_.finish(IORING_OP_CONNECT, newest(), 0);
      request.abandon();
      machine_.tidy();
    }
    return out;
  }
};

TEST_F(ServersTest, they_take_turns) {
  EXPECT_EQ(order(4), "1212");
}

TEST_F(ServersTest, the_one_that_just_failed_is_avoided) {
  EXPECT_EQ(order(3, &server(1)), "111");
  EXPECT_EQ(order(3, &server(0)), "222");
}

TEST_F(ServersTest, one_without_an_address_is_left_out) {
  config::Snapshot config = snapshot(2);
  config.upstreams[0].servers[0].endpoint.kind = config::Endpoint::Kind::name;
  Directory directory(config, 1);
  auto table = pools_.make_table(config, directory);
  table_.swap(table);
  EXPECT_EQ(order(2), "22");
  table_.swap(table);
}

class WeightsTest : public ServersTest {
 protected:
  static config::Snapshot weighted() {
    config::Snapshot out = snapshot(2);
    out.upstreams[0].servers[0].weight = 3;
    return out;
  }
  WeightsTest() : ServersTest(weighted()) {}
};

TEST_F(WeightsTest, weights_share_smoothly) {
  EXPECT_EQ(order(8), "11211121");
}

class FullServerTest : public ServersTest {
 protected:
  FullServerTest() : ServersTest(snapshot(2, 1)) {}
};

TEST_F(FullServerTest, a_full_server_is_passed_over_and_the_queue_takes_whichever_is_free_first) {
  Request first(chunks_), second(chunks_), third(chunks_);
  int one = connect(first);
  int two = connect(second);
  EXPECT_NE(&first.session->server(), &second.session->server());
  acquire(third);
  EXPECT_TRUE(third.queued());
  SharedServer* freed = &second.session->server();
  serve(second, two);
  EXPECT_EQ(third.news(), (News{"session"}));
  EXPECT_EQ(&third.session->server(), freed);
  serve(third, two);
  serve(first, one);
}

TEST_F(FullServerTest, the_one_to_avoid_is_taken_when_there_is_no_other) {
  Request user(chunks_), again(chunks_);
  int fd = connect(user);
  SharedServer* full = &user.session->server();
  SharedServer* failed = full == &server(0) ? &server(1) : &server(0);
  acquire(again, failed);
  machine_.finish(IORING_OP_CONNECT, newest(), 0);
  ASSERT_EQ(again.news(), (News{"session"}));
  EXPECT_EQ(&again.session->server(), failed);
  again.abandon();
  serve(user, fd);
}

// ---- another configuration, and the end

TEST_F(PoolsTest, a_new_configuration_keeps_the_connections_of_servers_that_stay) {
  Request request(chunks_);
  int fd = connect(request);
  serve(request, fd);
  config::Snapshot next = snapshot(2);
  Directory directory(next, 1, &directory_);
  auto table = pools_.make_table(next, directory);
  table_.swap(table);
  table.reset();
  machine_.tidy();
  EXPECT_TRUE(sys_.open.contains(fd));
  acquire(request);
  machine_.settle();
  EXPECT_EQ(request.news(), (News{"session"})) << "idle, so the first to be taken";
  serve(request, fd);
  // It goes: so do its idle connections.
  config::Snapshot none;
  Directory empty(none, 1);
  table_ = pools_.make_table(none, empty);
  machine_.tidy();
  EXPECT_TRUE(sys_.open.empty());
  EXPECT_EQ(server().open(), 0U);
}

TEST_F(PoolsTest, a_server_that_goes_while_it_is_used_closes_when_it_is_done) {
  Request request(chunks_);
  int fd = connect(request);
  config::Snapshot none;
  Directory empty(none, 1);
  table_ = pools_.make_table(none, empty);
  machine_.tidy();
  EXPECT_TRUE(sys_.open.contains(fd));
  serve(request, fd);
  machine_.tidy();
  EXPECT_TRUE(sys_.open.empty());
}

TEST_F(PoolsTest, at_the_end_idle_ones_close_at_once_and_those_in_use_when_they_finish) {
  Request first(chunks_), second(chunks_);
  int one = connect(first);
  int two = connect(second);
  serve(first, one);
  pools_.close_idle();
  machine_.tidy();
  EXPECT_EQ(sys_.open, std::set<int>{two});
  EXPECT_FALSE(pools_.idle());
  serve(second, two);
  machine_.tidy();
  EXPECT_TRUE(sys_.open.empty());
  EXPECT_TRUE(pools_.idle());
}

}  // namespace
}  // namespace ringside::upstream::test
