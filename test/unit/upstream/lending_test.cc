// Connections that move between the pools of two rings.
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "two_rings.h"

namespace ringside::upstream::test {
namespace {

TEST_F(LendingTest, an_idle_connection_of_another_ring_is_used_before_a_new_one_is_opened) {
  int fd = leave_idle(one_);
  Request request(chunks_);
  acquire(two_, request);
  EXPECT_TRUE(request.waiting());
  EXPECT_FALSE(request.queued());
  EXPECT_EQ(sys_.open, std::set<int>{fd}) << "no new one";
  mail();
  EXPECT_EQ(request.news(), (News{"session"}));
  EXPECT_EQ(server().idle(0), 0U);
  EXPECT_EQ(one_.pools.sessions(), 0U);
  EXPECT_EQ(one_.pools.counters().lent, 1U);
  EXPECT_EQ(two_.pools.counters().borrowed, 1U);
  EXPECT_EQ(two_.pools.counters().connects, 0U);
  EXPECT_EQ(server().open(), 1U) << "its place goes with it";
  EXPECT_FALSE(one_.machine.receiving(fd)) << "one ring only may receive";
  serve(two_, request, fd);
  EXPECT_TRUE(request.reused) << "it may be stale";
  EXPECT_EQ(server().idle(1), 1U) << "it stays with the ring that has the work";
  EXPECT_EQ(sys_.open, std::set<int>{fd});
}

TEST_F(LendingTest, it_goes_back_when_the_first_ring_needs_it_again) {
  int fd = leave_idle(one_);
  Request there(chunks_), here(chunks_);
  acquire(two_, there);
  mail();
  ASSERT_EQ(there.news(), (News{"session"}));
  serve(two_, there, fd);
  acquire(one_, here);
  mail();
  ASSERT_EQ(here.news(), (News{"session"}));
  serve(one_, here, fd);
  EXPECT_EQ(two_.pools.counters().lent, 1U);
  EXPECT_EQ(one_.pools.counters().borrowed, 1U);
  EXPECT_EQ(one_.pools.counters().connects, 1U);
}

TEST_F(LendingTest, the_least_recently_used_is_lent) {
  Request first(chunks_), second(chunks_);
  int old = connect(one_, first);
  int recent = connect(one_, second);
  serve(one_, first, old);
  serve(one_, second, recent);
  Request request(chunks_);
  acquire(two_, request);
  mail();
  ASSERT_EQ(request.news(), (News{"session"}));
  serve(two_, request, old);
}

TEST_F(LendingTest, an_idle_connection_of_its_own_comes_first) {
  Request request(chunks_);
  int own = connect(two_, request);
  leave_idle(one_);
  serve(two_, request, own);
  acquire(two_, request);
  EXPECT_EQ(request.news(), (News{"session"}));
  serve(two_, request, own);
  EXPECT_EQ(two_.pools.counters().borrowed, 0U);
  EXPECT_EQ(server().idle(0), 1U);
}

TEST_F(LendingTest, when_it_is_gone_the_borrower_connects_itself) {
  leave_idle(one_);
  Request here(chunks_), there(chunks_);
  acquire(two_, there);  // asks
  acquire(one_, here);   // but it is taken before the question comes
  ASSERT_EQ(here.news(), (News{"session"}));
  mail();
  EXPECT_EQ(there.news(), News{});
  EXPECT_TRUE(there.waiting());
  two_.machine.finish(IORING_OP_CONNECT, newest(), 0);
  EXPECT_EQ(there.news(), (News{"session"}));
  EXPECT_EQ(server().open(), 2U);
  there.abandon();
  here.abandon();
}

TEST_F(LendingTest, one_that_the_server_ends_on_the_way_is_not_lent) {
  for (bool speaks : {false, true}) {
    SCOPED_TRACE(speaks);
    int fd = leave_idle(one_);
    Request request(chunks_);
    acquire(two_, request);
    Machine::Operation receive = one_.machine.look(IORING_OP_RECV, fd);
    ASSERT_TRUE(one_.take_mail());
    Machine::Operation cancel = one_.machine.cancel_of(receive);
    if (speaks)
      one_.machine.put(fd, "HTTP/1.1 408 Request Timeout\r\n\r\n", true);
    else
      one_.machine.complete(receive, 0);
    one_.machine.finish(cancel, -ENOENT);
    mail();
    EXPECT_FALSE(sys_.open.contains(fd));
    EXPECT_EQ(server().open(), 1U) << "the new one's";
    EXPECT_EQ(request.news(), News{});
    two_.machine.finish(IORING_OP_CONNECT, newest(), 0);
    EXPECT_EQ(request.news(), (News{"session"}));
    request.abandon();
    mail();
    EXPECT_EQ(server().open(), 0U);
  }
}

TEST_F(LendingTest, whoever_does_not_want_it_any_more_leaves_it_to_the_next) {
  int fd = leave_idle(one_);
  Request request(chunks_);
  acquire(two_, request);
  two_.pools.abandon(request);
  EXPECT_FALSE(request.waiting());
  EXPECT_FALSE(two_.pools.idle()) << "an answer is to come";
  mail();
  EXPECT_EQ(request.news(), News{});
  EXPECT_EQ(server().idle(1), 1U);
  acquire(two_, request);
  EXPECT_EQ(request.news(), (News{"session"}));
  serve(two_, request, fd);
}

TEST_F(LendingTest, a_ring_that_ends_lends_nothing) {
  leave_idle(one_);
  Request request(chunks_);
  acquire(two_, request);
  one_.pools.close_idle();
  mail();
  EXPECT_EQ(request.news(), News{});
  two_.machine.finish(IORING_OP_CONNECT, newest(), 0);
  EXPECT_EQ(request.news(), (News{"session"}));
  request.abandon();
}

TEST_F(LendingTest, without_a_slot_the_borrowed_one_is_closed_and_its_place_given_back) {
  int fd = leave_idle(one_);
  Request request(chunks_);
  acquire(two_, request);
  struct Owner final : ring::Completer {
    void on_complete(std::uint8_t, const ring::Completion&) override {}
  };
  std::vector<std::unique_ptr<Owner>> owners;
  for (;;) {
    owners.push_back(std::make_unique<Owner>());
    if (!two_.machine.ring->attach(*owners.back())) break;
  }
  owners.pop_back();
  mail();
  EXPECT_FALSE(sys_.open.contains(fd));
  EXPECT_EQ(request.news(), (News{"none: limit reached"}));
  EXPECT_EQ(server().open(), 0U);
  for (const auto& owner : owners)
    two_.machine.ring->detach(*owner);
}

// ---- a server that takes one connection over both rings

class OnePlaceTest : public LendingTest {
 protected:
  explicit OnePlaceTest(std::uint32_t mail = 64) : LendingTest(1, mail) {}
};

TEST_F(OnePlaceTest, a_connection_that_falls_free_is_given_to_the_ring_that_waits) {
  Request user(chunks_), waiting(chunks_);
  int fd = connect(one_, user);
  acquire(two_, waiting);
  EXPECT_TRUE(waiting.queued());
  EXPECT_EQ(server().waiting(1), 1U);
  serve(one_, user, fd);
  mail();
  EXPECT_EQ(waiting.news(), (News{"session"}));
  EXPECT_EQ(server().waiting(1), 0U);
  EXPECT_EQ(server().open(), 1U);
  EXPECT_EQ(one_.pools.sessions(), 0U);
  serve(two_, waiting, fd);
  EXPECT_TRUE(waiting.reused);
}

TEST_F(OnePlaceTest, those_who_wait_here_come_before_those_who_wait_there) {
  Request user(chunks_), here(chunks_), there(chunks_);
  int fd = connect(one_, user);
  acquire(two_, there);
  acquire(one_, here);
  serve(one_, user, fd);
  mail();
  EXPECT_EQ(here.news(), (News{"session"}));
  EXPECT_EQ(there.news(), News{});
  serve(one_, here, fd);
  mail();
  EXPECT_EQ(there.news(), (News{"session"}));
  serve(two_, there, fd);
}

TEST_F(OnePlaceTest, a_place_that_falls_free_is_told_to_the_ring_that_waits) {
  Request user(chunks_), waiting(chunks_);
  int fd = connect(one_, user);
  acquire(two_, waiting);
  user.abandon();
  one_.machine.tidy();
  EXPECT_FALSE(sys_.open.contains(fd));
  mail();
  EXPECT_EQ(waiting.news(), News{});
  two_.machine.finish(IORING_OP_CONNECT, newest(), 0);
  EXPECT_EQ(waiting.news(), (News{"session"}));
  serve(two_, waiting, newest());
}

TEST_F(OnePlaceTest, given_to_a_ring_where_nobody_waits_any_more_it_is_idle_there) {
  Request user(chunks_), waiting(chunks_);
  int fd = connect(one_, user);
  acquire(two_, waiting);
  serve(one_, user, fd);
  one_.machine.tidy();
  two_.pools.abandon(waiting);
  mail();
  EXPECT_EQ(waiting.news(), News{});
  EXPECT_EQ(server().idle(1), 1U);
  EXPECT_TRUE(two_.machine.receiving(fd));
}

TEST_F(OnePlaceTest, given_to_a_ring_that_does_not_know_the_server_any_more_it_is_closed) {
  Request user(chunks_), waiting(chunks_);
  int fd = connect(one_, user);
  acquire(two_, waiting);
  serve(one_, user, fd);
  one_.machine.tidy();
  two_.pools.abandon(waiting);
  config::Snapshot none;
  Directory empty(none, 2);
  two_.table = two_.pools.make_table(none, empty);
  mail();
  EXPECT_FALSE(sys_.open.contains(fd));
  EXPECT_EQ(server().open(), 0U);
}

TEST_F(OnePlaceTest, a_server_that_a_reload_removed_stays_while_a_message_names_it) {
  auto directory = std::make_unique<Directory>(config_, 2);
  std::weak_ptr<SharedServer> removed = directory->share(0, 0);
  for (Side* side : {&one_, &two_})
    side->table = side->pools.make_table(config_, *directory);
  Request user(chunks_), waiting(chunks_);
  int fd = connect(one_, user);
  acquire(two_, waiting);
  serve(one_, user, fd);
  one_.machine.tidy();  // the connection is in the mail
  two_.pools.abandon(waiting);
  config::Snapshot none;
  Directory empty(none, 2);
  for (Side* side : {&one_, &two_})
    side->table = side->pools.make_table(none, empty);
  directory.reset();
  ASSERT_FALSE(removed.expired());
  mail();
  EXPECT_FALSE(sys_.open.contains(fd));
  EXPECT_EQ(removed.lock()->open(), 0U);
}

TEST_F(LendingTest, a_server_that_a_reload_removed_while_one_of_its_connections_was_asked_for) {
  int fd = leave_idle(one_);
  Request request(chunks_);
  acquire(two_, request);
  two_.pools.abandon(request);
  config::Snapshot none;
  Directory empty(none, 2);
  two_.table = two_.pools.make_table(none, empty);
  mail();
  EXPECT_EQ(request.news(), News{});
  EXPECT_FALSE(sys_.open.contains(fd)) << "nobody can use it here";
  EXPECT_EQ(server().open(), 0U);
  EXPECT_TRUE(two_.pools.idle());
}

TEST_F(OnePlaceTest, a_borrower_that_finds_nothing_and_no_place_waits) {
  leave_idle(one_);
  Request here(chunks_), there(chunks_);
  acquire(two_, there);
  acquire(one_, here);
  int fd = newest();
  mail();
  EXPECT_TRUE(there.queued());
  EXPECT_EQ(here.news(), (News{"session"}));
  serve(one_, here, fd);
  mail();
  EXPECT_EQ(there.news(), (News{"session"}));
  serve(two_, there, fd);
}

// ---- mailboxes that are full

class SmallMailTest : public OnePlaceTest {
 protected:
  SmallMailTest() : OnePlaceTest(2) {}
  void fill(unsigned ring) {
    // Of a server that is known nowhere, so it means nothing to whoever gets it.
    while (peers_.post(nullptr, ring, {.kind = Pools::message_place_free, .object = &unknown_})) {
    }
  }
  SharedServer unknown_{config::UpstreamServer{}, 2};
};

TEST_F(SmallMailTest, a_connection_that_cannot_be_posted_is_posted_later) {
  Request user(chunks_), waiting(chunks_);
  int fd = connect(one_, user);
  acquire(two_, waiting);
  fill(1);
  serve(one_, user, fd);
  one_.machine.tidy();
  EXPECT_FALSE(one_.pools.idle()) << "a descriptor is still to be posted";
  EXPECT_TRUE(sys_.open.contains(fd));
  one_.machine.pass_ms(2);
  EXPECT_FALSE(one_.pools.idle()) << "and again";
  mail();
  EXPECT_EQ(waiting.news(), News{});
  one_.machine.pass_ms(2);
  EXPECT_TRUE(one_.pools.idle());
  mail();
  EXPECT_EQ(waiting.news(), (News{"session"}));
  serve(two_, waiting, fd);
}

TEST_F(SmallMailTest, who_cannot_be_asked_is_not_waited_for) {
  leave_idle(one_);
  fill(0);
  Request request(chunks_);
  acquire(two_, request);
  EXPECT_TRUE(request.queued()) << "the only place is taken";
  two_.pools.abandon(request);
}

TEST_F(SmallMailTest, at_the_end_what_cannot_be_posted_is_closed) {
  Request user(chunks_), waiting(chunks_);
  int fd = connect(one_, user);
  acquire(two_, waiting);
  fill(1);
  serve(one_, user, fd);
  one_.machine.tidy();
  two_.pools.abandon(waiting);
  one_.pools.close_idle();
  one_.machine.pass_ms(2);
  EXPECT_TRUE(one_.pools.idle());
  EXPECT_FALSE(sys_.open.contains(fd));
  EXPECT_EQ(server().open(), 0U);
}

}  // namespace
}  // namespace ringside::upstream::test
