// What a stream sends, in which order, and what becomes of the memory.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "stream_fixture.h"

namespace ringside::net::test {
namespace {

using Direction = StreamHandler::Direction;

class StreamSendTest : public StreamTest {
 protected:
  StreamSendTest() { adopt(); }
};

TEST_F(StreamSendTest, copies_views_and_leases_of_a_turn_leave_in_one_operation_in_their_order) {
  base::ChunkPool chunks;
  base::Arena arena(chunks);
  ring::Lease body = machine_.lease("body");
  std::string copied = "4\r\n";
  EXPECT_TRUE(stream_->send_view(arena.copy("head ")));
  EXPECT_TRUE(stream_->send_copy(copied));
  copied.assign("xxx");
  EXPECT_TRUE(stream_->send_piece(std::move(body)));
  EXPECT_TRUE(stream_->send_view(" tail"));
  EXPECT_FALSE(machine_.sending(fd_)) << "not before the end of the turn";
  EXPECT_EQ(stream_->pending_bytes(), 17U);
  EXPECT_FALSE(stream_->sending());
  machine_.settle();
  EXPECT_TRUE(stream_->sending());
  EXPECT_EQ(machine_.leave(fd_), "head 4\r\nbody tail");
  EXPECT_EQ(handler_.news(), (News{"sent"}));
  EXPECT_TRUE(stream_->drained());
  EXPECT_FALSE(stream_->sending());
  EXPECT_EQ(stream_->pending_bytes(), 0U);
  EXPECT_EQ(stream_->bytes_sent(), 17U);
  EXPECT_FALSE(machine_.sending(fd_));
}

TEST_F(StreamSendTest, one_piece_needs_no_gather_list) {
  EXPECT_TRUE(stream_->send_view("hello"));
  machine_.settle();
  EXPECT_TRUE(machine_.waits(IORING_OP_SEND, fd_));
  EXPECT_EQ(machine_.leave(fd_), "hello");
}

TEST_F(StreamSendTest, a_small_body_leaves_in_one_piece_with_its_head) {
  base::ChunkPool chunks;
  base::Arena arena(chunks);
  EXPECT_TRUE(stream_->send_view(arena.copy("head ")));
  EXPECT_TRUE(stream_->send_copy("4\r\n", arena));
  EXPECT_TRUE(stream_->send_piece(machine_.lease("body"), arena));
  EXPECT_EQ(machine_.buffers->leased(), 0U) << "a copy needs no lease";
  EXPECT_TRUE(stream_->send_view(" tail", arena));
  machine_.settle();
  EXPECT_TRUE(machine_.waits(IORING_OP_SEND, fd_)) << "no list";
  EXPECT_TRUE(stream_->send_view(" more", arena)) << "behind what is in flight";
  EXPECT_EQ(machine_.leave(fd_), "head 4\r\nbody tail");
  EXPECT_EQ(stream_->pending_bytes(), 5U);
  EXPECT_EQ(machine_.leave(fd_), " more");
  EXPECT_TRUE(stream_->drained());
}

TEST_F(StreamSendTest, a_large_body_is_not_copied) {
  base::ChunkPool chunks;
  base::Arena arena(chunks);
  EXPECT_TRUE(stream_->send_view(arena.copy("head ")));
  const std::string body(2049, 'b');
  EXPECT_TRUE(stream_->send_view(body, arena));
  machine_.settle();
  EXPECT_TRUE(machine_.waits(IORING_OP_SENDMSG, fd_)) << "a list";
  EXPECT_EQ(machine_.leave(fd_), "head " + body);
}

TEST_F(StreamSendTest, nothing_is_not_sent) {
  EXPECT_TRUE(stream_->send_view(""));
  EXPECT_TRUE(stream_->send_piece({}));
  machine_.settle();
  EXPECT_TRUE(stream_->drained());
  EXPECT_FALSE(machine_.sending(fd_));
}

TEST_F(StreamSendTest, a_short_send_of_any_length_goes_on_where_it_stopped) {
  static const std::string all = "abc12defgh";
  std::uint64_t before = 0;
  for (std::size_t cut = 1; cut < all.size(); ++cut) {
    ring::Lease tail = machine_.lease("defgh");
    EXPECT_TRUE(stream_->send_view("abc"));
    EXPECT_TRUE(stream_->send_copy("12"));
    EXPECT_TRUE(stream_->send_piece(std::move(tail)));
    machine_.settle();
    EXPECT_EQ(machine_.leave(fd_, cut), all.substr(0, cut));
    EXPECT_EQ(handler_.news(), (News{"sent"}));
    EXPECT_EQ(stream_->pending_bytes(), all.size() - cut);
    EXPECT_FALSE(stream_->drained());
    EXPECT_EQ(stream_->bytes_sent(), before + cut);
    EXPECT_EQ(machine_.leave(fd_), all.substr(cut));
    EXPECT_EQ(handler_.news(), (News{"sent"}));
    EXPECT_TRUE(stream_->drained());
    before += all.size();
    EXPECT_EQ(stream_->bytes_sent(), before);
    EXPECT_EQ(machine_.buffers->leased(), 0U) << "the lease was not given back";
  }
}

TEST_F(StreamSendTest, byte_by_byte) {
  EXPECT_TRUE(stream_->send_view("ab"));
  EXPECT_TRUE(stream_->send_copy("c"));
  EXPECT_TRUE(stream_->send_view("de"));
  machine_.settle();
  std::string got;
  while (machine_.sending(fd_))
    got += machine_.leave(fd_, 1);
  EXPECT_EQ(got, "abcde");
}

TEST_F(StreamSendTest, a_lease_goes_back_when_its_last_byte_has_left) {
  ring::Lease body = machine_.lease("body");
  ASSERT_EQ(machine_.buffers->leased(), 1U);
  EXPECT_TRUE(stream_->send_piece(std::move(body)));
  EXPECT_TRUE(stream_->send_view("tail"));
  machine_.settle();
  machine_.leave(fd_, 3);
  EXPECT_EQ(machine_.buffers->leased(), 1U);
  machine_.leave(fd_, 2);
  EXPECT_EQ(machine_.buffers->leased(), 0U);
  machine_.leave_all(fd_);
}

TEST_F(StreamSendTest, what_comes_during_a_send_leaves_after_it) {
  EXPECT_TRUE(stream_->send_view("first"));
  machine_.settle();
  EXPECT_TRUE(stream_->send_view("second"));
  EXPECT_TRUE(stream_->send_view("third"));
  machine_.settle();
  EXPECT_EQ(stream_->pending_bytes(), 16U);
  EXPECT_EQ(machine_.leave(fd_), "first");
  EXPECT_EQ(machine_.leave(fd_), "secondthird");
}

TEST_F(StreamSendTest, the_rest_of_a_short_send_and_new_bytes_leave_together) {
  EXPECT_TRUE(stream_->send_view("first"));
  machine_.settle();
  EXPECT_TRUE(stream_->send_view("second"));
  EXPECT_EQ(machine_.leave(fd_, 2), "fi");
  EXPECT_EQ(machine_.leave(fd_), "rstsecond");
}

TEST_F(StreamSendTest, what_a_handler_queues_in_on_sent_leaves) {
  int left = 3;
  handler_.action = [&](const std::string& event) {
    if (event == "sent" && left-- > 0) stream_->send_view("x");
  };
  EXPECT_TRUE(stream_->send_view("x"));
  EXPECT_EQ(machine_.leave_all(fd_), "xxxx");
}

TEST_F(StreamSendTest, more_pieces_than_a_gather_list_holds_leave_in_order) {
  std::string all;
  for (int i = 0; i < 150; ++i) {
    std::string piece = std::to_string(i) + ' ';
    EXPECT_TRUE(stream_->send_copy(piece));
    all += piece;
  }
  machine_.settle();
  std::string first = machine_.leave(fd_);
  EXPECT_LT(first.size(), all.size());
  EXPECT_EQ(first + machine_.leave_all(fd_), all);
}

TEST_F(StreamSendTest, an_interrupted_send_is_sent_again_and_is_no_failure) {
  for (int error : {-EAGAIN, -EINTR}) {
    EXPECT_TRUE(stream_->send_view("hello"));
    machine_.settle();
    machine_.finish(machine_.look_send(fd_), error);
    EXPECT_EQ(handler_.news(), News{});
    EXPECT_EQ(machine_.leave(fd_), "hello");
    EXPECT_EQ(handler_.news(), (News{"sent"}));
  }
}

TEST_F(StreamSendTest, a_reset_ends_the_sending_direction_only) {
  for (int error : {EPIPE, ECONNRESET}) {
    SCOPED_TRACE(error);
    Recorder handler;
    Stream stream(machine_.context, handler);
    int fd = *sys_.open_stream_socket(AF_INET);
    ASSERT_TRUE(stream.adopt(fd));
    stream.resume();
    ring::Lease body = machine_.lease("body");
    stream.send_view("head");
    stream.send_piece(std::move(body));
    machine_.settle();
    machine_.finish(machine_.look_send(fd), -error);
    EXPECT_EQ(handler.news(), (News{"failed send reset"}));
    EXPECT_TRUE(stream.drained()) << "the views must be free";
    EXPECT_EQ(machine_.buffers->leased(), 0U);
    EXPECT_EQ(stream.bytes_sent(), 0U);
    // The answer that the peer sent before it reset can still be read.
    EXPECT_TRUE(stream.open());
    machine_.arrive(fd, "answer");
    machine_.end_receive(fd, 0);
    EXPECT_EQ(handler.news(), (News{"received answer", "end"}));
    // And nothing more is tried.
    stream.send_view("more");
    stream.finish_sending();
    machine_.settle();
    EXPECT_FALSE(machine_.sending(fd));
    EXPECT_EQ(sys_.ends[fd], 0);
    stream.close();
    close_now(fd);
    EXPECT_EQ(handler.news(), (News{"closed"}));
  }
}

TEST_F(StreamSendTest, the_end_is_sent_once_and_after_everything_queued) {
  stream_->send_view("last");
  stream_->finish_sending();
  stream_->finish_sending();
  machine_.settle();
  EXPECT_EQ(sys_.ends[fd_], 0);
  EXPECT_EQ(machine_.leave(fd_, 2), "la");
  EXPECT_EQ(sys_.ends[fd_], 0);
  EXPECT_EQ(machine_.leave(fd_), "st");
  EXPECT_EQ(sys_.ends[fd_], 1);
  stream_->finish_sending();
  machine_.settle();
  EXPECT_EQ(sys_.ends[fd_], 1);
  EXPECT_TRUE(stream_->open()) << "the other direction goes on";
}

TEST_F(StreamSendTest, idle_only_when_nothing_is_queued_or_in_flight) {
  EXPECT_TRUE(stream_->idle());
  stream_->send_view("x");
  EXPECT_FALSE(stream_->idle());
  machine_.settle();
  EXPECT_FALSE(stream_->idle());
  machine_.leave(fd_);
  EXPECT_TRUE(stream_->idle());
}

class DryPoolTest : public StreamTest {
 protected:
  DryPoolTest() : StreamTest({.slices = 2}) { adopt(); }
};

TEST_F(DryPoolTest, out_of_memory_is_told_and_what_is_queued_stays) {
  ring::Lease body = machine_.lease("body");
  EXPECT_TRUE(stream_->send_view("a"));
  EXPECT_TRUE(stream_->send_copy("b"));
  EXPECT_FALSE(stream_->send_view("c"));
  EXPECT_FALSE(stream_->send_copy("d"));
  EXPECT_FALSE(stream_->send_piece(std::move(body)));
  EXPECT_EQ(stream_->pending_bytes(), 2U);
  EXPECT_EQ(machine_.leave_all(fd_), "ab");
  EXPECT_EQ(machine_.buffers->leased(), 0U);
  EXPECT_TRUE(stream_->send_view("c"));
  EXPECT_EQ(machine_.leave_all(fd_), "c");
}

constexpr std::uint8_t zero_copies_max = 4;

class ZeroCopyTest : public StreamTest {
 protected:
  using ZeroCopy = StreamContext::ZeroCopy;
  ZeroCopyTest() : StreamTest({.large_buffers = 4}) {
    machine_.context.zero_copy = ZeroCopy::always;
    machine_.context.zero_copy_bytes_min = 8;
    adopt();
  }
  void queue(std::string_view bytes) { EXPECT_TRUE(stream_->send_piece(machine_.lease(bytes))); }
  Machine::Operation zero_copy() {
    machine_.settle();
    return machine_.look(IORING_OP_SEND_ZC, fd_);
  }
};

TEST_F(ZeroCopyTest, the_lease_is_held_until_the_notification_and_the_response_is_not) {
  queue("a large piece");
  Machine::Operation send = zero_copy();
  EXPECT_EQ(machine_.text(send), "a large piece");
  machine_.finish(send, 13, IORING_CQE_F_MORE);
  EXPECT_EQ(handler_.news(), (News{"sent"}));
  EXPECT_TRUE(stream_->drained());
  EXPECT_EQ(stream_->bytes_sent(), 13U);
  EXPECT_EQ(stream_->bytes_zero_copied(), 13U);
  EXPECT_FALSE(stream_->idle()) << "the kernel still owes the notification";
  EXPECT_EQ(machine_.buffers->leased(), 1U);
  EXPECT_EQ(machine_.text(send), "a large piece") << "the kernel may still read it";
  machine_.finish(send, 0, IORING_CQE_F_NOTIF);
  EXPECT_EQ(machine_.buffers->leased(), 0U);
  EXPECT_TRUE(stream_->idle());
  EXPECT_EQ(handler_.news(), News{});
}

TEST_F(ZeroCopyTest, a_few_are_owed_at_a_time_and_others_go_by_copy) {
  std::vector<Machine::Operation> owed;
  for (int i = 0; i < zero_copies_max; ++i) {
    queue("a large piece");
    machine_.settle();
    ASSERT_FALSE(machine_.sending(fd_));
    // Those that are owed are in flight, too: the last one is new.
    owed.push_back(machine_.kernel.submitted.back());
    ASSERT_EQ(owed.back().opcode, IORING_OP_SEND_ZC);
    machine_.finish(owed.back(), 13, IORING_CQE_F_MORE);
  }
  queue("another large one");
  machine_.settle();
  EXPECT_EQ(machine_.leave(fd_), "another large one");
  EXPECT_EQ(machine_.buffers->leased(), unsigned{zero_copies_max});
  // In whichever order they come.
  machine_.finish(owed[2], 0, IORING_CQE_F_NOTIF);
  EXPECT_EQ(machine_.buffers->leased(), zero_copies_max - 1U);
  queue("a last large one");
  machine_.settle();
  Machine::Operation last = machine_.kernel.submitted.back();
  ASSERT_EQ(last.opcode, IORING_OP_SEND_ZC);
  EXPECT_EQ(last.user_data, owed[2].user_data) << "the place that is free";
  machine_.finish(last, 16, IORING_CQE_F_MORE);
  owed[2] = last;
  for (const Machine::Operation& one : owed) {
    EXPECT_FALSE(stream_->idle());
    machine_.finish(one, 0, IORING_CQE_F_NOTIF);
  }
  EXPECT_TRUE(stream_->idle());
  EXPECT_EQ(stream_->bytes_zero_copied(), zero_copies_max * 13U + 16U);
  EXPECT_EQ(stream_->bytes_sent(), stream_->bytes_zero_copied() + 17U);
}

// The line of a chunk, say: together with what follows it the piece would be copied.
TEST_F(ZeroCopyTest, what_is_before_a_large_piece_leaves_by_itself) {
  EXPECT_TRUE(stream_->send_view("head "));
  EXPECT_TRUE(stream_->send_copy("line "));
  queue("a large piece");
  EXPECT_TRUE(stream_->send_copy(" end"));
  machine_.settle();
  EXPECT_EQ(machine_.leave(fd_), "head line ");
  Machine::Operation send = zero_copy();
  EXPECT_EQ(machine_.text(send), "a large piece");
  machine_.finish(send, 13, IORING_CQE_F_MORE);
  EXPECT_EQ(machine_.leave(fd_), " end");
  EXPECT_TRUE(stream_->send_copy("one line "));
  queue("another large one");
  machine_.settle();
  EXPECT_EQ(machine_.leave(fd_), "one line ");
  Machine::Operation next = machine_.kernel.submitted.back();
  EXPECT_EQ(machine_.text(next), "another large one");
  machine_.finish(next, 17, IORING_CQE_F_MORE);
  machine_.finish(next, 0, IORING_CQE_F_NOTIF);
  machine_.finish(send, 0, IORING_CQE_F_NOTIF);
}

TEST_F(ZeroCopyTest, a_connection_that_copies_after_all_is_asked_no_more_unless_it_must) {
  constexpr auto copied = static_cast<std::int32_t>(0x8000'0000U);
  for (auto how : {ZeroCopy::while_useful, ZeroCopy::always}) {
    machine_.context.zero_copy = how;
    for (int result : {0, copied}) {
      queue("a large piece");
      Machine::Operation send = zero_copy();
      machine_.finish(send, 13, IORING_CQE_F_MORE);
      machine_.finish(send, result, IORING_CQE_F_NOTIF);
    }
    queue("another large one");
    machine_.settle();
    bool asked = machine_.waits(IORING_OP_SEND_ZC, fd_);
    EXPECT_EQ(asked, how == ZeroCopy::always);
    if (!asked) {
      EXPECT_EQ(machine_.leave(fd_), "another large one");
    } else {
      machine_.finish(machine_.look(IORING_OP_SEND_ZC, fd_), -ECONNRESET);
    }
    if (how == ZeroCopy::always) break;
    stream_->close();
    machine_.settle();
    machine_.finish_close(fd_);
    stream_ = std::make_unique<Stream>(machine_.context, handler_);
    fd_ = *sys_.open_stream_socket(AF_INET);
    adopt();
  }
}

TEST_F(ZeroCopyTest, a_large_receive_is_sent_from_where_the_kernel_knows_it) {
  stream_->receive_singly(true);
  stream_->resume();
  machine_.settle();
  handler_.keep = true;
  machine_.arrive(fd_, "a large piece");
  ASSERT_EQ(handler_.marks, (std::vector<Mover>{Mover::large}));
  EXPECT_TRUE(stream_->send_piece(std::move(handler_.kept[0])));
  Machine::Operation send = zero_copy();
  EXPECT_NE(send.ioprio & IORING_RECVSEND_FIXED_BUF, 0U);
  EXPECT_EQ(send.buf_index, machine_.large->registered_index());
  machine_.finish(send, 13, IORING_CQE_F_MORE);
  EXPECT_EQ(machine_.large->leased(), 1U);
  machine_.finish(send, 0, IORING_CQE_F_NOTIF);
  EXPECT_EQ(machine_.large->leased(), 0U);
}

TEST_F(ZeroCopyTest, small_pieces_and_views_are_copied) {
  queue("small");
  machine_.settle();
  EXPECT_EQ(machine_.leave(fd_), "small");
  stream_->send_view("a view, however large it is");
  machine_.settle();
  EXPECT_EQ(machine_.leave(fd_), "a view, however large it is");
}

TEST_F(ZeroCopyTest, a_short_one_goes_on_where_it_stopped) {
  queue("0123456789abcdef");
  Machine::Operation send = zero_copy();
  machine_.finish(send, 10, IORING_CQE_F_MORE);
  EXPECT_EQ(machine_.leave(fd_), "abcdef");
  EXPECT_TRUE(stream_->drained());
  machine_.finish(send, 0, IORING_CQE_F_NOTIF);
}

TEST_F(ZeroCopyTest, a_socket_that_cannot_goes_on_with_copies) {
  for (auto [notified, why] : {std::pair{false, -EOPNOTSUPP}, {true, -ENOBUFS}}) {
    Recorder handler;
    Stream stream(machine_.context, handler);
    int fd = *sys_.open_stream_socket(AF_INET);
    ASSERT_TRUE(stream.adopt(fd));
    stream.send_piece(machine_.lease("a large piece"));
    machine_.settle();
    Machine::Operation send = machine_.look(IORING_OP_SEND_ZC, fd);
    machine_.finish(send, why, notified ? IORING_CQE_F_MORE : 0);
    if (notified) machine_.finish(send, 0, IORING_CQE_F_NOTIF);
    EXPECT_EQ(handler.news(), News{});
    EXPECT_EQ(machine_.leave(fd), "a large piece");
    stream.send_piece(machine_.lease("another large one"));
    machine_.settle();
    EXPECT_FALSE(machine_.waits(IORING_OP_SEND_ZC, fd)) << "it is not asked again";
    EXPECT_EQ(machine_.leave(fd), "another large one");
    stream.close();
    machine_.settle();
    machine_.finish_close(fd);
  }
}

TEST_F(ZeroCopyTest, a_failure_gives_the_lease_back) {
  queue("a large piece");
  machine_.finish(zero_copy(), -ECONNRESET);
  EXPECT_EQ(handler_.news(), (News{"failed send reset"}));
  EXPECT_EQ(machine_.buffers->leased(), 0U);
}

TEST_F(ZeroCopyTest, a_notification_that_is_owed_does_not_hold_up_the_close) {
  queue("a large piece");
  Machine::Operation send = zero_copy();
  machine_.finish(send, 13, IORING_CQE_F_MORE);
  stream_->close();
  machine_.settle();
  ASSERT_TRUE(machine_.closing(fd_));
  machine_.finish_close(fd_);
  handler_.news();
  EXPECT_EQ(machine_.buffers->leased(), 1U) << "the kernel still reads it";
  machine_.finish(send, 0, IORING_CQE_F_NOTIF);
  EXPECT_EQ(handler_.news(), (News{"closed"}));
}

TEST_F(ZeroCopyTest, a_close_cancels_the_one_in_flight_and_not_the_one_that_is_owed) {
  queue("a large piece");
  Machine::Operation owed = zero_copy();
  machine_.finish(owed, 13, IORING_CQE_F_MORE);
  handler_.news();
  queue("a large piece");
  machine_.settle();
  Machine::Operation send = machine_.kernel.submitted.back();
  ASSERT_NE(send.user_data, owed.user_data);
  stream_->close();
  machine_.settle();
  Machine::Operation cancel = machine_.cancel_of(send);
  EXPECT_FALSE(machine_.closing(fd_));
  machine_.complete(send, -ECANCELED);
  machine_.finish(cancel, 0);
  machine_.finish_close(fd_);
  EXPECT_EQ(handler_.news(), News{});
  machine_.finish(owed, 0, IORING_CQE_F_NOTIF);
  EXPECT_EQ(handler_.news(), (News{"closed"}));
}

}  // namespace
}  // namespace ringside::net::test
