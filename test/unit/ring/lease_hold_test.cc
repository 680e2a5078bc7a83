// Lease::hold, and the reserve of buffers that it keeps.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ringside/ring/buffer_group.h"

#include "buffer_group_fixture.h"

namespace ringside::ring::test {
namespace {

class HoldTest : public BufferGroupTest {
 protected:
  // Leaves nothing but the reserve.
  void use_up(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i)
      others_.push_back(group_->take(filled("other")));
  }
  std::unique_ptr<BufferGroup> group_ = create(8);
  std::vector<Lease> others_;
};

TEST_F(HoldTest, moves_nothing_as_long_as_there_are_buffers) {
  use_up(4);
  EXPECT_FALSE(group_->in_reserve());
  Lease lease = group_->take(filled("text"));
  const char* at = lease.data();
  lease.hold();
  EXPECT_EQ(lease.data(), at);
  EXPECT_EQ(group_->leased(), 5U);
  EXPECT_EQ(group_->moved_out(), 0U);
}

TEST_F(HoldTest, of_the_last_quarter_bytes_move_and_the_buffer_is_free_at_once) {
  use_up(5);
  Lease lease = group_->take(filled("0123456789"));
  EXPECT_TRUE(group_->in_reserve());
  lease.remove_prefix(2);
  lease.set_mark(3);
  Lease part = lease.share(3, 2);
  lease.hold();
  EXPECT_EQ(group_->leased(), 6U) << "another lease is on it";
  part.hold();
  EXPECT_EQ(group_->leased(), 5U);
  EXPECT_EQ(group_->moved_out(), 2U);
  EXPECT_EQ(lease.bytes(), "23456789");
  EXPECT_EQ(part.bytes(), "56");
  EXPECT_EQ(lease.mark(), 3);
  EXPECT_EQ(lease.registered_index(), -1) << "it is not in the registered area";
  // A lease like any other from here on.
  Lease again = lease.share(1, 3);
  lease.reset();
  part.reset();
  EXPECT_EQ(again.bytes(), "345");
  EXPECT_EQ(group_->moved_out(), 1U);
  again.reset();
  EXPECT_EQ(group_->moved_out(), 0U);
}

TEST_F(HoldTest, however_many_wait_there_is_always_a_buffer) {
  std::vector<Lease> waiting;
  for (int i = 0; i < 1000; ++i) {
    Completion completion = filled(std::to_string(i));
    ASSERT_GT(completion.result, 0) << i;
    waiting.push_back(group_->take(completion));
    waiting.back().hold();
  }
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(waiting[static_cast<std::size_t>(i)].bytes(), std::to_string(i));
}

TEST_F(HoldTest, a_group_without_a_reserve_moves_nothing) {
  group_->keep_no_reserve();
  use_up(7);
  Lease lease = group_->take(filled("text"));
  const char* at = lease.data();
  lease.hold();
  EXPECT_EQ(lease.data(), at);
  EXPECT_EQ(group_->leased(), 8U);
}

TEST_F(HoldTest, one_peer_takes_a_part_of_what_is_free_and_one_of_the_reserve) {
  auto large = std::move(*BufferGroup::create(*ring_, group_id + 1, 256, 64, false));
  EXPECT_EQ(large->share(), 16U);
  use_up(6);
  EXPECT_EQ(group_->share(), 1U);
}

}  // namespace
}  // namespace ringside::ring::test
