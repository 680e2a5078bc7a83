// Requests that wait for a place when the proxy begins to drain are in flight like any other.
#include <gtest/gtest.h>

#include "two_rings.h"

namespace ringside::upstream::test {
namespace {

class OnePlaceDrainTest : public LendingTest {
 protected:
  OnePlaceDrainTest() : LendingTest(1) {}
};

TEST_F(OnePlaceDrainTest, whoever_waits_gets_the_place_that_falls_free) {
  Request user(chunks_), waiting(chunks_);
  int fd = connect(one_, user);
  acquire(one_, waiting);
  ASSERT_TRUE(waiting.queued());
  one_.pools.close_idle();
  two_.pools.close_idle();
  serve(one_, user, fd);
  mail();
  EXPECT_FALSE(sys_.open.contains(fd)) << "not kept";
  ASSERT_FALSE(waiting.queued()) << "it would wait for its time-out, with the place free";
  one_.machine.finish(IORING_OP_CONNECT, newest(), 0);
  EXPECT_EQ(waiting.news(), (News{"session"}));
  serve(one_, waiting, newest());
}

TEST_F(OnePlaceDrainTest, and_so_does_whoever_waits_on_another_ring) {
  Request user(chunks_), waiting(chunks_);
  int fd = connect(one_, user);
  acquire(two_, waiting);
  ASSERT_TRUE(waiting.queued());
  one_.pools.close_idle();
  two_.pools.close_idle();
  serve(one_, user, fd);
  mail();
  ASSERT_FALSE(waiting.queued()) << "it would wait for its time-out, with the place free";
  two_.machine.finish(IORING_OP_CONNECT, newest(), 0);
  EXPECT_EQ(waiting.news(), (News{"session"}));
  serve(two_, waiting, newest());
}

}  // namespace
}  // namespace ringside::upstream::test
