// The simulated kernel itself: what the parity suite cannot see, since the real one has no faults.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "ringside/ring/buffer_group.h"
#include "ringside/ring/ring.h"

#include "sim_world.h"

namespace ringside::sim {
namespace {

enum Kind : std::uint8_t { kind_receive, kind_send, kind_cancel, kind_read, kind_message };

// Reads what nobody may read any more.
__attribute__((no_sanitize("address"), noinline)) unsigned char peek(const char* at) {
  return static_cast<unsigned char>(*const_cast<const volatile char*>(at));
}

class Owner final : public ring::Completer {
 public:
  explicit Owner(ring::Ring& ring, ring::BufferGroup* group = nullptr)
      : ring_(ring), group_(group) {
    EXPECT_TRUE(ring.attach(*this));
  }
  ~Owner() {
    if (in_flight() == 0) ring_.detach(*this);
  }
  void on_complete(std::uint8_t kind, const ring::Completion& completion) override {
    if (group_ != nullptr && completion.has_buffer()) {
      leases.push_back(group_->take(completion));
      data += leases.back().bytes();
    }
    events.push_back({kind, completion});
  }
  struct Event {
    std::uint8_t kind;
    ring::Completion completion;
  };
  int last(std::uint8_t kind) const {
    for (auto at = events.rbegin(); at != events.rend(); ++at) {
      if (at->kind == kind) return at->completion.result;
    }
    return 1 << 30;
  }
  std::vector<Event> events;
  std::vector<ring::Lease> leases;
  std::string data;

 private:
  ring::Ring& ring_;
  ring::BufferGroup* group_;
};

class SimKernelTest : public testing::Test {
 protected:
  void SetUp() override {
    ring_ = open_ring();
    group_ = std::move(*ring::BufferGroup::create(*ring_, 0, 4, 64, true));
    auto pair = world_.network().pair();
    peer_ = pair.a;
    fd_ = world_.files().open(std::make_shared<SocketFile>(world_.network(), pair.b));
  }
  void TearDown() override { world_.files().close(fd_); }

  std::unique_ptr<ring::Ring> open_ring() {
    auto ring = ring::Ring::open(world_.kernel(), {.entries = 8, .completion_entries = 16});
    EXPECT_TRUE(ring.has_value());
    return std::move(*ring);
  }
  void set(Fault fault) { world_.faults().set(fault, 1); }
  std::uint64_t count(Fault fault) {
    return world_.faults().counts()[static_cast<std::size_t>(fault)];
  }
  void turns(unsigned count, base::Millis wait_ms = 10) {
    for (unsigned i = 0; i < count; ++i)
      ring_->run_once(wait_ms);
  }

  SimWorld world_{7};
  std::unique_ptr<ring::Ring> ring_;
  std::unique_ptr<ring::BufferGroup> group_;
  std::shared_ptr<Stream> peer_;
  int fd_ = -1;
};

TEST_F(SimKernelTest, waiting_makes_virtual_time_pass) {
  const std::uint64_t before = world_.clock().now_ns();
  ring_->run_once(5'000);
  const std::uint64_t passed = world_.clock().now_ns() - before;
  EXPECT_GE(passed, 5 * second_ns);
  EXPECT_LT(passed, 5 * second_ns + millisecond_ns);
}

TEST_F(SimKernelTest, an_event_ends_the_wait_when_it_happens) {
  Owner owner(*ring_, group_.get());
  ring_->receive(owner, kind_receive, fd_, *group_);
  world_.clock().after(second_ns, [this] { peer_->write("hello", 5); });
  const std::uint64_t before = world_.clock().now_ns();
  ring_->run_once(60'000);
  EXPECT_EQ(owner.data, "hello");
  EXPECT_GE(world_.clock().now_ns() - before, second_ns);
  EXPECT_LT(world_.clock().now_ns() - before, second_ns + 10 * millisecond_ns);
}

TEST_F(SimKernelTest, time_waits_for_every_ring_with_work) {
  auto other = open_ring();
  Owner mine(*ring_);
  Owner theirs(*other);
  std::uint64_t count_a = 0, count_b = 0;
  const int event_a = world_.kernel().open_event();
  const int event_b = world_.kernel().open_event();
  ring_->read(mine, kind_read, event_a, &count_a, sizeof count_a);
  other->read(theirs, kind_read, event_b, &count_b, sizeof count_b);
  ring_->run_once(1);
  other->run_once(1);
  world_.kernel().signal_event(event_b);
  const std::uint64_t before = world_.clock().now_ns();
  // The other ring has something to do, so this one must not take the world to its deadline.
  ring_->run_once(60'000);
  EXPECT_LT(world_.clock().now_ns() - before, second_ns);
  other->run_once(60'000);
  EXPECT_EQ(theirs.last(kind_read), 8);
  EXPECT_EQ(count_b, 1U);
  world_.kernel().signal_event(event_a);
  for (int i = 0; i < 4 && mine.in_flight() != 0; ++i)
    ring_->run_once(1);
  world_.kernel().close_event(event_a);
  world_.kernel().close_event(event_b);
}

TEST_F(SimKernelTest, a_leased_buffer_is_only_filled_again_after_it_was_returned) {
  Owner owner(*ring_, group_.get());
  ring_->receive_multishot(owner, kind_receive, fd_, *group_);
  for (const char* text : {"one", "two", "six", "ten"}) {
    peer_->write(text, 3);
    turns(2);
  }
  ASSERT_EQ(owner.leases.size(), 4U);
  EXPECT_EQ(owner.leases[0].bytes(), "one");
  EXPECT_EQ(owner.leases[3].bytes(), "ten");
  peer_->write("end", 3);
  turns(2);
  EXPECT_EQ(owner.last(kind_receive), -ENOBUFS);
  owner.leases.clear();
}

TEST_F(SimKernelTest, a_returned_buffer_is_overwritten) {
  Owner owner(*ring_, group_.get());
  ring_->receive(owner, kind_receive, fd_, *group_);
  peer_->write("secret", 6);
  turns(2);
  ASSERT_EQ(owner.leases.size(), 1U);
  const char* stale = owner.leases[0].data();
  owner.leases.clear();
  turns(1, 1);
  EXPECT_EQ(peek(stale), BufferGroups::poison_byte);
  EXPECT_EQ(peek(stale + 5), BufferGroups::poison_byte);
}

TEST_F(SimKernelTest, a_zero_copy_send_reads_its_memory_late) {
  Owner owner(*ring_);
  std::string text = "early";
  ring_->send_zero_copy(owner, kind_send, fd_, text.data(), text.size(), MSG_NOSIGNAL, -1);
  ring_->run_once(0);
  ASSERT_EQ(owner.last(kind_send), 5);
  // Whoever changes it before the notification is seen to have done so.
  text = "later";
  turns(3);
  char got[8];
  EXPECT_EQ(peer_->read(got, sizeof got), 5);
  EXPECT_EQ(std::string(got, 5), "later");
  EXPECT_EQ(owner.in_flight(), 0U);
}

TEST_F(SimKernelTest, a_late_notification_comes_at_last) {
  set(Fault::late_notification);
  Owner owner(*ring_);
  ring_->send_zero_copy(owner, kind_send, fd_, "data", 4, MSG_NOSIGNAL, -1);
  turns(3, 1);
  EXPECT_EQ(owner.in_flight(), 1U);
  for (int i = 0; i < 20 && owner.in_flight() != 0; ++i)
    ring_->run_once(1'000);
  EXPECT_EQ(owner.in_flight(), 0U);
  EXPECT_TRUE(owner.events.back().completion.notification());
}

TEST_F(SimKernelTest, short_reads_and_writes_lose_nothing) {
  set(Fault::short_read);
  set(Fault::short_write);
  Owner owner(*ring_, group_.get());
  ring_->receive_multishot(owner, kind_receive, fd_, *group_);
  peer_->write("a longer text", 13);
  for (int i = 0; i < 40 && owner.data.size() < 13; ++i) {
    turns(1);
    owner.leases.clear();
    if (owner.in_flight() == 0) ring_->receive_multishot(owner, kind_receive, fd_, *group_);
  }
  EXPECT_EQ(owner.data, "a longer text");
  EXPECT_GT(count(Fault::short_read), 0U);
  Owner sender(*ring_);
  ring_->send(sender, kind_send, fd_, "0123456789", 10, MSG_NOSIGNAL);
  turns(2);
  EXPECT_GT(sender.last(kind_send), 0);
  EXPECT_LT(sender.last(kind_send), 10);
  peer_->reset();
  turns(5);
}

TEST_F(SimKernelTest, buffers_can_be_lost_though_there_are_some) {
  set(Fault::lost_buffers);
  Owner owner(*ring_, group_.get());
  ring_->receive(owner, kind_receive, fd_, *group_);
  turns(1);
  EXPECT_EQ(owner.last(kind_receive), -ENOBUFS);
}

TEST_F(SimKernelTest, a_refused_submission_is_submitted_later) {
  set(Fault::refused_submission);
  Owner owner(*ring_);
  for (int i = 0; i < 4; ++i)
    ring_->send(owner, kind_send, fd_, "x", 1, MSG_NOSIGNAL);
  turns(20);
  EXPECT_GT(count(Fault::refused_submission), 0U);
  EXPECT_EQ(owner.in_flight(), 0U);
  for (const auto& event : owner.events)
    EXPECT_EQ(event.completion.result, 1);
}

TEST_F(SimKernelTest, completions_that_found_no_room_are_not_lost) {
  set(Fault::full_completion_queue);
  Owner owner(*ring_);
  for (int i = 0; i < 6; ++i)
    ring_->send(owner, kind_send, fd_, "x", 1, MSG_NOSIGNAL);
  turns(12);
  EXPECT_EQ(owner.events.size(), 6U);
  EXPECT_GT(ring_->counters().overflows, 0U);
}

TEST_F(SimKernelTest, a_cancelled_receive_may_succeed_after_all) {
  set(Fault::cancel_race);
  Owner owner(*ring_, group_.get());
  ring_->receive(owner, kind_receive, fd_, *group_);
  ring_->run_once(1);
  ring_->cancel(owner, kind_receive, kind_cancel);
  ring_->run_once(0);
  EXPECT_EQ(owner.last(kind_cancel), -EALREADY);
  EXPECT_EQ(owner.in_flight(), 1U);
  peer_->write("quick", 5);
  turns(5);
  EXPECT_EQ(owner.in_flight(), 0U);
  EXPECT_TRUE(owner.last(kind_receive) == 5 || owner.last(kind_receive) == -ECANCELED);
}

TEST_F(SimKernelTest, an_operation_that_a_worker_runs_ends_when_it_is_cancelled) {
  set(Fault::late_execution);
  Owner owner(*ring_, group_.get());
  ring_->receive(owner, kind_receive, fd_, *group_);
  ring_->run_once(0);
  world_.faults().all_off();
  ring_->cancel(owner, kind_receive, kind_cancel);
  turns(5);
  EXPECT_EQ(owner.last(kind_cancel), -EALREADY);
  EXPECT_EQ(owner.last(kind_receive), -ECANCELED);
}

TEST_F(SimKernelTest, nothing_left_to_happen_is_noticed) {
  Owner owner(*ring_, group_.get());
  ring_->receive(owner, kind_receive, fd_, *group_);
  ring_->run_once();
  EXPECT_TRUE(world_.sim_kernel().stuck());
  peer_->reset();
  turns(3);
}

TEST_F(SimKernelTest, no_time_passes_while_another_program_has_still_to_wait) {
  auto other = open_ring();
  world_.sim_kernel().attend(other->descriptor(), true);
  const std::uint64_t before = ring_->kernel().monotonic_ns();
  ring_->run_once(60'000);
  EXPECT_LT(ring_->kernel().monotonic_ns() - before, second_ns);
  world_.sim_kernel().attend(other->descriptor(), false);
  ring_->run_once(60'000);
  EXPECT_GE(ring_->kernel().monotonic_ns() - before, 60 * second_ns);
}

TEST_F(SimKernelTest, every_error_of_a_receive_is_told_and_counted) {
  set(Fault::receive_reset);
  Owner owner(*ring_, group_.get());
  ring_->receive(owner, kind_receive, fd_, *group_);
  peer_->write("x", 1);
  turns(3);
  EXPECT_EQ(owner.last(kind_receive), -ECONNRESET);
  EXPECT_EQ(count(Fault::receive_reset), 1U);
  EXPECT_EQ(world_.faults().harm(), 1U);
}

}  // namespace
}  // namespace ringside::sim
