// How a stream comes to be and how it ends: connecting, closing in three steps, giving away.
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "stream_fixture.h"

namespace ringside::net::test {
namespace {

// ---- connecting

class StreamConnectTest : public StreamTest {
 protected:
  StreamConnectTest() { sys_.close(fd_); }
  void connect(const Address& address = *Address::from_ip("10.0.0.1", 80)) {
    address_ = address;
    ASSERT_TRUE(stream_->connect(address_).has_value());
    fd_ = stream_->descriptor();
    machine_.settle();
  }
  Address address_;
};

TEST_F(StreamConnectTest, connects_to_the_address_without_delay) {
  connect();
  EXPECT_FALSE(stream_->open());
  EXPECT_TRUE(sys_.without_delay.contains(fd_));
  Machine::Operation operation = machine_.look(IORING_OP_CONNECT, fd_);
  EXPECT_EQ(operation.off, address_.length());
  EXPECT_EQ(Address::from_raw(reinterpret_cast<const sockaddr*>(operation.addr),
                              static_cast<socklen_t>(operation.off)),
            address_);
  machine_.finish(operation, 0);
  EXPECT_EQ(handler_.news(), (News{"connected"}));
  EXPECT_TRUE(stream_->open());
  EXPECT_TRUE(stream_->parked());
  EXPECT_TRUE(stream_->idle());
}

TEST_F(StreamConnectTest, what_was_queued_before_leaves_once_it_is_connected) {
  connect();
  stream_->send_view("early");
  machine_.settle();
  EXPECT_FALSE(machine_.sending(fd_));
  machine_.finish(IORING_OP_CONNECT, fd_, 0);
  stream_->send_view(" late");
  EXPECT_EQ(machine_.leave_all(fd_), "early late");
}

TEST_F(StreamConnectTest, a_unix_socket_has_no_delay_to_switch_off) {
  connect(*Address::from_unix("/run/app.sock"));
  EXPECT_TRUE(sys_.without_delay.empty());
}

TEST_F(StreamConnectTest, a_refused_connect_fails_and_is_still_to_be_closed) {
  connect();
  machine_.finish(IORING_OP_CONNECT, fd_, -ECONNREFUSED);
  EXPECT_EQ(handler_.news(), (News{"failed send refused"}));
  EXPECT_FALSE(stream_->closing());
  EXPECT_FALSE(stream_->idle());
  stream_->resume();
  stream_->send_view("x");
  machine_.settle();
  EXPECT_TRUE(machine_.kernel.submitted.empty()) << "nothing can be done on it";
  stream_->close();
  machine_.settle();
  machine_.finish_close(fd_);
  EXPECT_EQ(handler_.news(), (News{"closed"}));
}

TEST_F(StreamConnectTest, closed_while_it_connects_the_connect_is_cancelled_and_nothing_told) {
  for (int result : {-ECANCELED, 0}) {  // the cancel may come too late
    Recorder handler;
    Stream stream(machine_.context, handler);
    Address address = *Address::from_ip("10.0.0.1", 80);
    ASSERT_TRUE(stream.connect(address).has_value());
    int fd = stream.descriptor();
    machine_.settle();
    stream.close();
    machine_.settle();
    Machine::Operation operation = machine_.look(IORING_OP_CONNECT, fd);
    Machine::Operation cancel = machine_.cancel_of(operation);
    EXPECT_FALSE(machine_.closing(fd));
    machine_.complete(operation, result);
    machine_.finish(cancel, result == 0 ? -ENOENT : 0);
    EXPECT_EQ(handler.news(), News{});
    machine_.finish_close(fd);
    EXPECT_EQ(handler.news(), (News{"closed"}));
  }
}

TEST_F(StreamConnectTest, no_socket_is_an_error_at_once) {
  sys_.open_errno = EMFILE;
  base::Result<void> result = stream_->connect(*Address::from_ip("10.0.0.1", 80));
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, base::ErrorCode::no_descriptors);
  EXPECT_EQ(machine_.ring->attached(), 0U);
}

class NoSlotTest : public StreamTest {
 protected:
  NoSlotTest() : StreamTest({.owners_max = 1}) {}
};

TEST_F(NoSlotTest, without_a_slot_the_descriptor_stays_the_callers) {
  adopt();
  Recorder handler;
  Stream second(machine_.context, handler);
  int fd = *sys_.open_stream_socket(AF_INET);
  EXPECT_FALSE(second.adopt(fd));
  EXPECT_TRUE(sys_.open.contains(fd));
  sys_.close(fd);
  base::Result<void> result = second.connect(*Address::from_ip("10.0.0.1", 80));
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, base::ErrorCode::pool_exhausted);
  EXPECT_EQ(sys_.open, std::set<int>{fd_}) << "the socket that connect opened is closed";
}

// ---- closing

class StreamCloseTest : public StreamTest {
 protected:
  StreamCloseTest() { adopt(); }
};

TEST_F(StreamCloseTest, a_new_stream_is_closed_at_once_and_nothing_told) {
  Recorder handler;
  Stream stream(machine_.context, handler);
  stream.close();
  EXPECT_TRUE(stream.closing());
  EXPECT_EQ(handler.news(), News{});
}

TEST_F(StreamCloseTest, closing_then_joining_then_closed) {
  stream_->resume();
  stream_->send_view("unsent");
  machine_.settle();
  Machine::Operation receive = machine_.look(IORING_OP_RECV, fd_);
  Machine::Operation send = machine_.look_send(fd_);
  stream_->close();
  stream_->close();
  EXPECT_TRUE(stream_->closing());
  EXPECT_FALSE(stream_->open());
  machine_.settle();
  Machine::Operation cancel_receive = machine_.cancel_of(receive);
  Machine::Operation cancel_send = machine_.cancel_of(send);
  // Whatever completes last, the descriptor is closed after it and not before.
  for (const auto& [operation, result] :
       {std::pair{cancel_receive, 0}, {send, -ECANCELED}, {receive, -ECANCELED}}) {
    machine_.finish(operation, result);
    EXPECT_FALSE(machine_.closing(fd_));
  }
  machine_.finish(cancel_send, 0);
  EXPECT_EQ(handler_.news(), News{}) << "nothing is told of a stream that closes";
  machine_.finish_close(fd_);
  EXPECT_EQ(handler_.news(), (News{"closed"}));
  EXPECT_EQ(machine_.ring->attached(), 0U);
  EXPECT_EQ(stream_->descriptor(), -1);
  EXPECT_TRUE(sys_.to_be_reset.empty());
}

TEST_F(StreamCloseTest, what_arrives_meanwhile_is_dropped_and_its_buffer_given_back) {
  stream_->resume();
  machine_.settle();
  Machine::Operation receive = machine_.look(IORING_OP_RECV, fd_);
  stream_->close();
  machine_.settle();
  Machine::Operation cancel = machine_.cancel_of(receive);
  machine_.put(fd_, "late");
  machine_.complete(receive, -ECANCELED);
  machine_.finish(cancel, 0);
  machine_.finish_close(fd_);
  EXPECT_EQ(handler_.news(), (News{"closed"}));
  EXPECT_EQ(machine_.buffers->leased(), 0U);
}

TEST_F(StreamCloseTest, queued_but_not_in_flight_is_not_sent_any_more) {
  ring::Lease body = machine_.lease("body");
  stream_->send_view("head");
  stream_->send_piece(std::move(body));
  stream_->close();
  machine_.settle();
  EXPECT_FALSE(machine_.sending(fd_));
  machine_.finish_close(fd_);
  EXPECT_EQ(handler_.news(), (News{"closed"}));
  EXPECT_EQ(machine_.buffers->leased(), 0U) << "the lease was not given back";
}

TEST_F(StreamCloseTest, a_lease_in_flight_is_held_to_the_end) {
  stream_->send_piece(machine_.lease("body"));
  machine_.settle();
  Machine::Operation send = machine_.look_send(fd_);
  stream_->close();
  machine_.settle();
  EXPECT_EQ(machine_.text(send), "body") << "the kernel may still read it";
  EXPECT_EQ(machine_.buffers->leased(), 1U);
  machine_.tidy();
  EXPECT_EQ(machine_.buffers->leased(), 0U);
}

TEST_F(StreamCloseTest, an_arena_is_kept_until_nothing_points_into_it) {
  base::ChunkPool chunks;
  {
    base::Arena arena(chunks);
    stream_->send_view(arena.copy("head"));
    machine_.settle();
    stream_->keep_until_closed(arena);
    stream_->close();
  }
  Machine::Operation send = machine_.look_send(fd_);
  EXPECT_EQ(machine_.text(send), "head") << "its exchange is over, but not the operation";
  EXPECT_EQ(chunks.in_use(), 1U);
  machine_.settle();
  Machine::Operation cancel = machine_.cancel_of(send);
  machine_.complete(send, 4);  // it was quicker than the cancel
  machine_.finish(cancel, -ENOENT);
  machine_.finish_close(fd_);
  EXPECT_EQ(handler_.news(), (News{"closed"}));
  EXPECT_EQ(chunks.in_use(), 0U);
}

TEST_F(StreamCloseTest, an_arena_that_nothing_points_into_is_not_kept) {
  base::ChunkPool chunks;
  {
    base::Arena arena(chunks);
    stream_->send_view(arena.copy("head"));
    machine_.leave_all(fd_);
    stream_->keep_until_closed(arena);
  }
  EXPECT_EQ(chunks.in_use(), 0U);
}

TEST_F(StreamCloseTest, refused_cancels_are_tried_again) {
  stream_->resume();
  stream_->send_view("unsent");
  machine_.settle();
  Machine::Operation receive = machine_.look(IORING_OP_RECV, fd_);
  Machine::Operation send = machine_.look_send(fd_);
  stream_->close();
  machine_.settle();
  machine_.finish(machine_.cancel_of(receive), -EBUSY);
  machine_.finish(machine_.cancel_of(send), -EBUSY);
  ASSERT_TRUE(machine_.cancelled(receive));
  ASSERT_TRUE(machine_.cancelled(send));
  machine_.tidy();
  EXPECT_EQ(handler_.news(), (News{"closed"}));
}

TEST_F(StreamCloseTest, a_refused_close_is_done_by_a_system_call) {
  stream_->close();
  machine_.settle();
  machine_.finish(IORING_OP_CLOSE, fd_, -EBUSY);
  EXPECT_FALSE(sys_.open.contains(fd_)) << "the descriptor would be lost";
  EXPECT_EQ(handler_.news(), (News{"closed"}));
}

TEST_F(StreamCloseTest, with_reset_the_peer_sees_one) {
  stream_->close(true);
  EXPECT_TRUE(sys_.to_be_reset.contains(fd_));
}

TEST_F(StreamCloseTest, closed_in_any_of_its_handlers) {
  auto close = [&](const std::string& event) {
    if (event != "closed") stream_->close();
  };
  stream_->resume();
  stream_->send_view("x");
  machine_.settle();
  handler_.action = close;
  machine_.put(fd_, "one");
  machine_.put(fd_, "two");
  machine_.tidy();
  EXPECT_EQ(handler_.news(), (News{"received one", "closed"}));
}

TEST_F(StreamCloseTest, may_be_destroyed_when_it_is_told_that_it_is_closed) {
  handler_.action = [&](const std::string& event) {
    if (event == "closed") stream_ = std::make_unique<Stream>(machine_.context, handler_);
  };
  stream_->resume();
  machine_.settle();
  stream_->close();
  machine_.tidy();
  EXPECT_EQ(handler_.news(), (News{"closed"}));
}

// ---- giving away

TEST_F(StreamCloseTest, released_it_gives_its_descriptor_away) {
  stream_->release();
  machine_.tidy();
  EXPECT_EQ(handler_.news(), (News{"released " + std::to_string(fd_)}));
  EXPECT_EQ(machine_.ring->attached(), 0U);
  EXPECT_TRUE(sys_.open.contains(fd_));
  sys_.close(fd_);
}

TEST_F(StreamCloseTest, a_receive_ends_before_the_descriptor_is_given_away) {
  for (bool singly : {false, true}) {
    Recorder handler;
    Stream stream(machine_.context, handler);
    int fd = *sys_.open_stream_socket(AF_INET);
    ASSERT_TRUE(stream.adopt(fd));
    stream.receive_singly(singly);
    stream.resume();
    machine_.settle();
    stream.release();
    machine_.settle();
    Machine::Operation receive = machine_.look(IORING_OP_RECV, fd);
    machine_.finish(machine_.cancel_of(receive), -EBUSY);  // tried again
    machine_.finish(machine_.cancel_of(receive), 0);
    EXPECT_EQ(handler.news(), News{});
    machine_.finish(receive, -ECANCELED);
    EXPECT_EQ(handler.news(), (News{"released " + std::to_string(fd)}));
    sys_.close(fd);
  }
}

TEST_F(StreamCloseTest, whoever_speaks_or_ends_meanwhile_is_closed_and_not_given_away) {
  for (bool speaks : {true, false}) {
    Recorder handler;
    Stream stream(machine_.context, handler);
    int fd = *sys_.open_stream_socket(AF_INET);
    ASSERT_TRUE(stream.adopt(fd));
    stream.resume();
    machine_.settle();
    stream.release();
    machine_.settle();
    Machine::Operation receive = machine_.look(IORING_OP_RECV, fd);
    Machine::Operation cancel = machine_.cancel_of(receive);
    if (speaks)
      machine_.put(fd, "unasked", true);
    else
      machine_.complete(receive, 0);
    machine_.finish(cancel, -ENOENT);
    machine_.finish_close(fd);
    EXPECT_EQ(handler.news(), (News{"closed"}));
    EXPECT_EQ(machine_.buffers->leased(), 0U);
  }
}

}  // namespace
}  // namespace ringside::net::test
