// Buffers that the kernel knows nothing of.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "ringside/ring/buffer_group.h"
#include "ringside/ring/ring.h"

#include "fake_kernel.h"
#include "waiter.h"

namespace ringside::ring::test {
namespace {

class PrivateGroupTest : public testing::Test {
 protected:
  PrivateGroupTest() : ring_(std::move(*Ring::open(kernel_, {.entries = 8}))) {}

  std::unique_ptr<BufferGroup> create_private(std::uint32_t count) {
    return std::move(*BufferGroup::create_private(*ring_, count, 64));
  }

  FakeKernel kernel_;
  std::unique_ptr<Ring> ring_;
};

TEST_F(PrivateGroupTest, refuses_nonsense) {
  for (const std::uint32_t count : {0U, 65536U}) {
    auto group = BufferGroup::create_private(*ring_, count, 64);
    ASSERT_FALSE(group.has_value());
    EXPECT_EQ(group.error().code, base::ErrorCode::invalid_argument);
  }
  EXPECT_FALSE(BufferGroup::create_private(*ring_, 8, 0).has_value());
}

TEST_F(PrivateGroupTest, the_kernel_never_hears_of_it) {
  auto group = create_private(3);
  EXPECT_TRUE(kernel_.buffer_rings.empty());
  EXPECT_EQ(group->published(), 0U);
  EXPECT_EQ(group->registered_index(), -1);
  group->borrow().reset();
  group->widen();
  EXPECT_EQ(group->published(), 0U);
}

TEST_F(PrivateGroupTest, a_buffer_is_lent_whole_and_cut_to_what_was_written) {
  auto group = create_private(3);
  Lease lease = group->borrow();
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease.room().size(), 64U);
  std::memcpy(lease.room().data(), "hello", 5);
  lease.truncate(5);
  EXPECT_EQ(lease.bytes(), "hello");
  EXPECT_EQ(group->leased(), 1U);
  Lease part = lease.share(1, 3);
  lease.reset();
  EXPECT_EQ(part.bytes(), "ell");
  EXPECT_EQ(group->leased(), 1U);
  part.reset();
  EXPECT_EQ(group->leased(), 0U);
  EXPECT_EQ(group->borrow().room().size(), 64U) << "whole again";
}

TEST_F(PrivateGroupTest, its_buffers_are_distinct_and_may_run_out) {
  auto group = create_private(3);
  std::vector<Lease> leases;
  std::set<const char*> places;
  for (int i = 0; i < 3; ++i) {
    leases.push_back(group->borrow());
    places.insert(leases.back().data());
    std::memset(leases.back().room().data(), i, 64);
  }
  EXPECT_EQ(places.size(), 3U);
  EXPECT_GE(*places.rbegin() - *places.begin(), 128);
  EXPECT_FALSE(group->borrow());
  EXPECT_EQ(group->leased(), 3U);
  const char* last = leases[1].data();
  leases.erase(leases.begin() + 1);
  EXPECT_EQ(group->borrow().data(), last);
}

TEST_F(PrivateGroupTest, waiters_are_woken_from_the_loop_in_their_order) {
  auto group = create_private(2);
  std::vector<Lease> leases;
  leases.push_back(group->borrow());
  leases.push_back(group->borrow());
  std::vector<int> order;
  RecordingWaiter one(order, 1);
  RecordingWaiter two(order, 2);
  group->wait(one);
  group->wait(two);
  ring_->run_once();
  EXPECT_TRUE(order.empty());
  EXPECT_EQ(kernel_.entered.back().min_complete, 1U) << "nothing to wake for, so it may sleep";
  one.action = [&] { leases.push_back(group->borrow()); };
  leases.erase(leases.begin());
  EXPECT_TRUE(order.empty()) << "woken from inside a destructor";
  ring_->run_once();
  EXPECT_EQ(order, (std::vector{1}));
  EXPECT_TRUE(leases.back());
  ring_->run_once(0);
  EXPECT_EQ(order, (std::vector{1})) << "there is none again";
  leases.clear();
  ring_->run_once(0);
  EXPECT_EQ(order, (std::vector{1, 2}));
}

}  // namespace
}  // namespace ringside::ring::test
