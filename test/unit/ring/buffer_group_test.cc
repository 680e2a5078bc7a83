#include "ringside/ring/buffer_group.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "ringside/base/poison.h"
#include "ringside/ring/ring.h"

#include "buffer_group_fixture.h"
#include "owner.h"
#include "waiter.h"

namespace ringside::ring::test {
namespace {

constexpr std::uint32_t window = 64;

TEST_F(BufferGroupTest, refuses_nonsense) {
  for (std::uint32_t count : {0U, 3U, 65536U}) {
    auto group = BufferGroup::create(*ring_, 0, count, 64, false);
    ASSERT_FALSE(group.has_value());
    EXPECT_EQ(group.error().code, base::ErrorCode::invalid_argument);
  }
  EXPECT_FALSE(BufferGroup::create(*ring_, 0, 8, 0, false).has_value());
}

TEST_F(BufferGroupTest, says_why_it_cannot_be_registered) {
  kernel_.register_errors[IORING_REGISTER_PBUF_RING] = -ENOMEM;
  auto group = BufferGroup::create(*ring_, 0, 8, 64, true);
  ASSERT_FALSE(group.has_value());
  EXPECT_EQ(group.error().code, base::ErrorCode::no_memory);
}

TEST_F(BufferGroupTest, registers_its_memory_when_it_may) {
  auto group = BufferGroup::create(*ring_, 1, 8, 64, true);
  ASSERT_TRUE(group.has_value());
  EXPECT_EQ((*group)->registered_index(), 0);
  auto second = BufferGroup::create(*ring_, 2, 8, 64, true);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ((*second)->registered_index(), 1);
  group->reset();
  auto third = BufferGroup::create(*ring_, 1, 8, 64, true);
  ASSERT_TRUE(third.has_value());
  EXPECT_EQ((*third)->registered_index(), 0);
}

TEST_F(BufferGroupTest, works_without_registered_memory) {
  for (unsigned opcode : {IORING_REGISTER_BUFFERS_UPDATE, IORING_REGISTER_BUFFERS2}) {
    kernel_.register_errors[opcode] = -ENOMEM;
    auto group = BufferGroup::create(*ring_, group_id, 8, 64, true);
    ASSERT_TRUE(group.has_value());
    EXPECT_EQ((*group)->registered_index(), -1);
    Lease lease = (*group)->take(filled("x"));
    EXPECT_EQ(lease.registered_index(), -1);
  }
}

TEST_F(BufferGroupTest, publishes_distinct_buffers) {
  auto group = create(8, 100);
  EXPECT_EQ(group->published(), 8U);
  std::set<std::uint64_t> addresses;
  for (std::uint16_t id = 0; id < 8; ++id) {
    const io_uring_buf* buffer = kernel_.pick_buffer(group_id);
    ASSERT_NE(buffer, nullptr);
    EXPECT_EQ(buffer->bid, id);
    EXPECT_EQ(buffer->len, 100U);
    addresses.insert(buffer->addr);
  }
  EXPECT_EQ(addresses.size(), 8U);
  EXPECT_GE(*addresses.rbegin() - *addresses.begin(), 700U);
  EXPECT_EQ(kernel_.pick_buffer(group_id), nullptr);
}

TEST_F(BufferGroupTest, a_lease_shows_what_was_received_and_returns_its_buffer) {
  auto group = create(2);
  {
    Lease lease = group->take(filled("hello"));
    EXPECT_TRUE(lease);
    EXPECT_EQ(lease.bytes(), "hello");
    EXPECT_EQ(group->leased(), 1U);
    EXPECT_EQ(group->published(), 1U);
    lease.remove_prefix(2);
    EXPECT_EQ(lease.bytes(), "llo");
    Lease moved = std::move(lease);
    EXPECT_FALSE(lease);  // NOLINT(bugprone-use-after-move): this is what is tested
    EXPECT_EQ(moved.bytes(), "llo");
    EXPECT_EQ(group->leased(), 1U);
    lease = std::move(moved);
    EXPECT_EQ(lease.bytes(), "llo");
    lease.reset();
    EXPECT_EQ(group->leased(), 0U);
    lease.reset();
  }
  EXPECT_EQ(group->leased(), 0U);
  EXPECT_EQ(group->published(), 2U);
}

TEST_F(BufferGroupTest, assigning_over_a_lease_returns_its_buffer) {
  auto group = create(2);
  Lease lease = group->take(filled("one"));
  lease = group->take(filled("two"));
  EXPECT_EQ(lease.bytes(), "two");
  EXPECT_EQ(group->leased(), 1U);
}

TEST_F(BufferGroupTest, completions_without_a_buffer_have_no_lease) {
  auto group = create(2);
  EXPECT_FALSE(group->take({.result = 0, .flags = 0}));
  EXPECT_FALSE(group->take({.result = -ENOBUFS, .flags = 0}));
  EXPECT_EQ(group->leased(), 0U);
}

TEST_F(BufferGroupTest, a_failed_completion_with_a_buffer_returns_it) {
  auto group = create(2);
  Completion completion = filled("x");
  completion.result = -ECANCELED;
  {
    Lease lease = group->take(completion);
    EXPECT_TRUE(lease);
    EXPECT_TRUE(lease.empty());
    EXPECT_EQ(group->leased(), 1U);
  }
  EXPECT_EQ(group->published(), 2U);
}

TEST_F(BufferGroupTest, shared_leases_hold_the_buffer_together) {
  auto group = create(2);
  Lease whole = group->take(filled("head body"));
  Lease body = whole.share(5, 4);
  Lease again = body.share(1, 2);
  EXPECT_EQ(group->leased(), 1U);
  whole.reset();
  EXPECT_EQ(body.bytes(), "body");
  EXPECT_EQ(again.bytes(), "od");
  body.reset();
  EXPECT_EQ(group->leased(), 1U);
  again.reset();
  EXPECT_EQ(group->leased(), 0U);
  EXPECT_EQ(group->published(), 2U);
}

TEST_F(BufferGroupTest, publishes_a_window_and_reuses_the_warmest) {
  auto group = create(256);
  EXPECT_EQ(group->published(), window);
  Lease first = group->take(filled("a"));
  Lease second = group->take(filled("b"));
  EXPECT_EQ(group->published(), window);
  const char* warm = second.data();
  first.reset();
  second.reset();
  // A whole window later the buffer that was given back last is the next to come.
  for (std::uint32_t i = 0; i < window; ++i)
    group->take(filled("c")).reset();
  std::set<const char*> touched;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    Lease lease = group->take(filled("d"));
    touched.insert(lease.data());
  }
  EXPECT_TRUE(touched.contains(warm));
  EXPECT_LE(touched.size(), window + 2);
}

TEST_F(BufferGroupTest, the_window_grows_when_it_was_too_small) {
  auto group = create(256);
  struct Waiter final : BufferWaiter {
    void on_buffers_available() override {}
  } waiter;
  std::vector<Completion> burst;
  for (Completion next = filled("x"); next.has_buffer(); next = filled("x"))
    burst.push_back(next);
  EXPECT_EQ(burst.size(), window);
  std::vector<Lease> leases;
  for (const Completion& completion : burst)
    leases.push_back(group->take(completion));
  group->wait(waiter);
  EXPECT_EQ(group->published(), 2 * window);
  leases.clear();
  EXPECT_EQ(group->published(), 2 * window);
  // Not beyond what there is.
  for (int i = 0; i < 5; ++i)
    group->wait(waiter);
  EXPECT_EQ(group->published(), 256U);
}

TEST_F(BufferGroupTest, of_large_buffers_few_are_published_and_widening_needs_no_waiter) {
  auto group = create(16, 256 * 1024);
  EXPECT_EQ(group->published(), 4U);
  group->widen();
  EXPECT_EQ(group->published(), 8U);
  auto huge = BufferGroup::create(*ring_, group_id + 1, 4, 4 << 20, false);
  ASSERT_TRUE(huge.has_value());
  EXPECT_EQ((*huge)->published(), 2U);
}

TEST_F(BufferGroupTest, leases_on_the_same_bytes_have_the_same_mark) {
  auto group = create(8);
  Lease lease = group->take(filled("abcdef"));
  EXPECT_EQ(lease.mark(), 0U);
  lease.set_mark(3);
  EXPECT_EQ(lease.share(1, 2).mark(), 3U);
  Lease moved = std::move(lease);
  EXPECT_EQ(moved.mark(), 3U);
  moved.reset();
  EXPECT_EQ(group->take(filled("next")).mark(), 0U);
}

TEST_F(BufferGroupTest, a_window_that_sufficed_does_not_grow) {
  auto group = create(128);
  struct Waiter final : BufferWaiter {
    void on_buffers_available() override {}
  } waiter;
  std::vector<Lease> leases;
  for (int i = 0; i < 128; ++i)
    leases.push_back(group->take(filled("x")));
  EXPECT_EQ(group->published(), 0U);
  group->wait(waiter);
  leases.clear();
  EXPECT_EQ(group->published(), window);
}

TEST_F(BufferGroupTest, wakes_waiters_from_the_loop_when_there_are_buffers) {
  auto group = create(2);
  std::vector<int> order;
  RecordingWaiter one(order, 1);
  RecordingWaiter two(order, 2);
  RecordingWaiter three(order, 3);
  Lease a = group->take(filled("a"));
  Lease b = group->take(filled("b"));
  group->wait(one);
  group->wait(two);
  group->wait(three);
  ring_->run_once();
  EXPECT_TRUE(order.empty());
  EXPECT_EQ(kernel_.entered.back().min_complete, 1U) << "nothing to wake for, so it may sleep";
  a.reset();
  EXPECT_TRUE(order.empty()) << "woken from inside a destructor";
  // One buffer, one waiter a turn; and no sleep as long as one can be woken.
  ring_->run_once();
  EXPECT_EQ(order, (std::vector{1}));
  EXPECT_EQ(kernel_.entered.back().min_complete, 0U);
  b.reset();
  ring_->run_once();
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
  ring_->run_once();
  EXPECT_EQ(order.size(), 3U);
  EXPECT_EQ(kernel_.entered.back().min_complete, 1U);
}

TEST_F(BufferGroupTest, a_waiter_that_waits_again_is_last_in_line) {
  auto group = create(2);
  std::vector<int> order;
  RecordingWaiter one(order, 1);
  RecordingWaiter two(order, 2);
  one.action = [&] { group->wait(one); };
  Lease a = group->take(filled("a"));
  group->wait(one);
  group->wait(two);
  ring_->run_once(0);
  EXPECT_EQ(order, (std::vector{1}));
  ring_->run_once(0);
  EXPECT_EQ(order, (std::vector{1, 2}));
  one.action = nullptr;
}

TEST_F(BufferGroupTest, a_waiter_may_go_away) {
  auto group = create(2);
  std::vector<int> order;
  {
    RecordingWaiter gone(order, 1);
    group->wait(gone);
  }
  ring_->run_once(0);
  EXPECT_TRUE(order.empty());
}

// Against a model of the kernel's side: no buffer is ever in two places, none is lost, and the
// 16-bit tail wraps.
TEST_F(BufferGroupTest, loses_and_doubles_no_buffer) {
  auto group = create(128);
  std::mt19937 random(5);
  std::vector<Lease> leases;
  std::set<const char*> out;
  std::size_t taken = 0;
  for (int step = 0; step < 300'000; ++step) {
    if (random() % 2 == 0) {
      Completion completion = filled("data");
      if (!completion.has_buffer()) {
        ASSERT_EQ(group->published(), 0U);
        continue;
      }
      Lease lease = group->take(completion);
      ASSERT_TRUE(out.insert(lease.data()).second) << "leased twice";
      leases.push_back(std::move(lease));
      ++taken;
    } else if (!leases.empty()) {
      std::swap(leases[random() % leases.size()], leases.back());
      out.erase(leases.back().data());
      leases.pop_back();
    }
    ASSERT_EQ(group->leased(), leases.size());
    ASSERT_EQ(group->published(), std::min<std::size_t>(window, 128 - leases.size()));
  }
  EXPECT_GT(taken, 65536U);
  leases.clear();
}

TEST_F(BufferGroupTest, a_stale_completion_gives_its_buffer_back) {
  auto group = create(2);
  std::uint64_t user_data = 0;
  {
    Owner owner(*ring_);
    ring_->receive(owner, 1, 5, *group);
    ring_->run_once(0);
    user_data = kernel_.next_submitted().user_data;
    kernel_.complete(user_data, 0);
    ring_->run_once(0);
  }
  Completion late = filled("late");
  kernel_.complete(user_data, late.result, late.flags);
  ring_->run_once(0);
  EXPECT_EQ(ring_->counters().stale_completions, 1U);
  EXPECT_EQ(group->leased(), 0U);
  // The kernel has both again.
  EXPECT_NE(kernel_.pick_buffer(group_id), nullptr);
  EXPECT_NE(kernel_.pick_buffer(group_id), nullptr);
  // Nor does it hurt when the group is gone.
  group.reset();
  kernel_.complete(user_data, late.result, late.flags);
  ring_->run_once(0);
  EXPECT_EQ(ring_->counters().stale_completions, 2U);
}

TEST_F(BufferGroupTest, receives_ask_for_its_buffers) {
  auto group = create(2);
  Owner owner(*ring_);
  ring_->receive_multishot(owner, 1, 5, *group);
  ring_->receive(owner, 2, 6, *group);
  ring_->run_once(0);
  FakeKernel::Submitted multishot = kernel_.next_submitted();
  EXPECT_EQ(multishot.opcode, IORING_OP_RECV);
  EXPECT_EQ(multishot.flags, IOSQE_BUFFER_SELECT);
  EXPECT_EQ(multishot.buf_index, group_id);
  EXPECT_EQ(multishot.ioprio, IORING_RECV_MULTISHOT);
  EXPECT_EQ(multishot.len, 0U);
  FakeKernel::Submitted single = kernel_.next_submitted();
  EXPECT_EQ(single.flags, IOSQE_BUFFER_SELECT);
  EXPECT_EQ(single.buf_index, group_id);
  EXPECT_EQ(single.ioprio, 0);
  kernel_.complete(multishot.user_data, 0);
  kernel_.complete(single.user_data, 0);
  ring_->run_once(0);
}

#ifdef RINGSIDE_POISON
TEST_F(BufferGroupTest, a_released_buffer_may_not_be_read) {
  auto group = create(256);
  Lease lease = group->take(filled("x"));
  const volatile char* data = lease.data();
  lease.reset();
  EXPECT_DEATH({ [[maybe_unused]] char byte = *data; }, "use-after-poison");
}
#endif

// ---- bundles

class BundleTest : public BufferGroupTest {
 protected:
  // The kernel fills several of its next buffers, and completes once.
  Completion filled_many(std::string_view text, std::uint32_t bytes = 64) {
    Completion first = filled(text.substr(0, bytes));
    for (std::size_t at = bytes; at < text.size(); at += bytes)
      filled(text.substr(at, bytes));
    first.result = static_cast<std::int32_t>(text.size());
    return first;
  }
  static std::string letters(std::size_t bytes) {
    std::string text(bytes, ' ');
    for (std::size_t i = 0; i < bytes; ++i)
      text[i] = static_cast<char>('a' + i % 23);
    return text;
  }
  static std::string all_of(Bundle& bundle, std::vector<Lease>* keep = nullptr) {
    std::string got;
    while (!bundle.empty()) {
      Lease lease = bundle.next();
      got += lease.bytes();
      if (keep != nullptr) keep->push_back(std::move(lease));
    }
    return got;
  }
};

TEST_F(BundleTest, gives_its_buffers_in_order_whatever_is_given_back_meanwhile) {
  auto group = create(8);
  std::mt19937 random(1);
  std::vector<Lease> held;
  for (int i = 0; i < 2000; ++i) {
    std::size_t room = std::size_t{8 - group->leased()} * 64;
    if (room == 0) {
      held.clear();
      continue;
    }
    std::string text = letters(1 + random() % room);
    Bundle bundle(*group, filled_many(text));
    EXPECT_EQ(all_of(bundle, random() % 2 == 0 ? &held : nullptr), text);
    if (!held.empty() && random() % 2 == 0) held.erase(held.begin());
    ASSERT_EQ(group->leased(), held.size());
    ASSERT_EQ(group->published(), 8 - group->leased());
  }
}

TEST_F(BundleTest, works_in_a_window_of_a_larger_group) {
  auto group = create(256);
  std::vector<Lease> held;
  for (int i = 0; i < 50; ++i) {
    std::string text = letters(64 * 40 + 7);
    Bundle bundle(*group, filled_many(text));
    EXPECT_EQ(all_of(bundle, &held), text);
    if (held.size() > 150) held.erase(held.begin(), held.begin() + 97);
  }
}

TEST_F(BundleTest, gives_back_what_nobody_took) {
  auto group = create(8);
  {
    Bundle bundle(*group, filled_many(letters(64 * 5)));
    EXPECT_EQ(bundle.next().size(), 64U);
    EXPECT_FALSE(bundle.empty());
  }
  EXPECT_EQ(group->leased(), 0U);
  EXPECT_EQ(group->published(), 8U);
}

TEST_F(BundleTest, is_empty_without_a_buffer_and_one_piece_without_data) {
  auto group = create(8);
  Bundle none(*group, {.result = 0, .flags = 0});
  EXPECT_TRUE(none.empty());
  Bundle failed(*group, {.result = -ECONNRESET, .flags = filled("").flags});
  ASSERT_FALSE(failed.empty());
  EXPECT_TRUE(failed.next().empty());
  EXPECT_TRUE(failed.empty());
}

TEST_F(BundleTest, of_an_owner_that_is_gone_goes_back) {
  auto group = create(8);
  std::uint64_t user_data = 0;
  {
    Owner owner(*ring_);
    ring_->receive_bundle(owner, 1, 5, *group, 4, false);
    ring_->run_once(0);
    user_data = kernel_.next_submitted().user_data;
    kernel_.complete(user_data, -ECANCELED);
    ring_->run_once(0);
  }
  Completion late = filled_many(letters(64 * 3));
  kernel_.complete(user_data, late.result, late.flags);
  ring_->run_once(0);
  EXPECT_EQ(group->leased(), 0U);
  EXPECT_EQ(group->published(), 8U);
}

TEST_F(BundleTest, is_asked_for_only_where_the_kernel_has_it) {
  auto group = create(8);
  Owner owner(*ring_);
  ring_->receive_bundle(owner, 1, 5, *group, 4, false);
  ring_->run_once(0);
  FakeKernel::Submitted plain = kernel_.next_submitted();
  EXPECT_EQ(plain.ioprio, 0);
  EXPECT_EQ(plain.len, 0U);
  kernel_.complete(plain.user_data, -ECANCELED);
  ring_->run_once(0);

  kernel_.features.bundles = true;
  kernel_.feature_bits |= 1U << 14;  // IORING_FEAT_RECVSEND_BUNDLE
  auto able = std::move(*Ring::open(kernel_, {.entries = 8}));
  auto buffers = std::move(*BufferGroup::create(*able, group_id + 1, 8, 64, false));
  Owner other(*able);
  able->receive_bundle(other, 1, 5, *buffers, 4, true);
  able->run_once(0);
  FakeKernel::Submitted bundle = kernel_.next_submitted();
  EXPECT_EQ(bundle.ioprio, 1U << 4 | IORING_RECVSEND_POLL_FIRST);
  EXPECT_EQ(bundle.len, 4U * 64 + 1);  // not a whole number of buffers: the kernel stops there
  kernel_.complete(bundle.user_data, -ECANCELED);
  able->run_once(0);
}

}  // namespace
}  // namespace ringside::ring::test
