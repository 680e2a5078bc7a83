#include "ringside/ring/mailbox.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "ringside/ring/ring.h"

#include "fake_kernel.h"

namespace ringside::ring::test {
namespace {

struct Handler final : MessageHandler {
  void on_message(const Message& message) override {
    kinds.push_back(message.kind);
    last = message;
    if (action) action(message);
  }
  std::vector<std::uint32_t> kinds;
  Message last;
  std::function<void(const Message&)> action;
};

class MailboxTest : public testing::Test {
 protected:
  MailboxTest() : ring_(open()) {}
  ~MailboxTest() override {
    if (mailbox_ != nullptr) close();
  }

  std::unique_ptr<Ring> open() { return std::move(*Ring::open(kernel_, {.entries = 128})); }
  void create(std::uint32_t capacity = 8) {
    auto mailbox = Mailbox::create(*ring_, handler_, capacity);
    ASSERT_TRUE(mailbox.has_value());
    mailbox_ = std::move(*mailbox);
    ring_->run_once(0);
    read_ = kernel_.next_submitted();
    EXPECT_EQ(read_.opcode, IORING_OP_READ);
  }
  bool post(std::uint32_t kind, Ring* from = nullptr) {
    return mailbox_->post(from, {.kind = kind});
  }
  unsigned signals() { return kernel_.signals[read_.fd]; }
  // What the event's read does when it was signalled.
  void deliver_event() {
    kernel_.complete_on(ring_->descriptor(), read_.user_data, 8);
    ring_->run_once(0);
    ring_->run_once(0);  // submits the next read
    read_ = kernel_.next_submitted();
    EXPECT_EQ(read_.opcode, IORING_OP_READ);
  }
  void close() {
    unsigned before = signals();
    mailbox_->close();
    mailbox_->close();
    EXPECT_EQ(signals(), before + 1) << "the read must be ended, once";
    kernel_.complete_on(ring_->descriptor(), read_.user_data, 8);
    ring_->run_once(0);
    ring_->run_once(0);  // would submit another read
    EXPECT_EQ(mailbox_->in_flight(), 0U);
    EXPECT_TRUE(kernel_.submitted.empty()) << "armed again though closed";
    mailbox_.reset();
  }

  FakeKernel kernel_;
  Handler handler_;
  std::unique_ptr<Ring> ring_;
  std::unique_ptr<Ring> other_;
  std::unique_ptr<Mailbox> mailbox_;
  FakeKernel::Submitted read_{};
};

TEST_F(MailboxTest, delivers_in_order_and_rings_once) {
  create();
  for (std::uint32_t kind = 1; kind <= 5; ++kind)
    EXPECT_TRUE(post(kind));
  EXPECT_EQ(signals(), 1U);
  EXPECT_TRUE(handler_.kinds.empty());
  deliver_event();
  EXPECT_EQ(handler_.kinds, (std::vector<std::uint32_t>{1, 2, 3, 4, 5}));
  // And again, with a new wake-up.
  EXPECT_TRUE(post(6));
  EXPECT_EQ(signals(), 2U);
  deliver_event();
  EXPECT_EQ(handler_.kinds.back(), 6U);
}

TEST_F(MailboxTest, carries_all_of_a_message) {
  create();
  int object = 0;
  EXPECT_TRUE(mailbox_->post(nullptr, {.kind = 1, .value = -2, .a = 3, .b = 4, .object = &object}));
  deliver_event();
  EXPECT_EQ(handler_.last.value, -2);
  EXPECT_EQ(handler_.last.a, 3U);
  EXPECT_EQ(handler_.last.b, 4U);
  EXPECT_EQ(handler_.last.object, &object);
}

TEST_F(MailboxTest, a_full_queue_says_so) {
  create(4);
  for (std::uint32_t round = 0; round < 3; ++round) {
    for (std::uint32_t kind = 0; kind < 4; ++kind)
      EXPECT_TRUE(post(kind));
    EXPECT_FALSE(post(99));
    deliver_event();
    EXPECT_EQ(handler_.kinds.size(), 4U);
    handler_.kinds.clear();
  }
}

TEST_F(MailboxTest, spurious_wake_ups_do_no_harm) {
  create();
  deliver_event();
  EXPECT_TRUE(handler_.kinds.empty());
  post(1);
  deliver_event();
  EXPECT_EQ(handler_.kinds.size(), 1U);
}

TEST_F(MailboxTest, a_failed_read_is_armed_again) {
  create();
  post(1);
  kernel_.complete_on(ring_->descriptor(), read_.user_data, -EINTR);
  ring_->run_once(0);
  ring_->run_once(0);
  read_ = kernel_.next_submitted();
  EXPECT_EQ(read_.opcode, IORING_OP_READ);
  EXPECT_EQ(handler_.kinds.size(), 1U);
}

TEST_F(MailboxTest, senders_inside_a_handler_cannot_hold_the_turn) {
  create(4);
  handler_.action = [&](const Message&) { post(7); };
  post(7);
  deliver_event();
  EXPECT_EQ(handler_.kinds.size(), 4U);
  EXPECT_EQ(signals(), 2U);
  handler_.action = nullptr;
  deliver_event();
  EXPECT_EQ(handler_.kinds.size(), 5U);
}

TEST_F(MailboxTest, a_ring_wakes_another_by_a_message) {
  create();
  other_ = open();
  post(1, other_.get());
  post(2, other_.get());
  EXPECT_EQ(signals(), 0U);
  EXPECT_EQ(other_->attached(), 1U);
  other_->run_once(0);
  FakeKernel::Submitted message = kernel_.next_submitted();
  EXPECT_TRUE(kernel_.submitted.empty()) << "one message wakes for both";
  EXPECT_EQ(message.opcode, IORING_OP_MSG_RING);
  EXPECT_EQ(message.fd, ring_->descriptor());
  // What the kernel does: a completion on both rings.
  kernel_.complete_on(other_->descriptor(), message.user_data, 0);
  kernel_.complete_on(ring_->descriptor(), message.off, 0);
  other_->run_once(0);
  EXPECT_EQ(other_->attached(), 0U);
  ring_->run_once(0);
  EXPECT_EQ(handler_.kinds, (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(mailbox_->in_flight(), 1U);
  EXPECT_EQ(signals(), 0U);
}

TEST_F(MailboxTest, a_message_under_way_keeps_the_event_open) {
  create();
  other_ = open();
  post(1, other_.get());
  other_->run_once(0);
  FakeKernel::Submitted message = kernel_.next_submitted();
  close();
  EXPECT_EQ(kernel_.events, 1);
  kernel_.complete_on(other_->descriptor(), message.user_data, -EBADFD);
  other_->run_once(0);
  EXPECT_EQ(kernel_.events, 0);
}

TEST_F(MailboxTest, a_sending_ring_may_go_away_with_a_message_under_way) {
  create();
  other_ = open();
  post(1, other_.get());
  other_->run_once(0);
  kernel_.next_submitted();
  other_.reset();
  close();
  EXPECT_EQ(kernel_.events, 0);
}

TEST_F(MailboxTest, more_wake_ups_than_a_ring_has_wakers) {
  // 70 mailboxes on one ring; the sender has 64 wakers.
  std::vector<std::unique_ptr<Mailbox>> boxes;
  for (int i = 0; i < 70; ++i)
    boxes.push_back(std::move(*Mailbox::create(*ring_, handler_, 2)));
  ring_->run_once(0);
  std::vector<FakeKernel::Submitted> reads;
  while (!kernel_.submitted.empty())
    reads.push_back(kernel_.next_submitted());
  other_ = open();
  for (auto& box : boxes)
    EXPECT_TRUE(box->post(other_.get(), {.kind = 1}));
  EXPECT_EQ(kernel_.signals.size(), 6U);
  other_->run_once(0);
  while (!kernel_.submitted.empty()) {
    FakeKernel::Submitted message = kernel_.next_submitted();
    kernel_.complete_on(other_->descriptor(), message.user_data, 0);
    kernel_.complete_on(ring_->descriptor(), message.off, 0);
  }
  other_->run_once(0);
  EXPECT_EQ(other_->attached(), 0U);
  for (auto [fd, count] : kernel_.signals) {
    for (const FakeKernel::Submitted& read : reads) {
      if (read.fd == fd) kernel_.complete_on(ring_->descriptor(), read.user_data, 8);
    }
  }
  ring_->run_once(0);
  EXPECT_EQ(handler_.kinds.size(), 70U);
  ring_->run_once(0);  // arms again the reads that have completed
  while (!kernel_.submitted.empty())
    reads.push_back(kernel_.next_submitted());
  std::map<int, std::uint64_t> armed;
  for (const FakeKernel::Submitted& read : reads)
    armed[read.fd] = read.user_data;
  for (auto& box : boxes)
    box->close();
  for (auto [fd, read] : armed)
    kernel_.complete_on(ring_->descriptor(), read, 8);
  ring_->run_once(0);
  for (auto& box : boxes)
    EXPECT_EQ(box->in_flight(), 0U);
}

TEST_F(MailboxTest, a_message_that_fails_falls_back_to_the_event) {
  create();
  other_ = open();
  post(1, other_.get());
  other_->run_once(0);
  kernel_.complete_on(other_->descriptor(), kernel_.next_submitted().user_data, -EOVERFLOW);
  other_->run_once(0);
  EXPECT_EQ(signals(), 1U);
}

TEST_F(MailboxTest, a_ring_posts_to_itself_by_the_event) {
  create();
  post(1, ring_.get());
  EXPECT_EQ(signals(), 1U);
  deliver_event();
  EXPECT_EQ(handler_.kinds.size(), 1U);
}

TEST_F(MailboxTest, without_ring_messages_the_event_does_it) {
  kernel_.features.message_ring = false;
  ring_ = open();
  create();
  other_ = open();
  post(1, other_.get());
  EXPECT_EQ(signals(), 1U);
}

TEST_F(MailboxTest, says_why_it_cannot_be_made) {
  auto ring = Ring::open(kernel_, {.entries = 8, .owners_max = 1});
  ASSERT_TRUE(ring.has_value());
  auto first = Mailbox::create(**ring, handler_, 8);
  ASSERT_TRUE(first.has_value());
  auto second = Mailbox::create(**ring, handler_, 8);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, base::ErrorCode::pool_exhausted);
  (*first)->close();
  (*ring)->run_once(0);
  while (!kernel_.submitted.empty())
    kernel_.complete(kernel_.next_submitted().user_data, -ECANCELED);
  (*ring)->run_once(0);
  EXPECT_EQ((*first)->in_flight(), 0U);
}

}  // namespace
}  // namespace ringside::ring::test
