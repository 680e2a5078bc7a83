// A server all of whose places are taken by connections that are idle on another ring is not full.
#include <gtest/gtest.h>

#include "two_rings.h"

namespace ringside::upstream::test {
namespace {

class IdleElsewhereTest : public LendingTest {
 protected:
  IdleElsewhereTest() : LendingTest(1) {}
};

TEST_F(IdleElsewhereTest, an_idle_connection_of_another_ring_is_borrowed_though_no_place_is_free) {
  int fd = leave_idle(one_);
  ASSERT_EQ(server().open(), 1U) << "its only place";
  Request request(chunks_);
  acquire(two_, request);
  EXPECT_FALSE(request.queued()) << "it would wait for its time-out, with the connection idle";
  mail();
  EXPECT_EQ(request.news(), (News{"session"}));
  if (request.session != nullptr) serve(two_, request, fd);
  two_.pools.abandon(request);
}

}  // namespace
}  // namespace ringside::upstream::test
