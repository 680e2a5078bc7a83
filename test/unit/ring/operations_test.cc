// Deferred work, gathered messages, and what each operation puts into its entry.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "ringside/ring/buffer_group.h"
#include "ringside/ring/ring.h"

#include "fake_kernel.h"
#include "owner.h"

namespace ringside::ring::test {
namespace {

class OperationsTest : public testing::Test {
 protected:
  OperationsTest() : ring_(open(8, 16)) {}
  std::unique_ptr<Ring> open(unsigned entries, unsigned completions) {
    auto ring = Ring::open(kernel_, {.entries = entries, .completion_entries = completions});
    EXPECT_TRUE(ring.has_value());
    return std::move(*ring);
  }
  // Submits all that is queued and answers nothing.
  void submit() { ring_->run_once(0); }

  FakeKernel kernel_;
  std::unique_ptr<Ring> ring_;
};

struct TestDeferred final : Deferred {
  int runs = 0;
  std::function<void()> action = [] {};
  void run_deferred() override {
    ++runs;
    action();
  }
};

TEST_F(OperationsTest, deferred_work_runs_once_after_the_handlers_and_before_the_kernel) {
  Owner owner(*ring_);
  TestDeferred work;
  work.action = [&] { ring_->nop(owner, 9); };
  owner.action = [&](std::uint8_t kind, const Completion&) {
    if (kind == 9) return;
    EXPECT_EQ(work.runs, 0);
    ring_->defer(work);
  };
  ring_->nop(owner, 1);
  ring_->nop(owner, 2);
  submit();
  while (!kernel_.submitted.empty())
    kernel_.complete(kernel_.next_submitted().user_data, 0);
  ring_->run_once(0);
  EXPECT_EQ(work.runs, 1);
  submit();
  EXPECT_EQ(kernel_.submitted.size(), 1U);
  kernel_.complete(kernel_.next_submitted().user_data, 0);
  ring_->run_once(0);
  EXPECT_EQ(work.runs, 1);
}

TEST_F(OperationsTest, deferred_work_may_defer_more_but_not_for_ever) {
  TestDeferred first;
  TestDeferred second;
  first.action = [&] { ring_->defer(second); };
  // From a timer, so that only the end of the turn is left to run both.
  struct {
    Ring* ring;
    Deferred* work;
  } context{ring_.get(), &first};
  auto fire = [](void* at) {
    auto* now = static_cast<decltype(context)*>(at);
    now->ring->defer(*now->work);
  };
  base::Timer timer(fire, &context);
  ring_->timers().arm(timer, 1);
  kernel_.monotonic_now_ns += 2'000'000;
  ring_->run_once(0);
  EXPECT_EQ(first.runs, 1);
  EXPECT_EQ(second.runs, 1);
  TestDeferred endless;
  endless.action = [&] { ring_->defer(endless); };
  ring_->defer(endless);
  ring_->run_once();
  EXPECT_GT(endless.runs, 1);
  EXPECT_LT(endless.runs, 1000);
  EXPECT_TRUE(endless.linked());
  EXPECT_EQ(kernel_.entered.back().min_complete, 0U) << "slept over work";
  endless.unlink();
}

TEST_F(OperationsTest, destroyed_deferred_work_does_not_run) {
  TestDeferred first;
  auto second = std::make_unique<TestDeferred>();
  first.action = [&] { second.reset(); };
  ring_->defer(first);
  ring_->defer(*second);
  ring_->run_once(0);
  EXPECT_EQ(first.runs, 1);
}

TEST_F(OperationsTest, gathers_are_distinct_until_they_are_submitted) {
  Owner owner(*ring_);
  Ring::Gather* first = &ring_->gather();
  ring_->send_message(owner, 1, 5, &first->message, 0);
  Ring::Gather* second = &ring_->gather();
  EXPECT_NE(first, second);
  EXPECT_EQ(second->message.msg_iov, second->pieces);
  EXPECT_EQ(second->message.msg_iovlen, 0U);
  submit();
  EXPECT_EQ(&ring_->gather(), first);
  kernel_.complete(kernel_.next_submitted().user_data, 0);
  ring_->run_once(0);
}

// The queue fills up between gather() and send_message(): the gather must not be given to the next.
TEST_F(OperationsTest, a_gather_survives_the_submission_that_makes_room_for_it) {
  Owner owner(*ring_);
  Ring::Gather& gather = ring_->gather();
  for (std::uint8_t kind = 0; kind < 8; ++kind)
    ring_->nop(owner, kind);
  ring_->send_message(owner, 9, 5, &gather.message, 0);
  EXPECT_EQ(kernel_.submitted.size(), 8U);
  EXPECT_NE(&ring_->gather(), &gather);
  submit();
  while (!kernel_.submitted.empty())
    kernel_.complete(kernel_.next_submitted().user_data, 0);
  ring_->run_once(0);
}

TEST_F(OperationsTest, many_gathers_in_one_turn) {
  auto ring = open(512, 1024);
  Owner owner(*ring);
  // More than there are: each is submitted before its gather is given out again.
  std::vector<const msghdr*> pending;
  for (int i = 0; i < 1000; ++i) {
    std::size_t submitted = kernel_.submitted.size();
    Ring::Gather& gather = ring->gather();
    if (kernel_.submitted.size() != submitted) pending.clear();
    for (const msghdr* other : pending)
      ASSERT_NE(other, &gather.message);
    pending.push_back(&gather.message);
    ring->send_message(owner, static_cast<std::uint8_t>(i), 5, &gather.message, 0);
  }
  ring->run_once(0);
  EXPECT_EQ(kernel_.submitted.size(), 1000U);
  while (!kernel_.submitted.empty())
    kernel_.complete(kernel_.next_submitted().user_data, 0);
  ring->run_once(0);
  EXPECT_EQ(owner.in_flight(), 0U);
}

TEST_F(OperationsTest, a_close_behind_a_send_is_submitted_with_it) {
  for (unsigned queued : {0U, 6U, 7U, 8U}) {
    Owner owner(*ring_);
    Ring::Gather& gather = ring_->gather();
    for (unsigned kind = 0; kind < queued; ++kind)
      ring_->nop(owner, static_cast<std::uint8_t>(kind));
    ring_->send_message_and_close(owner, 20, 21, 5, &gather.message, MSG_NOSIGNAL);
    EXPECT_EQ(kernel_.submitted.size(), queued < 7 ? 0 : queued)
        << "not the send without the close";
    submit();
    ASSERT_EQ(kernel_.submitted.size(), queued + 2);
    const FakeKernel::Submitted send = kernel_.submitted[queued];
    EXPECT_EQ(send.opcode, IORING_OP_SENDMSG);
    EXPECT_EQ(send.fd, 5);
    EXPECT_EQ(send.flags, IOSQE_IO_LINK);
    EXPECT_EQ(send.op_flags, unsigned{MSG_NOSIGNAL | MSG_WAITALL | MSG_DONTWAIT | MSG_MORE});
    EXPECT_EQ(send.user_data, ring_->user_data(owner, 20));
    const FakeKernel::Submitted close = kernel_.submitted[queued + 1];
    EXPECT_EQ(close.opcode, IORING_OP_CLOSE);
    EXPECT_EQ(close.fd, 5);
    EXPECT_EQ(close.flags, 0);
    EXPECT_EQ(close.user_data, ring_->user_data(owner, 21));
    while (!kernel_.submitted.empty())
      kernel_.complete(kernel_.next_submitted().user_data, 0);
    ring_->run_once(0);
  }
}

TEST_F(OperationsTest, a_close_that_was_cut_off_from_its_send_closes_nothing) {
  Owner owner(*ring_);
  Ring::Gather& gather = ring_->gather();
  ring_->send_message_and_close(owner, 20, 21, 5, &gather.message, 0);
  ring_->close(owner, 22, 6);
  kernel_.on_enter = [](const FakeKernel::Entered& entered,
                        const FakeKernel::Take& take) -> std::optional<int> {
    if (entered.to_submit != 3) return std::nullopt;
    take(1);
    return 1;
  };
  submit();
  ASSERT_EQ(kernel_.submitted.size(), 3U);
  EXPECT_EQ(kernel_.submitted[0].fd, 5);
  EXPECT_EQ(kernel_.submitted[1].fd, -1);
  EXPECT_EQ(kernel_.submitted[1].user_data, ring_->user_data(owner, 21));
  EXPECT_EQ(kernel_.submitted[2].fd, 6);
  while (!kernel_.submitted.empty())
    kernel_.complete(kernel_.next_submitted().user_data, 0);
  ring_->run_once(0);
}

TEST_F(OperationsTest, operations_say_what_they_should) {
  Owner owner(*ring_);
  char data[10];
  sockaddr address{};
  auto submitted = [&] {
    submit();
    FakeKernel::Submitted sqe = kernel_.next_submitted();
    kernel_.complete(sqe.user_data, 0);
    ring_->run_once(0);
    return sqe;
  };
  ring_->accept_multishot(owner, 1, 40);
  FakeKernel::Submitted sqe = submitted();
  EXPECT_EQ(sqe.opcode, IORING_OP_ACCEPT);
  EXPECT_EQ(sqe.fd, 40);
  EXPECT_EQ(sqe.ioprio, IORING_ACCEPT_MULTISHOT);
  EXPECT_EQ(sqe.op_flags, static_cast<unsigned>(SOCK_CLOEXEC));
  ring_->send(owner, 1, 41, data, 10, MSG_NOSIGNAL);
  sqe = submitted();
  EXPECT_EQ(sqe.opcode, IORING_OP_SEND);
  EXPECT_EQ(sqe.len, 10U);
  EXPECT_EQ(sqe.op_flags, static_cast<unsigned>(MSG_NOSIGNAL));
  ring_->send(owner, 1, 41, data, std::size_t{1} << 33, 0);
  EXPECT_EQ(submitted().len, 1U << 30);
  ring_->send_zero_copy(owner, 1, 41, data, 10, 0, 3);
  sqe = submitted();
  EXPECT_EQ(sqe.opcode, IORING_OP_SEND_ZC);
  EXPECT_EQ(sqe.ioprio, IORING_RECVSEND_FIXED_BUF);
  EXPECT_EQ(sqe.buf_index, 3);
  ring_->send_zero_copy(owner, 1, 41, data, 10, 0, -1);
  EXPECT_EQ(submitted().ioprio, 0);
  ring_->connect(owner, 1, 42, &address, 16);
  sqe = submitted();
  EXPECT_EQ(sqe.opcode, IORING_OP_CONNECT);
  EXPECT_EQ(sqe.off, 16U);
  ring_->cancel(owner, 5, 1);
  sqe = submitted();
  EXPECT_EQ(sqe.opcode, IORING_OP_ASYNC_CANCEL);
  EXPECT_EQ(sqe.addr, ring_->user_data(owner, 5));
  ring_->message(owner, 1, 44, 77, 5);
  sqe = submitted();
  EXPECT_EQ(sqe.opcode, IORING_OP_MSG_RING);
  EXPECT_EQ(sqe.fd, 44);
  EXPECT_EQ(sqe.off, 77U | unsolicited);
  EXPECT_EQ(sqe.len, 5U);
}

TEST_F(OperationsTest, a_receive_may_be_limited_to_less_than_a_buffer) {
  auto group = std::move(*BufferGroup::create(*ring_, 3, 8, 64, false));
  for (const std::uint32_t bytes : {1U, 63U, 64U, 65U}) {
    Owner owner(*ring_);
    ring_->receive_exactly(owner, 1, 40, *group, bytes);
    submit();
    const FakeKernel::Submitted sqe = kernel_.next_submitted();
    EXPECT_EQ(sqe.opcode, IORING_OP_RECV);
    EXPECT_EQ(sqe.fd, 40);
    EXPECT_EQ(sqe.len, std::min(bytes, 64U)) << "into one buffer";
    EXPECT_EQ(sqe.flags, IOSQE_BUFFER_SELECT);
    EXPECT_EQ(sqe.ioprio, 0) << "once";
    EXPECT_EQ(sqe.buf_index, 3);
    const io_uring_buf* buffer = kernel_.pick_buffer(3);
    ASSERT_NE(buffer, nullptr);
    kernel_.complete(sqe.user_data, 1,
                     IORING_CQE_F_BUFFER | unsigned{buffer->bid} << IORING_CQE_BUFFER_SHIFT);
    owner.action = [&](std::uint8_t, const Completion& completion) {
      EXPECT_EQ(group->take(completion).size(), 1U);
    };
    ring_->run_once(0);
    EXPECT_EQ(owner.seen, (std::vector<Owner::Seen>{{1, 1}}));
  }
  EXPECT_EQ(group->leased(), 0U);
}

TEST_F(OperationsTest, a_message_is_received_where_it_says) {
  Owner owner(*ring_);
  msghdr message{};
  ring_->receive_message(owner, 2, 40, &message);
  submit();
  const FakeKernel::Submitted sqe = kernel_.next_submitted();
  EXPECT_EQ(sqe.opcode, IORING_OP_RECVMSG);
  EXPECT_EQ(sqe.fd, 40);
  EXPECT_EQ(sqe.addr, reinterpret_cast<std::uint64_t>(&message));
  EXPECT_EQ(sqe.flags, 0);
  EXPECT_EQ(sqe.op_flags, 0U);
  kernel_.complete(sqe.user_data, 5);
  ring_->run_once(0);
  EXPECT_EQ(owner.seen, (std::vector<Owner::Seen>{{2, 5}}));
}

TEST_F(OperationsTest, reports_copies_only_where_the_kernel_knows_the_flag) {
  kernel_.features.zero_copy_report = true;
  auto ring = open(8, 16);
  Owner owner(*ring);
  char data[1];
  ring->send_zero_copy(owner, 1, 41, data, 1, 0, -1);
  ring->run_once(0);
  FakeKernel::Submitted sqe = kernel_.next_submitted();
  EXPECT_EQ(sqe.ioprio, 1U << 3);
  kernel_.complete(sqe.user_data, 1, IORING_CQE_F_MORE);
  kernel_.complete(sqe.user_data, INT32_MIN, IORING_CQE_F_NOTIF);
  ring->run_once(0);
  EXPECT_TRUE(owner.last.copied());
}

}  // namespace
}  // namespace ringside::ring::test
