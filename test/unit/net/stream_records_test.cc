// What a stream with a record layer receives: the handshake, plaintext, and how it ends.
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "records_fixture.h"

namespace ringside::net::test {
namespace {

class StreamRecordsTest : public RecordsTest {
 protected:
  explicit StreamRecordsTest(const MachineOptions& options = {}) : RecordsTest(options) {}
};

// ---- the handshake

TEST_F(StreamRecordsTest, the_handshake_of_a_server_may_come_in_pieces) {
  accept();
  EXPECT_EQ(layer_.calls, (News{"attach " + std::to_string(fd_)}));
  machine_.arrive(fd_, "h");
  EXPECT_FALSE(machine_.sending(fd_));
  machine_.arrive(fd_, "i");
  EXPECT_EQ(machine_.leave(fd_, 1), "y");
  EXPECT_EQ(machine_.leave(fd_), "o");
  machine_.arrive(fd_, "o");
  EXPECT_EQ(handler_.news(), (News{"sent", "sent"}));
  machine_.arrive(fd_, "k");
  EXPECT_EQ(handler_.news(), (News{"secured"}));
  EXPECT_EQ(machine_.buffers->leased(), 0U);
  EXPECT_EQ(machine_.blocks.in_use(), 0U);
}

TEST_F(StreamRecordsTest, what_follows_the_handshake_at_once_is_opened) {
  accept();
  machine_.arrive(fd_, "hi");
  machine_.leave(fd_);
  machine_.arrive(fd_, "ok" + record("get"));
  EXPECT_EQ(handler_.news(), (News{"sent", "secured", "received get"}));
  EXPECT_EQ(handler_.marks, std::vector<Mover>{Mover::copy});
}

TEST_F(StreamRecordsTest, what_was_queued_before_the_end_of_the_handshake_leaves_after_it) {
  accept();
  send("early");
  machine_.settle();
  EXPECT_FALSE(machine_.sending(fd_));
  machine_.arrive(fd_, "hi");
  EXPECT_EQ(machine_.leave_all(fd_), "yo");
  EXPECT_FALSE(stream_->drained());
  machine_.arrive(fd_, "ok");
  EXPECT_EQ(machine_.leave_all(fd_), record("early"));
  EXPECT_TRUE(stream_->drained());
}

TEST_F(StreamRecordsTest, a_handler_may_close_when_the_handshake_is_over) {
  accept();
  machine_.arrive(fd_, "hi");
  machine_.leave(fd_);
  handler_.action = [&](const std::string& event) {
    if (event == "secured") stream_->close();
  };
  machine_.arrive(fd_, "ok" + record("get"));
  machine_.tidy();
  EXPECT_EQ(handler_.news(), (News{"sent", "secured", "closed"}));
}

TEST_F(StreamRecordsTest, a_handshake_that_fails_is_told_once_and_the_reason_leaves) {
  accept();
  machine_.arrive(fd_, "GET");
  EXPECT_EQ(handler_.news(), (News{insecure}));
  EXPECT_EQ(machine_.leave_all(fd_), alert);
  machine_.arrive(fd_, "more of it");
  EXPECT_EQ(machine_.buffers->leased(), 0U) << "nobody reads it";
  EXPECT_EQ(handler_.news(), (News{"sent"}));
  machine_.end_receive(fd_, 0);
  EXPECT_EQ(handler_.news(), (News{"end"}));
  EXPECT_EQ(layer_.ends, 0U);
  EXPECT_FALSE(machine_.receiving(fd_));
}

TEST_F(StreamRecordsTest, after_a_failure_an_error_is_no_more_than_the_end) {
  accept();
  machine_.arrive(fd_, "GET");
  machine_.leave_all(fd_);
  handler_.news();
  machine_.end_receive(fd_, -ECONNRESET);
  EXPECT_EQ(handler_.news(), (News{"end"})) << "it has failed already";
}

TEST_F(StreamRecordsTest, a_failed_handshake_may_be_finished_with_its_reason) {
  accept();
  send("never sent");
  handler_.action = [&](const std::string& event) {
    if (event.starts_with("failed")) stream_->finish_sending();
  };
  machine_.arrive(fd_, "GET");
  EXPECT_EQ(machine_.leave_all(fd_), alert);
  EXPECT_TRUE(stream_->drained()) << "the rest will never leave";
  EXPECT_EQ(sys_.ends[fd_], 1);
}

TEST_F(StreamRecordsTest, the_end_before_the_handshake_is_over_is_a_failure) {
  accept();
  machine_.arrive(fd_, "h");
  machine_.end_receive(fd_, 0);
  EXPECT_EQ(handler_.news().size(), 1U);
  EXPECT_EQ(layer_.ends, 1U);
  EXPECT_TRUE(stream_->ended());
}

// ---- as a client

class ClientRecordsTest : public RecordsTest {
 protected:
  ClientRecordsTest() : RecordsTest({}, Side::client) {}
  int connect() {
    EXPECT_TRUE(stream_->connect(*Address::from_ip("10.0.0.1", 443)).has_value());
    machine_.settle();
    sys_.close(fd_);  // the fixture's, which is not needed
    return fd_ = stream_->descriptor();
  }
};

TEST_F(ClientRecordsTest, is_connected_after_the_handshake) {
  connect();
  EXPECT_EQ(layer_.calls, News{});
  machine_.finish(IORING_OP_CONNECT, fd_, 0);
  EXPECT_EQ(layer_.calls, (News{"attach " + std::to_string(fd_)}));
  EXPECT_EQ(handler_.news(), News{});
  EXPECT_EQ(machine_.leave(fd_), "hi");
  machine_.arrive(fd_, "y");
  EXPECT_EQ(handler_.news(), (News{"sent"}));
  handler_.action = [&](const std::string& event) {
    if (event == "connected") send("get");
  };
  machine_.arrive(fd_, "o");
  EXPECT_EQ(handler_.news(), (News{"connected"}));
  EXPECT_EQ(machine_.leave(fd_), "ok" + record("get")) << "in one operation";
  machine_.arrive(fd_, record("answer"));
  EXPECT_EQ(handler_.news(), (News{"sent", "received answer"}));
}

TEST_F(ClientRecordsTest, a_refused_connection_needs_no_handshake) {
  connect();
  machine_.finish(IORING_OP_CONNECT, fd_, -ECONNREFUSED);
  ASSERT_EQ(handler_.news().size(), 1U);
  EXPECT_FALSE(machine_.sending(fd_));
  stream_->close();
  machine_.settle();
  EXPECT_FALSE(machine_.sending(fd_)) << "there is nobody to say farewell to";
}

TEST_F(ClientRecordsTest, closing_while_it_connects_says_nothing) {
  connect();
  stream_->close();
  machine_.settle();
  EXPECT_FALSE(machine_.sending(fd_));
  machine_.tidy();
  EXPECT_EQ(handler_.news(), (News{"closed"}));
}

TEST_F(ClientRecordsTest, a_failed_handshake_is_no_connection) {
  connect();
  machine_.finish(IORING_OP_CONNECT, fd_, 0);
  machine_.leave(fd_);
  machine_.arrive(fd_, "no");
  EXPECT_EQ(handler_.news().back(), insecure);
  stream_->close();
  machine_.settle();
  ASSERT_TRUE(machine_.sending(fd_)) << "the server is told why";
  EXPECT_EQ(machine_.text(machine_.look_send(fd_)), alert);
}

// ---- plaintext

TEST_F(StreamRecordsTest, several_records_in_one_receive_share_a_buffer) {
  establish();
  machine_.arrive(fd_, record("one") + record("two") + record("three").substr(0, 4));
  EXPECT_EQ(handler_.news(), (News{"received onetwo"}));
  machine_.arrive(fd_, record("three").substr(4));
  EXPECT_EQ(handler_.news(), (News{"received three"}));
  EXPECT_EQ(machine_.opened->leased(), 0U);
}

TEST_F(StreamRecordsTest, a_record_may_come_in_pieces_of_a_byte) {
  establish();
  for (const char byte : record("one"))
    machine_.arrive(fd_, std::string(1, byte));
  EXPECT_EQ(handler_.news(), (News{"received one"}));
}

TEST_F(StreamRecordsTest, more_plaintext_than_a_buffer_holds_goes_into_several) {
  establish();
  const std::string text(70, 'x');  // buffers are of 64 bytes
  const std::string wire = record(text);
  machine_.put(fd_, wire.substr(0, 60));
  machine_.arrive(fd_, wire.substr(60) + record("two"));
  EXPECT_EQ(handler_.news(), (News{"received " + text.substr(0, 64), "received xxxxxxtwo"}));
}

TEST_F(StreamRecordsTest, records_without_plaintext_are_not_told) {
  establish();
  machine_.arrive(fd_, std::string("i\0", 2));
  EXPECT_EQ(handler_.news(), News{});
  EXPECT_EQ(machine_.opened->leased(), 0U);
}

TEST_F(StreamRecordsTest, what_the_layer_says_while_it_opens_leaves) {
  establish();
  layer_.say("key");
  machine_.arrive(fd_, std::string("i\0", 2));
  EXPECT_EQ(machine_.leave_all(fd_), "key");
}

TEST_F(StreamRecordsTest, nothing_is_told_after_the_handler_closed) {
  establish();
  handler_.action = [&](const std::string& event) {
    if (event.starts_with("received")) stream_->close();
  };
  const std::string text(70, 'x');
  machine_.put(fd_, record(text).substr(0, 64));
  machine_.arrive(fd_, record(text).substr(64) + record("two"));
  machine_.tidy();
  EXPECT_EQ(handler_.news(), (News{"received " + text.substr(0, 64), "closed"}));
}

TEST_F(StreamRecordsTest, a_record_that_is_not_good_ends_it) {
  establish();
  machine_.arrive(fd_, record("one") + bad_record + record("two"));
  EXPECT_EQ(handler_.news(), (News{"received one", insecure}));
  EXPECT_EQ(machine_.leave_all(fd_), alert);
  EXPECT_EQ(machine_.buffers->leased(), 0U);
}

class SingleRecordsTest : public StreamRecordsTest {
 protected:
  SingleRecordsTest() : StreamRecordsTest({.bundles = true}) { stream_->receive_singly(true); }
};

TEST_F(SingleRecordsTest, a_bundle_of_buffers_is_opened_in_order) {
  establish();
  EXPECT_FALSE(multishot());
  std::string wire;
  for (const char* text : {"one", "two", "three", "four"})
    wire += record(text + std::string(20, '.'));
  machine_.arrive(fd_, wire);
  std::string got;
  for (const std::string& event : handler_.news())
    got += event.substr(std::string("received ").size());
  const std::string dots(20, '.');
  EXPECT_EQ(got, "one" + dots + "two" + dots + "three" + dots + "four" + dots);
  EXPECT_TRUE(machine_.receiving(fd_));
}

// ---- no buffer for plaintext

class ScarceRecordsTest : public StreamRecordsTest {
 protected:
  explicit ScarceRecordsTest(MachineOptions options = {})
      : StreamRecordsTest((options.opened_buffers = 2, options)) {}
  // All buffers for plaintext are under lease, and "three" and "four" wait for one.
  void fill() {
    establish();
    handler_.keep = true;
    for (const char* text : {"one", "two", "three"})
      machine_.put(fd_, record(text));
    machine_.arrive(fd_, record("four"));
    EXPECT_EQ(handler_.news(), (News{"received one", "received two"}));
  }
  void give_back() {
    handler_.keep = false;
    handler_.kept.clear();
    machine_.settle();
  }
};

TEST_F(ScarceRecordsTest, without_room_it_receives_no_more_and_goes_on_in_order) {
  fill();
  EXPECT_EQ(machine_.buffers->leased(), 2U);
  end_cancelled_receive();
  EXPECT_FALSE(machine_.receiving(fd_));
  stream_->resume();
  machine_.settle();
  EXPECT_FALSE(machine_.receiving(fd_));
  give_back();
  EXPECT_EQ(handler_.news(), (News{"received three", "received four"}));
  EXPECT_TRUE(multishot());
  machine_.arrive(fd_, record("five"));
  EXPECT_EQ(handler_.news(), (News{"received five"}));
}

TEST_F(ScarceRecordsTest, it_waits_again_when_one_buffer_is_not_enough) {
  fill();
  end_cancelled_receive();
  handler_.kept.erase(handler_.kept.begin());
  machine_.settle();
  EXPECT_EQ(handler_.news(), (News{"received three"}));
  EXPECT_FALSE(machine_.receiving(fd_));
  give_back();
  EXPECT_EQ(handler_.news(), (News{"received four"}));
  EXPECT_TRUE(machine_.receiving(fd_));
}

TEST_F(ScarceRecordsTest, room_may_come_before_the_receive_was_cancelled) {
  fill();
  give_back();
  EXPECT_EQ(handler_.news(), (News{"received three", "received four"}));
  end_cancelled_receive();
  EXPECT_TRUE(machine_.receiving(fd_));
}

TEST_F(ScarceRecordsTest, plaintext_that_the_layer_holds_waits_too) {
  establish();
  handler_.keep = true;
  const std::string text(99, 'x');
  machine_.put(fd_, record("one"));
  machine_.put(fd_, record(text).substr(0, 64));
  machine_.arrive(fd_, record(text).substr(64));
  EXPECT_EQ(handler_.news(), (News{"received one", "received " + text.substr(0, 64)}));
  EXPECT_EQ(machine_.buffers->leased(), 0U) << "the layer has all of it";
  end_cancelled_receive();
  EXPECT_FALSE(machine_.receiving(fd_));
  give_back();
  EXPECT_EQ(handler_.news(), (News{"received " + text.substr(64)}));
}

TEST_F(ScarceRecordsTest, the_end_waits_for_what_came_before_it) {
  fill();
  machine_.put(fd_, close_record);
  machine_.end_receive(fd_, 0);
  EXPECT_EQ(handler_.news(), News{});
  EXPECT_FALSE(stream_->ended());
  give_back();
  EXPECT_EQ(handler_.news(), (News{"received three", "received four", "end"}));
}

TEST_F(ScarceRecordsTest, an_end_that_was_not_announced_waits_too) {
  fill();
  machine_.end_receive(fd_, 0);
  give_back();
  EXPECT_EQ(handler_.news(), (News{"received three", "received four", insecure}));
  EXPECT_FALSE(machine_.receiving(fd_));
}

TEST_F(ScarceRecordsTest, an_error_waits_for_what_came_before_it) {
  fill();
  machine_.end_receive(fd_, -ECONNRESET);
  EXPECT_EQ(handler_.news(), News{});
  stream_->resume();
  machine_.settle();
  EXPECT_FALSE(machine_.receiving(fd_));
  give_back();
  EXPECT_EQ(handler_.news(),
            (News{"received three", "received four", failure(base::from_errno(ECONNRESET).code)}));
  EXPECT_TRUE(stream_->ended());
  EXPECT_FALSE(machine_.receiving(fd_));
}

TEST_F(ScarceRecordsTest, it_may_be_closed_while_it_waits) {
  fill();
  stream_->close();
  EXPECT_EQ(machine_.buffers->leased(), 0U);
  machine_.tidy();
  EXPECT_EQ(handler_.news(), (News{"closed"}));
  give_back();
  EXPECT_EQ(handler_.news(), News{});
}

TEST_F(ScarceRecordsTest, what_was_received_before_it_was_parked_still_comes) {
  fill();
  stream_->park();
  end_cancelled_receive();
  give_back();
  EXPECT_EQ(handler_.news(), (News{"received three", "received four"}));
  EXPECT_FALSE(machine_.receiving(fd_));
  stream_->resume();
  machine_.settle();
  EXPECT_TRUE(machine_.receiving(fd_));
}

TEST_F(ScarceRecordsTest, a_handler_that_closes_ends_the_waiting) {
  fill();
  handler_.action = [&](const std::string& event) {
    if (event == "received three") stream_->close();
  };
  give_back();
  machine_.tidy();
  EXPECT_EQ(handler_.news(), (News{"received three", "closed"}));
}

// Both at once: nothing to receive into, and no room for plaintext.
TEST_F(ScarceRecordsTest, it_waits_for_one_kind_of_buffer_at_a_time) {
  fill();
  machine_.end_receive(fd_, -ENOBUFS);
  EXPECT_FALSE(machine_.receiving(fd_));
  give_back();
  EXPECT_EQ(handler_.news(), (News{"received three", "received four"}));
  EXPECT_TRUE(machine_.receiving(fd_));
}

TEST_F(ScarceRecordsTest, with_nothing_to_receive_into_it_waits_as_every_stream_does) {
  establish();
  std::vector<ring::Lease> all;
  while (machine_.buffers->published() != 0)
    all.push_back(machine_.lease("x"));
  machine_.end_receive(fd_, -ENOBUFS);
  EXPECT_FALSE(machine_.receiving(fd_));
  all.clear();
  machine_.settle();
  machine_.arrive(fd_, record("one"));
  EXPECT_EQ(handler_.news(), (News{"received one"}));
}

class ScarceSingleRecordsTest : public ScarceRecordsTest {
 protected:
  ScarceSingleRecordsTest() : ScarceRecordsTest({.bundles = true}) {
    stream_->receive_singly(true);
  }
};

TEST_F(ScarceSingleRecordsTest, the_rest_of_a_bundle_waits_in_order) {
  establish();
  handler_.keep = true;
  std::string wire;
  for (const char c : {'a', 'b', 'c', 'd'})
    wire += record(std::string(62, c));
  machine_.arrive(fd_, wire);
  const std::string first = "received " + std::string(62, 'a');
  const std::string second = "received " + std::string(62, 'b');
  EXPECT_EQ(handler_.news(), (News{first, second}));
  EXPECT_FALSE(machine_.receiving(fd_));
  EXPECT_EQ(machine_.buffers->leased(), 2U);
  give_back();
  EXPECT_EQ(handler_.news(),
            (News{"received " + std::string(62, 'c'), "received " + std::string(62, 'd')}));
  EXPECT_TRUE(machine_.receiving(fd_));
}

class FewSlicesRecordsTest : public ScarceRecordsTest {
 protected:
  FewSlicesRecordsTest() : ScarceRecordsTest({.slices = 2}) {}
};

TEST_F(FewSlicesRecordsTest, without_memory_for_what_waits_it_fails_once) {
  fill();
  machine_.put(fd_, record("five"));
  machine_.put(fd_, record("six"));
  machine_.settle();
  EXPECT_EQ(handler_.news(), (News{failure(base::ErrorCode::no_memory)}));
  EXPECT_EQ(machine_.buffers->leased(), 0U);
  end_cancelled_receive();
  EXPECT_FALSE(machine_.receiving(fd_));
  give_back();
  EXPECT_EQ(handler_.news(), News{}) << "there is a hole in it";
}

// ---- the end

TEST_F(StreamRecordsTest, an_announced_end_is_told_once) {
  establish();
  machine_.arrive(fd_, record("last") + close_record);
  EXPECT_EQ(handler_.news(), (News{"received last", "end"}));
  EXPECT_TRUE(stream_->ended());
  machine_.end_receive(fd_, 0);
  EXPECT_EQ(handler_.news(), News{});
  EXPECT_FALSE(machine_.receiving(fd_));
}

TEST_F(StreamRecordsTest, what_follows_an_announced_end_is_dropped) {
  establish();
  machine_.arrive(fd_, close_record);
  for (int i = 0; i < 3; ++i)
    machine_.arrive(fd_, record("one") + bad_record);
  EXPECT_EQ(handler_.news(), (News{"end"}));
  EXPECT_EQ(machine_.buffers->leased(), 0U) << "a peer must not fill our buffers";
}

TEST_F(StreamRecordsTest, an_end_that_was_not_announced_is_a_failure) {
  establish();
  machine_.arrive(fd_, record("one"));
  machine_.end_receive(fd_, 0);
  EXPECT_EQ(handler_.news(), (News{"received one", insecure}));
  EXPECT_EQ(layer_.ends, 1U);
  EXPECT_TRUE(stream_->ended());
}

TEST_F(StreamRecordsTest, after_the_end_it_still_sends) {
  establish();
  machine_.arrive(fd_, close_record);
  send("answer");
  EXPECT_EQ(machine_.leave_all(fd_), record("answer"));
}

// ---- ways that bytes do not take

class BulkRecordsTest : public RecordsTest {
 protected:
  BulkRecordsTest() : RecordsTest({.large_buffers = 4}) {
    machine_.context.splice_bytes_min = 1;
    stream_->receive_singly(true);
  }
};

TEST_F(BulkRecordsTest, records_are_not_spliced_and_not_received_into_large_buffers) {
  establish();
  handler_.opaque = 1'000'000;
  for (int i = 0; i < 4; ++i)
    machine_.arrive(fd_, record(std::string(62, 'x')));
  EXPECT_TRUE(machine_.receiving(fd_));
  EXPECT_FALSE(machine_.waits(IORING_OP_POLL_ADD, fd_));
  for (const Mover mover : handler_.marks)
    EXPECT_EQ(mover, Mover::copy);
  EXPECT_EQ(sys_.pipes_opened, 0U);
  EXPECT_FALSE(stream_->takes_pipes());
}

}  // namespace
}  // namespace ringside::net::test
