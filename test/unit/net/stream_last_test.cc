// The last bytes of a stream and its end in one go, and the receive that is not repeated.
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "stream_fixture.h"

namespace ringside::net::test {
namespace {

class StreamLastTest : public StreamTest {
 protected:
  StreamLastTest() { adopt(); }

  // Queues "head" and "body", the last, and submits them.
  void send_last() {
    stream_->send_view("head");
    stream_->send_view("body");
    stream_->close_after_sending();
    machine_.settle();
    send_ = machine_.look_send(fd_);
    close_ = machine_.look(IORING_OP_CLOSE, fd_);
  }
  void close_runs() {
    sys_.close(fd_);
    machine_.finish(close_, 0);
  }

  Machine::Operation send_;
  Machine::Operation close_;
};

TEST_F(StreamLastTest, the_close_is_linked_behind_the_send) {
  send_last();
  EXPECT_EQ(machine_.text(send_), "headbody");
  EXPECT_NE(send_.flags & IOSQE_IO_LINK, 0);
  EXPECT_NE(send_.op_flags & MSG_WAITALL, 0U) << "a short send must not be followed by a close";
  EXPECT_EQ(machine_.kernel.submitted.size(), 2U);
  machine_.take_send(fd_);
  EXPECT_TRUE(stream_->ends_itself());
  close_runs();
  EXPECT_EQ(handler_.news(), (News{"sent"}));
  EXPECT_TRUE(stream_->drained());
  EXPECT_EQ(stream_->descriptor(), -1) << "the number may be another's";
  stream_->close();
  EXPECT_EQ(handler_.news(), News{}) << "not from inside the call";
  machine_.settle();
  EXPECT_EQ(handler_.news(), (News{"closed"}));
  EXPECT_TRUE(machine_.kernel.submitted.empty()) << "it is closed twice";
}

TEST_F(StreamLastTest, the_receive_that_would_hold_the_socket_goes_first) {
  stream_->resume();
  machine_.settle();
  Machine::Operation receive = machine_.look(IORING_OP_RECV, fd_);
  send_last();
  Machine::Operation cancel = machine_.cancel_of(receive);
  EXPECT_EQ(machine_.kernel.submitted[1].user_data, cancel.user_data) << "the send goes first";
  machine_.complete(cancel, 0);
  machine_.finish(receive, -ECANCELED);
  EXPECT_FALSE(machine_.receiving(fd_)) << "it is armed again";
  machine_.take_send(fd_);
  close_runs();
  stream_->close();
  machine_.settle();
  EXPECT_EQ(handler_.news(), (News{"sent", "closed"}));
}

TEST_F(StreamLastTest, closed_before_it_has_ended) {
  send_last();
  handler_.action = [&](const std::string& event) {
    if (event == "sent") stream_->close();
  };
  machine_.take_send(fd_);
  machine_.settle();
  EXPECT_EQ(handler_.news(), (News{"sent"})) << "the close is still to complete";
  close_runs();
  EXPECT_EQ(handler_.news(), (News{"closed"}));
}

TEST_F(StreamLastTest, the_sending_direction_is_not_ended_a_second_time) {
  send_last();
  stream_->finish_sending();
  machine_.take_send(fd_);
  close_runs();
  EXPECT_TRUE(sys_.ends.empty()) << "the descriptor may be another's";
}

TEST_F(StreamLastTest, a_send_that_fails_leaves_the_descriptor) {
  stream_->resume();
  send_last();
  machine_.complete(send_, -EPIPE);
  machine_.settle();
  EXPECT_EQ(handler_.news(), News{}) << "before it is known whether the descriptor is there";
  machine_.finish(close_, -ECANCELED);
  EXPECT_EQ(handler_.news().size(), 1U);
  EXPECT_FALSE(stream_->ends_itself());
  stream_->close(true);
  EXPECT_TRUE(sys_.to_be_reset.contains(fd_));
  machine_.tidy();
  EXPECT_EQ(handler_.news(), (News{"closed"}));
}

TEST_F(StreamLastTest, what_the_socket_did_not_take_leaves_by_sends_that_wait) {
  for (int taken : {5, -EAGAIN}) {
    Recorder handler;
    Stream stream(machine_.context, handler);
    int fd = *sys_.open_stream_socket(AF_INET);
    ASSERT_TRUE(stream.adopt(fd));
    stream.resume();
    stream.send_view("all of it");
    stream.close_after_sending();
    machine_.settle();
    Machine::Operation send = machine_.look_send(fd);
    EXPECT_NE(send.op_flags & MSG_DONTWAIT, 0U) << "its progress would not be seen";
    if (machine_.receiving(fd)) machine_.end_receive(fd, -ECANCELED);
    machine_.complete(send, taken);
    machine_.finish(IORING_OP_CLOSE, fd, -ECANCELED);
    EXPECT_TRUE(machine_.receiving(fd)) << "the client is not listened to any more";
    send = machine_.look_send(fd);
    EXPECT_EQ(machine_.text(send), taken > 0 ? "f it" : "all of it");
    EXPECT_EQ(send.op_flags & (MSG_DONTWAIT | MSG_MORE), 0U);
    EXPECT_FALSE(machine_.closing(fd));
    machine_.leave_all(fd);
    EXPECT_FALSE(stream.ends_itself());
    stream.close();
    machine_.tidy();
    EXPECT_EQ(handler.news().back(), "closed");
  }
}

TEST_F(StreamLastTest, a_close_that_did_not_run_may_complete_before_the_send) {
  send_last();
  machine_.complete(close_, -EBADF);
  machine_.complete(send_, 5);
  machine_.settle();
  EXPECT_EQ(handler_.news(), (News{"sent"}));
  EXPECT_FALSE(stream_->ends_itself());
  EXPECT_EQ(machine_.leave_all(fd_), "ody");
}

TEST_F(StreamLastTest, a_reset_is_only_asked_for_while_the_descriptor_is_ours) {
  for (bool runs : {true, false}) {
    Recorder handler;
    Stream stream(machine_.context, handler);
    fd_ = *sys_.open_stream_socket(AF_INET);
    ASSERT_TRUE(stream.adopt(fd_));
    stream.send_view("last");
    stream.close_after_sending();
    machine_.settle();
    Machine::Operation send = machine_.look_send(fd_);
    Machine::Operation close = machine_.look(IORING_OP_CLOSE, fd_);
    stream.close(true);
    machine_.settle();
    EXPECT_FALSE(sys_.to_be_reset.contains(fd_));
    machine_.complete(machine_.cancel_of(send), runs ? -ENOENT : 0);
    machine_.complete(send, runs ? 4 : -ECANCELED);
    if (runs) sys_.close(fd_);
    machine_.finish(close, runs ? 0 : -ECANCELED);
    EXPECT_EQ(sys_.to_be_reset.contains(fd_), !runs);
    EXPECT_EQ(machine_.closing(fd_), !runs) << "what did not run is done later";
    machine_.tidy();
    EXPECT_EQ(handler.news(), (News{"closed"}));
  }
}

TEST_F(StreamLastTest, entries_that_the_kernel_refuses) {
  send_last();
  machine_.complete(send_, -EBUSY);
  machine_.finish(close_, -EBUSY);
  EXPECT_EQ(handler_.news().size(), 1U);
  EXPECT_TRUE(sys_.open.contains(fd_));
  stream_->close();
  machine_.tidy();
  EXPECT_EQ(handler_.news(), (News{"closed"}));
}

TEST_F(StreamLastTest, what_may_not_fit_into_the_socket_is_sent_by_itself) {
  const std::string large(20'000, 'x');
  stream_->send_view(large);
  stream_->close_after_sending();
  machine_.settle();
  EXPECT_FALSE(machine_.closing(fd_));
  machine_.leave_all(fd_);
  EXPECT_FALSE(stream_->ends_itself());
}

// ---- receiving once

TEST_F(StreamLastTest, received_once_it_is_parked) {
  stream_->receive_once();
  machine_.settle();
  EXPECT_EQ(machine_.look(IORING_OP_RECV, fd_).ioprio & IORING_RECV_MULTISHOT, 0);
  machine_.arrive(fd_, "one", true);
  EXPECT_EQ(handler_.news(), (News{"received one"}));
  EXPECT_TRUE(stream_->parked());
  EXPECT_FALSE(machine_.receiving(fd_));
  stream_->resume();
  machine_.settle();
  EXPECT_NE(machine_.look(IORING_OP_RECV, fd_).ioprio & IORING_RECV_MULTISHOT, 0);
}

TEST_F(StreamLastTest, resumed_while_it_receives_once_it_goes_on) {
  stream_->receive_once();
  stream_->resume();
  machine_.settle();
  machine_.arrive(fd_, "one", true);
  EXPECT_TRUE(machine_.receiving(fd_));
}

TEST_F(StreamLastTest, when_nothing_was_received_once_it_is_tried_again) {
  stream_->receive_once();
  machine_.settle();
  machine_.end_receive(fd_, -EINTR);
  EXPECT_FALSE(stream_->parked());
  machine_.arrive(fd_, "one");
  EXPECT_EQ(handler_.news(), (News{"received one"}));
}

}  // namespace
}  // namespace ringside::net::test
