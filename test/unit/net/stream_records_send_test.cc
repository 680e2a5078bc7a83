// What a stream with a record layer sends, and how it says farewell.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "records_fixture.h"

namespace ringside::net::test {
namespace {

class StreamRecordsSendTest : public RecordsTest {
 protected:
  explicit StreamRecordsSendTest(const MachineOptions& options = {}) : RecordsTest(options) {}
  unsigned flags() { return machine_.look_send(fd_).op_flags; }
  std::string in_flight() { return machine_.text(machine_.look_send(fd_)); }
};

const std::string send_failed =
    "failed send " + std::string(base::describe(base::from_errno(EPIPE).code));

TEST_F(StreamRecordsSendTest, what_is_queued_together_shares_a_record) {
  establish();
  send("head ");
  ASSERT_TRUE(stream_->send_copy("and "));
  ASSERT_TRUE(stream_->send_piece(Piece(machine_.lease("body"))));
  EXPECT_EQ(stream_->pending_bytes(), 13U);
  machine_.settle();
  EXPECT_EQ(machine_.buffers->leased(), 0U) << "what was sealed is free";
  EXPECT_EQ(machine_.slices.in_use(), 0U);
  EXPECT_EQ(machine_.leave(fd_), record("head and body"));
  EXPECT_EQ(handler_.news(), (News{"sent"}));
  EXPECT_TRUE(stream_->drained());
  EXPECT_EQ(stream_->bytes_sent(), 13U) << "plaintext";
  EXPECT_EQ(stream_->bytes_zero_copied(), 0U);
  EXPECT_EQ(machine_.blocks.in_use(), 0U);
}

TEST_F(StreamRecordsSendTest, more_than_a_block_holds_leaves_in_turns) {
  establish();
  layer_.records_a_seal = 1;
  const std::string text(150, 'x');
  send(text);
  machine_.settle();
  EXPECT_EQ(stream_->pending_bytes(), 152U) << "a record of 102 and 50 that wait";
  EXPECT_EQ(machine_.leave(fd_), record(text.substr(0, 100)));
  EXPECT_EQ(stream_->bytes_sent(), 100U);
  EXPECT_FALSE(stream_->drained());
  EXPECT_EQ(machine_.leave(fd_), record(text.substr(100)));
  EXPECT_EQ(stream_->bytes_sent(), 150U);
  EXPECT_TRUE(stream_->drained());
}

TEST_F(StreamRecordsSendTest, many_pieces_leave_in_order) {
  establish();
  std::string all;
  for (int i = 0; i < 150; ++i) {
    const std::string piece(1, static_cast<char>('a' + i % 26));
    ASSERT_TRUE(stream_->send_copy(piece));
    all += piece;
  }
  EXPECT_EQ(machine_.leave_all(fd_),
            record(all.substr(0, 64)) + record(all.substr(64, 64)) + record(all.substr(128)));
}

TEST_F(StreamRecordsSendTest, a_block_may_leave_in_pieces) {
  establish();
  send("hello");
  machine_.settle();
  EXPECT_EQ(machine_.leave(fd_, 3), record("hello").substr(0, 3));
  EXPECT_EQ(stream_->pending_bytes(), 4U);
  EXPECT_EQ(stream_->bytes_sent(), 1U) << "four of the five can be in what is left";
  EXPECT_FALSE(stream_->drained());
  EXPECT_TRUE(stream_->sending());
  send("more");
  EXPECT_EQ(machine_.leave(fd_), record("hello").substr(3));
  EXPECT_EQ(stream_->bytes_sent(), 5U);
  EXPECT_EQ(machine_.leave(fd_), record("more"));
}

TEST_F(StreamRecordsSendTest, a_send_that_is_to_be_tried_again_sends_the_same) {
  establish();
  send("hello");
  machine_.settle();
  for (const int error : {-EAGAIN, -EINTR}) {
    machine_.finish(machine_.look_send(fd_), error);
    EXPECT_EQ(in_flight(), record("hello"));
  }
  EXPECT_EQ(handler_.news(), News{});
  EXPECT_EQ(machine_.leave_all(fd_), record("hello"));
}

TEST_F(StreamRecordsSendTest, a_send_that_fails_drops_all) {
  establish();
  layer_.records_a_seal = 1;
  const std::string text(150, 'x');  // only looked at
  send(text);
  machine_.settle();
  machine_.finish(machine_.look_send(fd_), -EPIPE);
  EXPECT_EQ(handler_.news(), (News{send_failed}));
  EXPECT_TRUE(stream_->drained());
  EXPECT_EQ(stream_->bytes_sent(), 0U);
  EXPECT_EQ(machine_.blocks.in_use(), 0U);
  machine_.settle();
  EXPECT_FALSE(machine_.sending(fd_));
  stream_->close();
  machine_.settle();
  EXPECT_FALSE(machine_.sending(fd_)) << "a farewell";
}

TEST_F(StreamRecordsSendTest, a_layer_that_cannot_seal_has_failed) {
  establish();
  layer_.fail_seal = true;
  send("hello");
  machine_.settle();
  EXPECT_EQ(handler_.news(), (News{insecure}));
  EXPECT_FALSE(machine_.sending(fd_));
  EXPECT_EQ(machine_.blocks.in_use(), 0U);
  EXPECT_TRUE(stream_->drained());
}

TEST_F(StreamRecordsSendTest, memory_of_what_was_not_sealed_is_kept_until_it_closed) {
  base::ChunkPool chunks;
  base::Arena arena(chunks);
  establish();
  layer_.records_a_seal = 1;
  auto* text = static_cast<char*>(arena.allocate(150, 1));
  std::memset(text, 'x', 150);
  send({text, 150});
  machine_.settle();
  stream_->keep_until_closed(arena);
  arena.release();
  EXPECT_NE(chunks.in_use(), 0U);
  stream_->close();
  machine_.tidy();
  EXPECT_EQ(chunks.in_use(), 0U);
}

TEST_F(StreamRecordsSendTest, rest_reaches_the_layer_only_when_nothing_goes_on) {
  establish();
  send("hello");
  stream_->rest();
  machine_.settle();
  stream_->rest();
  EXPECT_EQ(layer_.rests, 0U);
  machine_.leave(fd_);
  stream_->rest();
  EXPECT_EQ(layer_.rests, 1U);
}

class NoBlockTest : public StreamRecordsSendTest {
 protected:
  NoBlockTest() : StreamRecordsSendTest({.blocks = 1}) {}
};

TEST_F(NoBlockTest, without_a_block_sending_fails) {
  establish();
  RecordBlock* taken = machine_.blocks.create();
  send("hello");
  machine_.settle();
  EXPECT_EQ(handler_.news(),
            (News{"failed send " + std::string(base::describe(base::ErrorCode::no_memory))}));
  EXPECT_TRUE(stream_->drained());
  stream_->close();
  machine_.settle();
  EXPECT_FALSE(machine_.sending(fd_));
  machine_.blocks.destroy(taken);
}

TEST_F(NoBlockTest, without_a_block_it_closes_without_a_word) {
  establish();
  RecordBlock* taken = machine_.blocks.create();
  stream_->close();
  machine_.settle();
  EXPECT_FALSE(machine_.sending(fd_));
  machine_.blocks.destroy(taken);
}

// ---- finishing

TEST_F(StreamRecordsSendTest, the_end_is_announced_after_the_data_and_before_the_fin) {
  establish();
  send("last");
  stream_->finish_sending();
  machine_.settle();
  EXPECT_EQ(machine_.leave(fd_), record("last"));
  EXPECT_EQ(sys_.ends[fd_], 0);
  EXPECT_EQ(machine_.leave(fd_, 1), close_record.substr(0, 1));
  EXPECT_EQ(sys_.ends[fd_], 0);
  EXPECT_FALSE(stream_->finished());
  handler_.news();
  EXPECT_EQ(machine_.leave(fd_), close_record.substr(1));
  EXPECT_EQ(sys_.ends[fd_], 1);
  EXPECT_TRUE(stream_->finished());
  EXPECT_EQ(handler_.news(), (News{"sent", "sent"})) << "the handler is to hear of the FIN";
  stream_->close();
  machine_.settle();
  EXPECT_FALSE(machine_.sending(fd_)) << "it was said";
  EXPECT_EQ(sys_.ends[fd_], 1);
}

TEST_F(StreamRecordsSendTest, after_the_fin_the_layer_has_no_more_to_say) {
  establish();
  stream_->finish_sending();
  EXPECT_EQ(machine_.leave_all(fd_), close_record);
  machine_.arrive(fd_, bad_record);
  EXPECT_EQ(handler_.news(), (News{"sent", "sent", insecure}));
  EXPECT_FALSE(machine_.sending(fd_)) << "it could only fail";
}

// ---- saying farewell

TEST_F(StreamRecordsSendTest, closing_announces_the_end_and_does_not_wait_for_room) {
  establish();
  stream_->close();
  machine_.settle();
  EXPECT_EQ(in_flight(), close_record);
  EXPECT_EQ(flags(), unsigned{MSG_NOSIGNAL | MSG_DONTWAIT});
  EXPECT_FALSE(machine_.closing(fd_));
  end_cancelled_receive();
  EXPECT_FALSE(machine_.closing(fd_)) << "the block is in use";
  machine_.finish(machine_.look_send(fd_), -EAGAIN);
  EXPECT_TRUE(machine_.closing(fd_));
  machine_.finish_close(fd_);
  EXPECT_EQ(handler_.news(), (News{"closed"}));
}

TEST_F(StreamRecordsSendTest, a_reset_says_nothing) {
  establish();
  stream_->close(true);
  machine_.settle();
  EXPECT_FALSE(machine_.sending(fd_));
  EXPECT_TRUE(sys_.to_be_reset.contains(fd_));
}

TEST_F(StreamRecordsSendTest, a_send_in_flight_is_not_followed_by_a_farewell) {
  establish();
  send("hello");
  machine_.settle();
  const Machine::Operation send = machine_.look_send(fd_);
  stream_->close();
  machine_.settle();
  EXPECT_TRUE(machine_.cancelled(send));
  machine_.finish(send, 3);
  EXPECT_FALSE(machine_.sending(fd_)) << "in the middle of a record";
  EXPECT_EQ(machine_.blocks.in_use(), 1U);
  machine_.tidy();
  EXPECT_EQ(machine_.blocks.in_use(), 0U);
}

TEST_F(StreamRecordsSendTest, what_waits_to_be_sent_again_is_not_followed_by_a_farewell) {
  establish();
  send("hello");
  machine_.settle();
  handler_.action = [&](const std::string& event) {
    if (event.starts_with("received")) stream_->close();
  };
  machine_.complete(machine_.look_send(fd_), -EAGAIN);
  machine_.arrive(fd_, record("one"));
  EXPECT_FALSE(machine_.sending(fd_));
  machine_.tidy();
  EXPECT_EQ(machine_.blocks.in_use(), 0U);
}

TEST_F(StreamRecordsSendTest, part_of_a_block_that_left_is_not_followed_by_a_farewell) {
  establish();
  send("hello");
  machine_.settle();
  handler_.action = [&](const std::string& event) {
    if (event == "sent") stream_->close();
  };
  machine_.leave(fd_, 3);
  EXPECT_FALSE(machine_.sending(fd_));
}

TEST_F(StreamRecordsSendTest, before_the_handshake_is_over_there_is_no_farewell) {
  accept();
  stream_->close();
  machine_.settle();
  EXPECT_FALSE(machine_.sending(fd_));
}

TEST_F(StreamRecordsSendTest, closing_at_a_failure_says_why) {
  establish();
  handler_.action = [&](const std::string& event) {
    if (event == insecure) stream_->close();
  };
  machine_.arrive(fd_, bad_record);
  EXPECT_EQ(in_flight(), alert);
  machine_.tidy();
  EXPECT_EQ(handler_.news(), (News{insecure, "closed"}));
}

class ZeroCopyRecordsTest : public StreamRecordsSendTest {
 protected:
  ZeroCopyRecordsTest() {
    machine_.context.zero_copy = StreamContext::ZeroCopy::always;
    machine_.context.zero_copy_bytes_min = 1;
  }
};

TEST_F(ZeroCopyRecordsTest, records_are_not_sent_with_zero_copy) {
  establish();
  ASSERT_TRUE(stream_->send_piece(Piece(machine_.lease("body"))));
  machine_.settle();
  EXPECT_EQ(machine_.leave(fd_), record("body"));
}

}  // namespace
}  // namespace ringside::net::test
