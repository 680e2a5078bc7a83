// A stream whose records the kernel takes over.
#include <gtest/gtest.h>
#include <poll.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "records_fixture.h"

namespace ringside::net::test {
namespace {

using Status = RecordLayer::Status;

class KernelTlsTest : public RecordsTest {
 protected:
  explicit KernelTlsTest(const MachineOptions& options = {}, Side side = Side::server)
      : RecordsTest(options, side) {
    layer_.kernel = true;
  }
  News calls() { return std::exchange(layer_.calls, {}); }
  // Up to the last word of the handshake, which is given with what follows it.
  void begin(const std::string& rest = {}) {
    accept();
    machine_.arrive(fd_, "hi");
    ASSERT_EQ(machine_.leave(fd_), "yo");
    calls();
    machine_.arrive(fd_, "ok" + rest);
    EXPECT_EQ(handler_.news().back(), "secured");
  }
  // The kernel has both directions.
  void hand_over() {
    begin();
    ASSERT_EQ(calls(), (News{"tx", "rx"}));
  }
  // The receive met a record that is no data; the next one is what `control` says.
  void meet(Status status, std::string_view data = {}) {
    layer_.control = {.status = status, .data = data};
    machine_.end_receive(fd_, -EIO);
    ASSERT_TRUE(machine_.waits(IORING_OP_RECVMSG, fd_));
    EXPECT_FALSE(machine_.receiving(fd_));
  }
  void control_comes(int bytes = 2) { machine_.finish(IORING_OP_RECVMSG, fd_, bytes); }
  Machine::Operation receive() { return machine_.look(IORING_OP_RECV, fd_); }
};

// ---- handing over

TEST_F(KernelTlsTest, it_is_attached_before_anything_is_received) {
  adopt();
  EXPECT_EQ(calls(), (News{"attach " + std::to_string(fd_)}));
}

TEST_F(KernelTlsTest, until_the_kernel_has_it_receives_are_easy_to_stop) {
  accept();
  EXPECT_FALSE(multishot());
}

TEST_F(KernelTlsTest, both_directions_go_when_nothing_is_under_way) {
  begin();
  EXPECT_EQ(calls(), (News{"tx", "rx"}));
  EXPECT_TRUE(multishot()) << "from here on as every stream";
}

TEST_F(KernelTlsTest, sending_goes_when_everything_has_left_and_receiving_is_held_until_then) {
  accept();
  machine_.arrive(fd_, "hi");
  machine_.leave(fd_);
  layer_.say("ticket");
  calls();
  machine_.arrive(fd_, "ok");
  EXPECT_EQ(calls(), News{});
  EXPECT_FALSE(machine_.receiving(fd_));
  EXPECT_EQ(machine_.leave(fd_, 3), "tic");
  EXPECT_EQ(calls(), News{});
  EXPECT_FALSE(machine_.receiving(fd_));
  EXPECT_EQ(machine_.leave(fd_), "ket");
  EXPECT_EQ(calls(), (News{"tx", "rx"}));
  EXPECT_TRUE(machine_.receiving(fd_));
}

// A peer may answer a part of what we say, so the last word comes while the rest waits.
TEST_F(KernelTlsTest, what_is_to_be_sent_again_has_not_left) {
  accept();
  machine_.arrive(fd_, "hi");
  calls();
  machine_.complete(machine_.look_send(fd_), -EAGAIN);
  machine_.arrive(fd_, "ok");
  EXPECT_EQ(calls(), News{});
  EXPECT_EQ(machine_.leave(fd_), "yo");
  EXPECT_EQ(calls(), (News{"tx", "rx"}));
}

TEST_F(KernelTlsTest, what_the_layer_has_still_to_say_has_not_left) {
  accept();
  machine_.arrive(fd_, "hi");
  layer_.say("ticket");
  calls();
  EXPECT_EQ(machine_.leave(fd_), "yo");
  machine_.arrive(fd_, "ok");
  layer_.say("another");
  EXPECT_EQ(machine_.leave(fd_), "ticket");
  EXPECT_EQ(calls(), News{});
  EXPECT_EQ(machine_.leave(fd_), "another");
  EXPECT_EQ(calls(), (News{"tx", "rx"}));
}

TEST_F(KernelTlsTest, a_handler_that_resumes_in_between_does_not_hand_over) {
  accept();
  machine_.arrive(fd_, "hi");
  machine_.leave(fd_);
  layer_.say("ticket");
  const std::string wire = "ok" + record(std::string(70, 'x'));
  machine_.arrive(fd_, wire.substr(0, 64));
  machine_.leave(fd_);
  calls();
  handler_.news();
  handler_.action = [&](const std::string& event) {
    if (event.starts_with("received")) stream_->resume();
  };
  machine_.arrive(fd_, wire.substr(64));
  EXPECT_EQ(handler_.news(), (News{"received " + std::string(64, 'x'), "received xxxxxx"}));
  machine_.arrive(fd_, record("one"));
  EXPECT_EQ(handler_.news(), (News{"received one"}));
  EXPECT_EQ(calls(), (News{"rx"}));
}

TEST_F(KernelTlsTest, a_parked_stream_receives_nothing_when_the_hold_ends) {
  accept();
  machine_.arrive(fd_, "hi");
  machine_.leave(fd_);
  layer_.say("ticket");
  machine_.arrive(fd_, "ok");
  stream_->park();
  machine_.leave(fd_);
  EXPECT_FALSE(machine_.receiving(fd_));
  stream_->resume();
  machine_.settle();
  EXPECT_TRUE(machine_.receiving(fd_));
}

TEST_F(KernelTlsTest, receiving_goes_at_the_end_of_the_record_under_way) {
  begin(record("one").substr(0, 1));
  EXPECT_EQ(calls(), (News{"tx"}));
  EXPECT_EQ(receive().len, 1U) << "the header";
  EXPECT_FALSE(multishot());
  machine_.arrive(fd_, record("one").substr(1, 1));
  EXPECT_EQ(calls(), News{});
  EXPECT_EQ(receive().len, 3U);
  machine_.arrive(fd_, record("one").substr(2, 2));
  EXPECT_EQ(receive().len, 1U);
  machine_.arrive(fd_, record("one").substr(4));
  EXPECT_EQ(handler_.news(), (News{"received one"}));
  EXPECT_EQ(calls(), (News{"rx"}));
  EXPECT_EQ(receive().len, 0U);
}

TEST_F(KernelTlsTest, no_more_than_a_buffer_is_asked_for) {
  begin(record(std::string(100, 'x')).substr(0, 2));
  EXPECT_EQ(receive().len, 64U);
}

class ScarceKernelTlsTest : public KernelTlsTest {
 protected:
  ScarceKernelTlsTest() : KernelTlsTest({.opened_buffers = 1}) {}
};

TEST_F(ScarceKernelTlsTest, what_waits_to_be_opened_comes_before_the_kernel) {
  handler_.keep = true;
  accept();
  machine_.arrive(fd_, "hi");
  machine_.leave(fd_);
  layer_.say("ticket");
  calls();
  const std::string text(70, 'x');
  const std::string wire = "ok" + record(text);
  layer_.kernel = true;
  // Its buffers are of 64 bytes, so the second part waits in the stream or the layer.
  machine_.arrive(fd_, wire.substr(0, 64));
  EXPECT_EQ(machine_.leave(fd_), "ticket");
  ASSERT_EQ(calls(), (News{"tx"}));
  EXPECT_EQ(receive().len, 10U);
  machine_.arrive(fd_, wire.substr(64));
  EXPECT_EQ(calls(), News{}) << "six bytes wait for room";
  EXPECT_FALSE(machine_.receiving(fd_));
  handler_.keep = false;
  handler_.kept.clear();
  machine_.settle();
  EXPECT_EQ(handler_.news().back(), "received xxxxxx");
  EXPECT_EQ(calls(), (News{"rx"}));
  EXPECT_TRUE(machine_.receiving(fd_));
}

class ClientKernelTlsTest : public KernelTlsTest {
 protected:
  ClientKernelTlsTest() : KernelTlsTest({}, Side::client) {}
};

TEST_F(ClientKernelTlsTest, the_first_request_leaves_in_our_records) {
  ASSERT_TRUE(stream_->connect(*Address::from_ip("10.0.0.1", 443)).has_value());
  machine_.settle();
  sys_.close(fd_);
  fd_ = stream_->descriptor();
  machine_.finish(IORING_OP_CONNECT, fd_, 0);
  machine_.leave(fd_);
  handler_.action = [&](const std::string& event) {
    if (event == "connected") send("get");
  };
  machine_.arrive(fd_, "yo");
  EXPECT_TRUE(machine_.receiving(fd_)) << "a client is not held";
  EXPECT_EQ(calls(), (News{"attach " + std::to_string(fd_)}));
  EXPECT_EQ(machine_.leave(fd_), "ok" + record("get"));
  EXPECT_EQ(calls(), (News{"tx"}));
  EXPECT_FALSE(layer_.rx) << "a receive is armed";
  send("second");
  machine_.settle();
  EXPECT_EQ(machine_.leave(fd_), "second");
  machine_.arrive(fd_, record("answer"));
  EXPECT_EQ(calls(), (News{"rx"}));
  EXPECT_EQ(handler_.news(), (News{"sent", "connected", "sent", "sent", "received answer"}));
}

// ---- refusals

TEST_F(KernelTlsTest, a_kernel_that_refuses_is_done_without) {
  layer_.refuse_tx = true;
  begin();
  EXPECT_EQ(calls(), (News{"tx"}));
  send("hello");
  EXPECT_EQ(machine_.leave_all(fd_), record("hello"));
  EXPECT_TRUE(multishot());
  machine_.arrive(fd_, record("one"));
  EXPECT_EQ(handler_.news(), (News{"sent", "received one"}));
}

TEST_F(KernelTlsTest, it_may_take_over_sending_alone) {
  layer_.refuse_rx = true;
  begin();
  EXPECT_EQ(calls(), (News{"tx", "rx"}));
  send("hello");
  EXPECT_EQ(machine_.leave_all(fd_), "hello");
  machine_.arrive(fd_, record("one"));
  EXPECT_EQ(handler_.news(), (News{"sent", "received one"}));
}

TEST_F(KernelTlsTest, a_refusal_ends_a_connection_that_requires_it) {
  layer_.required = layer_.refuse_tx = true;
  accept();
  machine_.arrive(fd_, "hi");
  machine_.leave(fd_);
  handler_.news();
  machine_.arrive(fd_, "ok");
  EXPECT_EQ(handler_.news(), (News{"secured", insecure}));
}

TEST_F(KernelTlsTest, a_refusal_to_receive_ends_it_as_well) {
  layer_.required = layer_.refuse_rx = true;
  accept();
  machine_.arrive(fd_, "hi");
  machine_.leave(fd_);
  handler_.news();
  machine_.arrive(fd_, "ok");
  EXPECT_EQ(handler_.news(), (News{"secured", insecure}));
  machine_.arrive(fd_, record("one"));
  EXPECT_EQ(handler_.news(), News{});
}

TEST_F(KernelTlsTest, a_handler_that_closes_at_the_refusal_hears_no_more) {
  layer_.required = layer_.refuse_tx = true;
  accept();
  machine_.arrive(fd_, "hi");
  machine_.leave(fd_);
  layer_.say("ticket");
  machine_.arrive(fd_, "ok");
  handler_.news();
  handler_.action = [&](const std::string& event) {
    if (event == insecure) stream_->close();
  };
  machine_.leave(fd_);
  machine_.tidy();
  EXPECT_EQ(handler_.news(), (News{insecure, "closed"}));
}

// ---- when it has both

TEST_F(KernelTlsTest, bytes_pass_as_they_are) {
  hand_over();
  send("hello ");
  send("world");
  machine_.settle();
  EXPECT_EQ(machine_.leave(fd_), "hello world");
  EXPECT_EQ(stream_->bytes_sent(), 11U);
  machine_.arrive(fd_, "one");
  EXPECT_EQ(handler_.news(), (News{"sent", "received one"}));
  EXPECT_EQ(machine_.blocks.in_use(), 0U);
  EXPECT_TRUE(stream_->takes_pipes());
}

class KernelZeroCopyTest : public KernelTlsTest {
 protected:
  KernelZeroCopyTest() {
    machine_.context.zero_copy = StreamContext::ZeroCopy::always;
    machine_.context.zero_copy_bytes_min = 1;
  }
};

// A socket with kernel TLS does not know SEND_ZC.
TEST_F(KernelZeroCopyTest, nothing_is_sent_with_zero_copy) {
  hand_over();
  ASSERT_TRUE(stream_->send_piece(Piece(machine_.lease("body"))));
  machine_.settle();
  EXPECT_EQ(machine_.leave(fd_), "body");
}

class KernelSpliceTest : public KernelTlsTest {
 protected:
  KernelSpliceTest() {
    machine_.context.splice_bytes_min = 1;
    stream_->receive_singly(true);
  }
  // A poll of the socket is in flight.
  void await_splice() {
    handler_.opaque = 100;
    hand_over();
    ASSERT_TRUE(machine_.waits(IORING_OP_POLL_ADD, fd_));
  }
  void ready() { machine_.finish(IORING_OP_POLL_ADD, fd_, POLLIN); }
};

TEST_F(KernelSpliceTest, bodies_are_spliced_both_ways) {
  await_splice();
  sys_.readable[fd_] = "body";
  ready();
  EXPECT_EQ(handler_.news(), (News{"piped 4"}));
  ASSERT_TRUE(stream_->send_piece(Piece(std::move(handler_.piped.front()))));
  machine_.settle();
  EXPECT_EQ(sys_.written[fd_], "body");
}

TEST_F(KernelSpliceTest, a_record_that_is_no_data_is_not_spliced) {
  await_splice();
  sys_.splice_errno[fd_] = EINVAL;
  layer_.control.status = Status::need_input;
  ready();
  ASSERT_TRUE(machine_.waits(IORING_OP_RECVMSG, fd_));
  control_comes();
  EXPECT_TRUE(machine_.waits(IORING_OP_POLL_ADD, fd_)) << "splicing goes on";
  sys_.readable[fd_] = "body";
  ready();
  EXPECT_EQ(handler_.news(), (News{"piped 4"}));
}

// A poll tells of the first bytes of a record, and a splice wants all of it.
TEST_F(KernelSpliceTest, half_a_record_is_awaited_by_a_receive) {
  await_splice();
  for (int i = 0; i < 2; ++i) {
    sys_.splice_errno[fd_] = EAGAIN;
    ready();
    EXPECT_FALSE(machine_.waits(IORING_OP_POLL_ADD, fd_)) << "it spins";
    machine_.arrive(fd_, "whole");
    EXPECT_EQ(handler_.news(), (News{"received whole"}));
    EXPECT_TRUE(machine_.waits(IORING_OP_POLL_ADD, fd_)) << "splicing goes on";
  }
}

// ---- records that are no data

TEST_F(KernelTlsTest, a_control_record_is_received_by_itself) {
  hand_over();
  meet(Status::need_input);
  const Machine::Operation control = machine_.look(IORING_OP_RECVMSG, fd_);
  EXPECT_EQ(control.addr, reinterpret_cast<std::uint64_t>(layer_.control_message()));
  control_comes(5);
  EXPECT_EQ(layer_.controls, (std::vector<std::size_t>{5}));
  EXPECT_EQ(handler_.news(), News{});
  machine_.arrive(fd_, "one");
  EXPECT_EQ(handler_.news(), (News{"received one"}));
}

TEST_F(KernelTlsTest, a_control_record_may_be_the_end) {
  hand_over();
  meet(Status::ended);
  control_comes();
  EXPECT_EQ(handler_.news(), (News{"end"}));
  EXPECT_FALSE(machine_.receiving(fd_));
  send("answer");
  EXPECT_EQ(machine_.leave_all(fd_), "answer");
}

TEST_F(KernelTlsTest, a_control_record_may_be_a_failure) {
  hand_over();
  meet(Status::failed);
  control_comes();
  EXPECT_EQ(handler_.news(), (News{insecure}));
  stream_->resume();
  machine_.settle();
  EXPECT_FALSE(machine_.receiving(fd_)) << "what follows could not be told from good data";
}

TEST_F(KernelTlsTest, what_cannot_be_opened_is_not_received_and_sending_goes_on) {
  hand_over();
  meet(Status::unreadable);
  control_comes();
  EXPECT_EQ(handler_.news(), (News{failure(base::ErrorCode::unsupported)}));
  stream_->resume();
  machine_.settle();
  EXPECT_FALSE(machine_.receiving(fd_));
  send("answer");
  EXPECT_EQ(machine_.leave_all(fd_), "answer");
  stream_->finish_sending();
  machine_.settle();
  EXPECT_EQ(machine_.leave(fd_), "bye");
}

TEST_F(KernelTlsTest, what_the_layer_has_to_say_goes_before_what_waits) {
  hand_over();
  send("one");
  meet(Status::need_input);
  layer_.to_say = "new key";
  control_comes();
  EXPECT_TRUE(machine_.receiving(fd_)) << "that does not wait for it";
  send("two");
  EXPECT_EQ(machine_.leave(fd_), "one");
  EXPECT_EQ(calls(), News{});
  EXPECT_EQ(machine_.leave(fd_), "new key");
  EXPECT_EQ(calls(), (News{"said new key"}));
  EXPECT_EQ(machine_.leave_all(fd_), "two");
  EXPECT_EQ(handler_.news(), (News{"sent", "sent"})) << "of it the handler hears nothing";
}

TEST_F(KernelTlsTest, what_the_layer_has_to_say_is_said_on_an_idle_connection_and_tried_again) {
  hand_over();
  meet(Status::need_input);
  layer_.to_say = "new key";
  control_comes();
  machine_.finish(machine_.look_send(fd_), -EAGAIN);
  send("one");
  EXPECT_EQ(machine_.leave(fd_), "new key");
  EXPECT_EQ(machine_.leave_all(fd_), "one");
}

TEST_F(KernelTlsTest, nothing_is_sent_when_what_the_layer_said_left_it_without_a_key) {
  hand_over();
  meet(Status::need_input);
  layer_.to_say = "new key";
  layer_.said_result = -EBUSY;
  control_comes();
  send("one");
  EXPECT_EQ(machine_.leave(fd_), "new key");
  const std::string word(base::describe(base::from_errno(EBUSY).code));
  EXPECT_EQ(handler_.news(), (News{"failed send " + word}));
  EXPECT_FALSE(machine_.sending(fd_)) << "a byte under a stale key";
  stream_->close();
  machine_.settle();
  EXPECT_FALSE(machine_.sending(fd_));
}

TEST_F(KernelTlsTest, what_came_as_a_message_may_be_data) {
  hand_over();
  meet(Status::more, "one");
  control_comes(3);
  EXPECT_EQ(handler_.news(), (News{"received one"}));
  EXPECT_TRUE(machine_.receiving(fd_));
  EXPECT_EQ(machine_.opened->leased(), 0U);
}

TEST_F(KernelTlsTest, data_of_a_message_may_need_several_buffers) {
  hand_over();
  const std::string text = std::string(64, 'x') + "tail";
  meet(Status::more, text);
  control_comes(68);
  EXPECT_EQ(handler_.news(), (News{"received " + std::string(64, 'x'), "received tail"}));
}

TEST_F(ScarceKernelTlsTest, without_room_for_data_of_a_message_it_fails_once) {
  hand_over();
  const ring::Lease taken = machine_.opened->borrow();
  meet(Status::more, "one");
  control_comes(3);
  EXPECT_EQ(handler_.news().size(), 1U);
  stream_->resume();
  machine_.settle();
  EXPECT_FALSE(machine_.receiving(fd_)) << "there is a hole in it";
}

TEST_F(KernelTlsTest, a_message_that_fails_is_an_error_of_the_receive) {
  hand_over();
  meet(Status::need_input);
  machine_.finish(IORING_OP_RECVMSG, fd_, -ECONNRESET);
  EXPECT_EQ(handler_.news(), (News{failure(base::from_errno(ECONNRESET).code)}));
}

TEST_F(KernelTlsTest, without_memory_for_a_message_it_fails) {
  hand_over();
  layer_.no_memory = true;
  machine_.end_receive(fd_, -EIO);
  EXPECT_EQ(handler_.news(), (News{failure(base::ErrorCode::no_memory)}));
  EXPECT_FALSE(machine_.waits(IORING_OP_RECVMSG, fd_));
}

TEST_F(KernelTlsTest, before_the_kernel_opens_records_eio_is_an_error) {
  accept();
  machine_.end_receive(fd_, -EIO);
  EXPECT_EQ(handler_.news(), (News{failure(base::from_errno(EIO).code)}));
}

TEST_F(KernelTlsTest, it_may_be_closed_while_a_message_is_awaited) {
  hand_over();
  meet(Status::ended);
  stream_->close();
  machine_.tidy();
  EXPECT_EQ(handler_.news(), (News{"closed"}));
  EXPECT_TRUE(layer_.controls.empty());
}

TEST_F(KernelTlsTest, a_fin_without_an_announcement_is_a_failure) {
  hand_over();
  machine_.arrive(fd_, "one");
  machine_.end_receive(fd_, 0);
  EXPECT_EQ(handler_.news(), (News{"received one", insecure}));
  EXPECT_EQ(layer_.ends, 1U);
}

// ---- our end

TEST_F(KernelTlsTest, the_end_is_announced_before_the_fin) {
  hand_over();
  send("last");
  stream_->finish_sending();
  machine_.settle();
  EXPECT_EQ(machine_.leave(fd_), "last");
  ASSERT_TRUE(machine_.waits(IORING_OP_SENDMSG, fd_));
  EXPECT_EQ(sys_.ends[fd_], 0);
  handler_.news();
  EXPECT_EQ(machine_.leave(fd_), "bye");
  EXPECT_EQ(sys_.ends[fd_], 1);
  EXPECT_EQ(stream_->bytes_sent(), 4U) << "it is no data";
  EXPECT_EQ(handler_.news(), (News{"sent"})) << "of the FIN";
  EXPECT_TRUE(stream_->finished());
  stream_->close();
  machine_.settle();
  EXPECT_FALSE(machine_.sending(fd_)) << "it was said";
}

TEST_F(KernelTlsTest, an_announcement_that_is_to_be_tried_again_is) {
  hand_over();
  stream_->finish_sending();
  machine_.settle();
  machine_.finish(machine_.look_send(fd_), -EAGAIN);
  EXPECT_EQ(sys_.ends[fd_], 0);
  EXPECT_EQ(machine_.leave(fd_), "bye");
  EXPECT_EQ(sys_.ends[fd_], 1);
}

TEST_F(KernelTlsTest, an_announcement_that_fails_is_a_failed_send) {
  hand_over();
  stream_->finish_sending();
  machine_.settle();
  machine_.finish(machine_.look_send(fd_), -EPIPE);
  EXPECT_EQ(handler_.news(),
            (News{"failed send " + std::string(base::describe(base::from_errno(EPIPE).code))}));
}

TEST_F(KernelTlsTest, closing_announces_the_end_and_does_not_wait_for_room) {
  hand_over();
  stream_->close();
  machine_.settle();
  const Machine::Operation send = machine_.look(IORING_OP_SENDMSG, fd_);
  EXPECT_EQ(machine_.text(send), "bye");
  EXPECT_EQ(send.op_flags, unsigned{MSG_NOSIGNAL | MSG_DONTWAIT});
  machine_.finish(send, -EAGAIN);
  machine_.tidy();
  EXPECT_EQ(handler_.news(), (News{"closed"}));
}

TEST_F(KernelTlsTest, a_reset_says_nothing) {
  hand_over();
  stream_->close(true);
  machine_.settle();
  EXPECT_FALSE(machine_.sending(fd_));
}

TEST_F(KernelTlsTest, a_send_in_flight_is_not_followed_by_a_farewell) {
  hand_over();
  send("hello");
  machine_.settle();
  const Machine::Operation send = machine_.look_send(fd_);
  stream_->close();
  machine_.settle();
  EXPECT_TRUE(machine_.cancelled(send));
  machine_.finish(send, 3);
  EXPECT_FALSE(machine_.sending(fd_));
  EXPECT_FALSE(layer_.close_said);
}

}  // namespace
}  // namespace ringside::net::test
