// What a stream receives: arming, back-pressure, buffers that run out, and how it ends.
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "stream_fixture.h"

namespace ringside::net::test {
namespace {

constexpr unsigned receive_bundle = 1U << 4;  // in ioprio

class StreamReceiveTest : public StreamTest {
 protected:
  explicit StreamReceiveTest(const MachineOptions& options = {}) : StreamTest(options) { adopt(); }
  bool multishot() {
    return (machine_.look(IORING_OP_RECV, fd_).ioprio & IORING_RECV_MULTISHOT) != 0;
  }
  void resume() {
    stream_->resume();
    machine_.settle();
  }
};

TEST_F(StreamReceiveTest, a_new_stream_is_parked_and_multishot_once_it_is_resumed) {
  EXPECT_TRUE(stream_->parked());
  machine_.settle();
  EXPECT_FALSE(machine_.receiving(fd_));
  resume();
  EXPECT_FALSE(stream_->parked());
  EXPECT_TRUE(multishot());
  machine_.put(fd_, "one");
  machine_.put(fd_, "two");
  machine_.settle();
  EXPECT_EQ(handler_.news(), (News{"received one", "received two"}));
  resume();
  EXPECT_EQ(machine_.kernel.submitted.size(), 1U) << "armed twice";
}

TEST_F(StreamReceiveTest, a_multishot_that_ended_is_armed_again) {
  resume();
  machine_.arrive(fd_, "one", true);
  EXPECT_EQ(handler_.news(), (News{"received one"}));
  machine_.arrive(fd_, "two");
  EXPECT_EQ(handler_.news(), (News{"received two"}));
  for (int error : {-EAGAIN, -EINTR, -ECANCELED}) {
    machine_.end_receive(fd_, error);
    EXPECT_TRUE(machine_.receiving(fd_)) << error;
  }
  EXPECT_EQ(handler_.news(), News{});
}

TEST_F(StreamReceiveTest, parking_cancels_and_resuming_arms_again) {
  resume();
  Machine::Operation receive = machine_.look(IORING_OP_RECV, fd_);
  stream_->park();
  EXPECT_TRUE(stream_->parked());
  machine_.settle();
  Machine::Operation cancel = machine_.cancel_of(receive);
  machine_.put(fd_, "under way", true);  // it was quicker than the cancel
  machine_.finish(cancel, -ENOENT);
  EXPECT_EQ(handler_.news(), (News{"received under way"}));
  EXPECT_FALSE(machine_.receiving(fd_));
  resume();
  EXPECT_TRUE(machine_.receiving(fd_));
}

TEST_F(StreamReceiveTest, resumed_while_the_cancel_is_under_way_it_receives_on) {
  resume();
  Machine::Operation receive = machine_.look(IORING_OP_RECV, fd_);
  stream_->park();
  machine_.settle();
  Machine::Operation cancel = machine_.cancel_of(receive);
  resume();
  EXPECT_EQ(machine_.kernel.submitted.size(), 2U) << "one receive at a time";
  machine_.complete(receive, -ECANCELED);
  machine_.finish(cancel, 0);
  machine_.arrive(fd_, "more");
  EXPECT_EQ(handler_.news(), (News{"received more"}));
}

TEST_F(StreamReceiveTest, a_cancel_that_the_kernel_refused_is_tried_again) {
  resume();
  Machine::Operation receive = machine_.look(IORING_OP_RECV, fd_);
  stream_->park();
  machine_.settle();
  machine_.finish(machine_.cancel_of(receive), -EBUSY);
  EXPECT_TRUE(machine_.cancelled(receive));
  machine_.complete(receive, -ECANCELED);
  machine_.finish(machine_.cancel_of(receive), 0);
  EXPECT_FALSE(machine_.receiving(fd_));
}

TEST_F(StreamReceiveTest, parked_in_the_handler_it_stops) {
  handler_.action = [&](const std::string&) { stream_->park(); };
  resume();
  machine_.arrive(fd_, "one", true);
  EXPECT_FALSE(machine_.receiving(fd_));
}

TEST_F(StreamReceiveTest, the_end_is_told_once_and_nothing_is_armed_after_it) {
  resume();
  machine_.arrive(fd_, "last");
  machine_.end_receive(fd_, 0);
  EXPECT_EQ(handler_.news(), (News{"received last", "end"}));
  EXPECT_TRUE(stream_->ended());
  EXPECT_TRUE(stream_->open());
  EXPECT_FALSE(stream_->idle());
  stream_->park();
  resume();
  EXPECT_FALSE(machine_.receiving(fd_));
  stream_->send_view("an answer");
  EXPECT_EQ(machine_.leave_all(fd_), "an answer") << "half closed is not closed";
}

TEST_F(StreamReceiveTest, a_failure_ends_the_receiving_direction_only) {
  resume();
  stream_->send_view("under way");
  machine_.settle();
  machine_.end_receive(fd_, -ECONNRESET);
  EXPECT_EQ(handler_.news(), (News{"failed receive reset"}));
  EXPECT_TRUE(stream_->open());
  EXPECT_TRUE(stream_->ended());
  EXPECT_EQ(stream_->pending_bytes(), 9U);
  EXPECT_FALSE(machine_.receiving(fd_));
  machine_.finish(machine_.look_send(fd_), -EPIPE);
  EXPECT_EQ(handler_.news(), (News{"failed send reset"}));
}

TEST_F(StreamReceiveTest, what_a_failed_receive_brought_a_buffer_for_is_given_back) {
  resume();
  const io_uring_buf* buffer = machine_.kernel.pick_buffer(machine_.buffers->id());
  machine_.finish(machine_.look(IORING_OP_RECV, fd_), -ECONNRESET,
                  IORING_CQE_F_BUFFER | unsigned{buffer->bid} << IORING_CQE_BUFFER_SHIFT);
  EXPECT_EQ(machine_.buffers->leased(), 0U);
}

// ---- singly

// A look at a socket that is known to be empty is wasted.
TEST_F(StreamReceiveTest, singly_it_polls_first_unless_there_is_more_to_read) {
  auto polls_first = [&] {
    return (machine_.look(IORING_OP_RECV, fd_).ioprio & IORING_RECVSEND_POLL_FIRST) != 0;
  };
  stream_->receive_singly(true);
  resume();
  EXPECT_TRUE(polls_first());
  machine_.put_of_more(fd_, "one");
  machine_.settle();
  EXPECT_FALSE(polls_first());
  machine_.arrive(fd_, "two");
  EXPECT_TRUE(polls_first());
  EXPECT_EQ(handler_.news(), (News{"received one", "received two"}));
}

TEST_F(StreamReceiveTest, singly_one_receive_follows_the_other_and_parking_costs_nothing) {
  stream_->receive_singly(true);
  resume();
  EXPECT_FALSE(multishot());
  machine_.arrive(fd_, "one");
  EXPECT_TRUE(machine_.receiving(fd_));
  Machine::Operation receive = machine_.look(IORING_OP_RECV, fd_);
  stream_->park();
  machine_.settle();
  EXPECT_FALSE(machine_.cancelled(receive));
  machine_.arrive(fd_, "two");
  EXPECT_EQ(handler_.news(), (News{"received one", "received two"}));
  EXPECT_FALSE(machine_.receiving(fd_));
  resume();
  EXPECT_TRUE(machine_.receiving(fd_));
}

TEST_F(StreamReceiveTest, the_way_of_receiving_can_change_on_the_way) {
  resume();
  Machine::Operation receive = machine_.look(IORING_OP_RECV, fd_);
  stream_->receive_singly(true);
  machine_.settle();
  Machine::Operation cancel = machine_.cancel_of(receive);
  machine_.complete(receive, -ECANCELED);
  machine_.finish(cancel, 0);
  EXPECT_FALSE(multishot());
  stream_->receive_singly(false);
  machine_.settle();
  EXPECT_FALSE(multishot()) << "the one that is armed goes on";
  machine_.arrive(fd_, "x");
  EXPECT_TRUE(multishot());
}

class BundleTest : public StreamReceiveTest {
 protected:
  BundleTest() : StreamReceiveTest({.buffers = 64, .buffer_bytes = 8, .bundles = true}) {}
};

TEST_F(BundleTest, a_single_receive_takes_a_fair_share_and_hands_it_on_in_order) {
  stream_->receive_singly(true);
  resume();
  Machine::Operation receive = machine_.look(IORING_OP_RECV, fd_);
  EXPECT_NE(receive.ioprio & receive_bundle, 0U);
  EXPECT_EQ(receive.len / 8, 64U / 16) << "a sixteenth of the free buffers";
  machine_.arrive(fd_, "12345678abcdefghxyz");
  EXPECT_EQ(handler_.news(), (News{"received 12345678", "received abcdefgh", "received xyz"}));
  EXPECT_EQ(handler_.marks, (std::vector<Mover>{Mover::bundle, Mover::bundle, Mover::bundle}));
  EXPECT_TRUE(machine_.receiving(fd_));
}

TEST_F(BundleTest, whoever_closes_in_the_middle_gets_nothing_more_and_no_buffer_is_lost) {
  stream_->receive_singly(true);
  resume();
  handler_.action = [&](const std::string& event) {
    if (event == "received 12345678") stream_->close();
  };
  machine_.arrive(fd_, "12345678abcdefghxyz");
  EXPECT_EQ(handler_.news(), (News{"received 12345678"}));
  EXPECT_EQ(machine_.buffers->leased(), 0U);
}

// ---- large buffers

class LargeTest : public StreamReceiveTest {
 protected:
  LargeTest()
      : StreamReceiveTest({.buffers = 8, .buffer_bytes = 8, .bundles = true, .large_buffers = 2}) {
    stream_->receive_singly(true);
    resume();
  }
  bool into_large() { return machine_.look(IORING_OP_RECV, fd_).buf_index == machine_.large->id(); }
};

TEST_F(LargeTest, one_receive_is_one_piece_and_its_buffer_goes_back_at_once) {
  EXPECT_TRUE(into_large());
  EXPECT_EQ(machine_.look(IORING_OP_RECV, fd_).ioprio & receive_bundle, 0U);
  EXPECT_EQ(machine_.large->leased(), 0U) << "who waits holds no buffer";
  machine_.arrive(fd_, "far more than a buffer holds");
  EXPECT_EQ(handler_.news(), (News{"received far more than a buffer holds"}));
  EXPECT_EQ(handler_.marks, (std::vector<Mover>{Mover::large}));
  EXPECT_EQ(machine_.large->leased(), 0U);
  EXPECT_TRUE(into_large());
}

TEST_F(LargeTest, who_finds_all_in_use_goes_on_with_the_others) {
  handler_.keep = true;
  machine_.arrive(fd_, "one");
  machine_.arrive(fd_, "two");
  ASSERT_EQ(machine_.large->published(), 0U);
  EXPECT_FALSE(into_large());
  machine_.arrive(fd_, "three");
  EXPECT_EQ(handler_.marks, (std::vector<Mover>{Mover::large, Mover::large, Mover::copy}));
  EXPECT_FALSE(into_large());
  handler_.kept.clear();
  machine_.arrive(fd_, "four");
  EXPECT_TRUE(into_large());
}

// Others took them between the submission and the first byte; a kernel may also be wrong about it.
TEST_F(LargeTest, a_receive_that_found_none_is_made_again_without) {
  machine_.end_receive(fd_, -ENOBUFS);
  EXPECT_EQ(handler_.news(), News{});
  ASSERT_TRUE(machine_.receiving(fd_));
  EXPECT_FALSE(into_large()) << "asking again would spin";
  machine_.arrive(fd_, "one");
  EXPECT_TRUE(into_large());
}

TEST_F(LargeTest, parked_in_time_it_is_not_made_again) {
  stream_->park();
  machine_.end_receive(fd_, -ENOBUFS);
  EXPECT_FALSE(machine_.receiving(fd_));
  resume();
  EXPECT_TRUE(machine_.receiving(fd_));
}

TEST_F(LargeTest, a_multishot_does_not_use_them) {
  machine_.arrive(fd_, "x");
  stream_->receive_singly(false);
  machine_.arrive(fd_, "y");
  EXPECT_TRUE(multishot());
  EXPECT_FALSE(into_large());
}

TEST_F(LargeTest, only_who_sends_in_bulk_gets_them_unless_everybody_does) {
  machine_.context.large_streak_min = 1;
  machine_.arrive(fd_, "a short receive");
  EXPECT_FALSE(into_large());
}

// Its streak needs receives of 16 KiB and more.
class LargeInBulkTest : public StreamReceiveTest {
 protected:
  static constexpr std::uint32_t full = 16 * 1024;
  LargeInBulkTest()
      : StreamReceiveTest({.buffers = 8,
                           .buffer_bytes = full,
                           .large_buffers = 2,
                           .large_buffer_bytes = 2 * full}) {
    machine_.context.large_streak_min = 2 * full;
    stream_->receive_by_need();
    resume();
  }
};

TEST_F(LargeInBulkTest, a_peer_gets_them_once_it_has_shown_its_pace_until_it_slows_down) {
  EXPECT_TRUE(multishot()) << "not before a buffer was filled";
  machine_.arrive(fd_, std::string(full, 'a'), true);
  EXPECT_EQ(machine_.look(IORING_OP_RECV, fd_).buf_index, machine_.buffers->id());
  machine_.arrive(fd_, std::string(full, 'b'));
  EXPECT_EQ(machine_.look(IORING_OP_RECV, fd_).buf_index, machine_.large->id());
  machine_.arrive(fd_, "little");
  EXPECT_EQ(machine_.look(IORING_OP_RECV, fd_).buf_index, machine_.buffers->id());
  EXPECT_EQ(handler_.marks, (std::vector<Mover>{Mover::copy, Mover::copy, Mover::large}));
}

// ---- by need

class ByNeedTest : public StreamReceiveTest {
 protected:
  ByNeedTest() : StreamReceiveTest({.buffers = 8, .buffer_bytes = 8}) {
    stream_->receive_by_need();
    resume();
  }
  static constexpr int turns_of_a_bulk_sender = 16;
};

TEST_F(ByNeedTest, who_sends_little_is_received_by_one_multishot) {
  EXPECT_TRUE(multishot());
  Machine::Operation receive = machine_.look(IORING_OP_RECV, fd_);
  for (int i = 0; i < 3; ++i)
    machine_.arrive(fd_, "little");
  EXPECT_FALSE(machine_.cancelled(receive));
  EXPECT_EQ(machine_.kernel.submitted.size(), 1U);
}

TEST_F(ByNeedTest, who_fills_a_buffer_is_received_singly_until_it_sends_little_for_a_while) {
  Machine::Operation receive = machine_.look(IORING_OP_RECV, fd_);
  machine_.arrive(fd_, "12345678");
  Machine::Operation cancel = machine_.cancel_of(receive);
  machine_.put(fd_, "on way");
  machine_.complete(receive, -ECANCELED);
  machine_.finish(cancel, 0);
  for (int i = 1; i < turns_of_a_bulk_sender; ++i) {  // one was on its way
    EXPECT_FALSE(multishot()) << i;
    machine_.arrive(fd_, "little");
  }
  EXPECT_TRUE(multishot());
}

TEST_F(ByNeedTest, with_few_buffers_left_everybody_is_received_singly) {
  handler_.keep = true;
  for (int i = 0; i < 2; ++i)
    machine_.arrive(fd_, "kept");
  Machine::Operation receive = machine_.look(IORING_OP_RECV, fd_);
  EXPECT_FALSE(machine_.cancelled(receive)) << "a quarter is not too much";
  machine_.arrive(fd_, "kept");
  machine_.finish(machine_.cancel_of(receive), 0);
  machine_.finish(receive, -ECANCELED);
  EXPECT_FALSE(multishot());
  handler_.kept.clear();
  machine_.arrive(fd_, "little");
  EXPECT_TRUE(multishot());
}

TEST_F(ByNeedTest, resuming_looks_again) {
  ring::Lease others[] = {machine_.lease("a"), machine_.lease("b"), machine_.lease("c")};
  Machine::Operation receive = machine_.look(IORING_OP_RECV, fd_);
  EXPECT_FALSE(machine_.cancelled(receive));
  resume();
  machine_.finish(machine_.cancel_of(receive), 0);
  machine_.finish(receive, -ECANCELED);
  EXPECT_FALSE(multishot());
}

// A small body would be in the buffers of a multishot before it could go into a pipe.
TEST_F(ByNeedTest, where_every_body_is_to_be_spliced_it_is_received_singly) {
  machine_.context.splice_bytes_min = 1;
  machine_.arrive(fd_, "x", true);
  EXPECT_FALSE(multishot());
}

// ---- buffers that run out

class FewBuffersTest : public StreamReceiveTest {
 protected:
  FewBuffersTest() : StreamReceiveTest({.buffers = 2}) { handler_.keep = true; }
  void use_up() {
    machine_.arrive(fd_, "a");
    machine_.arrive(fd_, "b");
    ASSERT_EQ(machine_.buffers->published(), 0U);
    machine_.end_receive(fd_, -ENOBUFS);
    handler_.news();
  }
};

TEST_F(FewBuffersTest, without_buffers_it_waits_and_goes_on_when_one_is_back) {
  for (bool singly : {false, true}) {
    SCOPED_TRACE(singly);
    stream_->receive_singly(singly);
    resume();
    use_up();
    EXPECT_FALSE(machine_.receiving(fd_)) << "asking again would spin";
    EXPECT_EQ(handler_.news(), News{}) << "it is no failure";
    handler_.kept.pop_back();
    machine_.settle();
    EXPECT_TRUE(machine_.receiving(fd_));
    EXPECT_EQ(multishot(), !singly);
    machine_.arrive(fd_, "c");
    EXPECT_EQ(handler_.news(), (News{"received c"}));
    handler_.kept.clear();
    if (!singly) {
      Machine::Operation receive = machine_.look(IORING_OP_RECV, fd_);
      stream_->receive_singly(true);
      machine_.settle();
      machine_.complete(receive, -ECANCELED);
      machine_.finish(machine_.cancel_of(receive), 0);
    }
  }
}

TEST_F(FewBuffersTest, parked_while_it_waits_it_arms_only_when_it_is_resumed) {
  resume();
  use_up();
  stream_->park();
  handler_.kept.clear();
  machine_.settle();
  EXPECT_FALSE(machine_.receiving(fd_));
  resume();
  machine_.arrive(fd_, "c");
  EXPECT_EQ(handler_.news(), (News{"received c"}));
}

TEST_F(FewBuffersTest, run_dry_while_the_cancel_of_a_park_is_under_way_it_does_not_wait) {
  resume();
  Machine::Operation receive = machine_.look(IORING_OP_RECV, fd_);
  stream_->park();
  machine_.settle();
  Machine::Operation cancel = machine_.cancel_of(receive);
  machine_.complete(receive, -ENOBUFS);
  machine_.finish(cancel, -ENOENT);
  EXPECT_FALSE(machine_.receiving(fd_));
  resume();
  EXPECT_TRUE(machine_.receiving(fd_));
}

TEST_F(FewBuffersTest, closed_while_it_waits_it_is_not_woken) {
  resume();
  use_up();
  stream_->close();
  handler_.kept.clear();
  machine_.settle();
  EXPECT_FALSE(machine_.receiving(fd_));
  machine_.finish_close(fd_);
  EXPECT_EQ(handler_.news(), (News{"closed"}));
}

}  // namespace
}  // namespace ringside::net::test
