// The ring on the real kernel: that the steady state allocates nothing, and that a mailbox wakes.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "ringside/ring/buffer_group.h"
#include "ringside/ring/mailbox.h"
#include "ringside/ring/ring.h"

#include "counting_allocator.h"
#include "owner.h"

namespace ringside::ring::test {
namespace {

class RealRingTest : public testing::Test {
 protected:
  RealRingTest() : ring_(std::move(*Ring::open(real_kernel(), {.entries = 64}))) {
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds_), 0);
  }
  ~RealRingTest() override {
    for (int fd : fds_)
      ::close(fd);
  }

  std::unique_ptr<Ring> ring_;
  int fds_[2] = {-1, -1};
};

// Sends what it receives back, `rounds` times.
class Echo final : public Completer {
 public:
  enum Kind : std::uint8_t { receive, send, cancel };
  Echo(Ring& ring, BufferGroup& group, int fd) : ring_(ring), group_(group), fd_(fd) {
    ring.attach(*this);
  }
  ~Echo() override { ring_.detach(*this); }

  void start() { ring_.receive_multishot(*this, receive, fd_, group_); }
  void stop() { ring_.cancel(*this, receive, cancel); }
  void say(std::string_view text) { ring_.send(*this, send, fd_, text.data(), text.size(), 0); }

  void on_complete(std::uint8_t kind, const Completion& completion) override {
    if (kind == send) lease_.reset();
    if (kind != receive) return;
    lease_ = group_.take(completion);
    if (lease_.empty()) return;
    ++rounds;
    ring_.timers().arm(timer_, 60'000);
    if (rounds < rounds_max) ring_.send(*this, send, fd_, lease_.data(), lease_.size(), 0);
    if (rounds == rounds_max) lease_.reset();
  }

  int rounds = 0;
  int rounds_max = 1000;

 private:
  Ring& ring_;
  BufferGroup& group_;
  int fd_;
  Lease lease_;
  base::Timer timer_{[](void*) { FAIL() << "the echo stalled"; }, nullptr};
};

TEST_F(RealRingTest, steady_state_allocates_nothing) {
  auto group = std::move(*BufferGroup::create(*ring_, 0, 256, 2048, false));
  Echo one(*ring_, *group, fds_[0]);
  Echo two(*ring_, *group, fds_[1]);
  one.start();
  two.start();
  one.say("ping");
  for (int i = 0; i < 20; ++i)
    ring_->run_once(0);
  ringside::test::AllocationCount allocations;
  while (one.rounds < one.rounds_max && two.rounds < two.rounds_max)
    ring_->run_once();
  EXPECT_EQ(allocations.count(), 0U);
  one.stop();
  two.stop();
  while (one.in_flight() + two.in_flight() != 0)
    ring_->run_once();
  EXPECT_EQ(group->leased(), 0U);
}

TEST_F(RealRingTest, zero_copy_on_a_socket_without_it_balances_its_operations) {
  Owner owner(*ring_);
  char data[] = "x";
  ring_->send_zero_copy(owner, 1, fds_[0], data, 1, MSG_NOSIGNAL, -1);
  while (owner.in_flight() != 0)
    ring_->run_once();
  ASSERT_FALSE(owner.seen.empty());
  EXPECT_EQ(owner.seen[0].result, -EOPNOTSUPP);
}

struct Counter final : MessageHandler {
  void on_message(const Message& message) override { sum += message.a; }
  std::uint64_t sum = 0;
};

TEST_F(RealRingTest, a_mailbox_wakes_its_ring_from_no_ring_and_from_another) {
  Counter counter;
  auto mailbox = std::move(*Mailbox::create(*ring_, counter));
  EXPECT_TRUE(mailbox->post(nullptr, {.a = 1}));
  while (counter.sum != 1)
    ring_->run_once();
  auto other = std::move(*Ring::open(real_kernel(), {.entries = 8}));
  EXPECT_TRUE(mailbox->post(other.get(), {.a = 10}));
  other->run_once(0);
  while (counter.sum != 11)
    ring_->run_once();
  EXPECT_TRUE(mailbox->post(ring_.get(), {.a = 100}));
  while (counter.sum != 111)
    ring_->run_once();
  while (other->attached() != 0)
    other->run_once();
  mailbox->close();
  while (mailbox->in_flight() != 0)
    ring_->run_once();
}

}  // namespace
}  // namespace ringside::ring::test
