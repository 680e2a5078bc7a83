// What comes before the end of the handshake, and what may not happen until then.
#include <gtest/gtest.h>

#include <string>

#include "records_fixture.h"

namespace ringside::net::test {
namespace {

class StreamEarlyTest : public RecordsTest {
 protected:
  StreamEarlyTest() { layer_.early_data = true; }

  // A connection whose first request came with its first word.
  void begin() {
    accept();
    machine_.arrive(fd_, "hi" + record("get"));
    ASSERT_EQ(handler_.news(), (News{"secured", "received get"}));
    ASSERT_EQ(machine_.leave(fd_), "yo");
    handler_.news();
    ASSERT_TRUE(stream_->early());
  }
};

TEST_F(StreamEarlyTest, data_passes_both_ways_and_is_confirmed_later) {
  begin();
  send("answer");
  EXPECT_EQ(machine_.leave_all(fd_), record("answer"));
  machine_.arrive(fd_, record("more"));
  EXPECT_EQ(handler_.news(), (News{"sent", "received more"}));
  EXPECT_TRUE(stream_->early());
  machine_.arrive(fd_, "ok");
  EXPECT_FALSE(stream_->early());
  machine_.arrive(fd_, record("late"));
  EXPECT_EQ(handler_.news(), (News{"confirmed", "received late"}));
}

TEST_F(StreamEarlyTest, the_end_of_the_handshake_stands_between) {
  accept();
  bool early[3] = {};
  int at = 0;
  handler_.action = [&](const std::string& event) {
    if (event.starts_with("received") || event == "confirmed") early[at++] = stream_->early();
  };
  machine_.arrive(fd_, "hi" + record("get") + "ok" + record("late"));
  EXPECT_EQ(handler_.news(), (News{"secured", "received get", "confirmed", "received late"}));
  EXPECT_TRUE(early[0]);
  EXPECT_FALSE(early[1]);
  EXPECT_FALSE(early[2]);
}

TEST_F(StreamEarlyTest, without_such_data_it_is_as_ever) {
  establish();
  EXPECT_FALSE(stream_->early());
  machine_.arrive(fd_, record("get"));
  EXPECT_EQ(handler_.news(), (News{"received get"}));
}

TEST_F(StreamEarlyTest, the_end_is_announced_when_it_is_confirmed) {
  begin();
  send("last");
  stream_->finish_sending();
  EXPECT_EQ(machine_.leave_all(fd_), record("last"));
  EXPECT_EQ(sys_.ends[fd_], 0);
  EXPECT_FALSE(stream_->finished());
  machine_.arrive(fd_, "ok");
  EXPECT_EQ(machine_.leave_all(fd_), close_record);
  EXPECT_TRUE(stream_->finished());
  EXPECT_EQ(sys_.ends[fd_], 1);
}

TEST_F(StreamEarlyTest, what_is_queued_when_it_is_confirmed_leaves) {
  begin();
  handler_.action = [&](const std::string& event) {
    if (event != "confirmed") return;
    EXPECT_TRUE(stream_->send_view("waited"));
  };
  machine_.arrive(fd_, "ok");
  EXPECT_EQ(machine_.leave_all(fd_), record("waited"));
}

TEST_F(StreamEarlyTest, a_handler_may_close_when_it_is_confirmed) {
  begin();
  handler_.action = [&](const std::string& event) {
    if (event == "confirmed") stream_->close();
  };
  machine_.arrive(fd_, "ok" + record("nobody reads this"));
  EXPECT_EQ(handler_.news(), (News{"confirmed"}));
}

TEST_F(StreamEarlyTest, a_handshake_that_fails_after_all_is_told_of) {
  begin();
  machine_.arrive(fd_, "no");
  EXPECT_EQ(handler_.news(), (News{insecure}));
}

class KernelEarlyTest : public StreamEarlyTest {
 protected:
  KernelEarlyTest() { layer_.kernel = true; }
  News calls() { return std::exchange(layer_.calls, {}); }
};

TEST_F(KernelEarlyTest, the_kernel_gets_its_keys_when_it_is_confirmed) {
  begin();
  calls();
  send("answer");
  EXPECT_EQ(machine_.leave_all(fd_), record("answer"));
  machine_.arrive(fd_, record("more"));
  EXPECT_EQ(calls(), News{});
  EXPECT_TRUE(machine_.receiving(fd_));
  machine_.arrive(fd_, "ok");
  EXPECT_EQ(calls(), (News{"tx", "rx"}));
  send("by the kernel");
  EXPECT_EQ(machine_.leave_all(fd_), "by the kernel");
}

TEST_F(KernelEarlyTest, what_was_sealed_by_then_leaves_first) {
  begin();
  calls();
  send("answer");
  machine_.settle();
  EXPECT_EQ(machine_.leave(fd_, 3), record("answer").substr(0, 3));
  machine_.arrive(fd_, "ok");
  EXPECT_EQ(calls(), News{});
  EXPECT_EQ(machine_.leave(fd_), record("answer").substr(3));
  EXPECT_EQ(calls(), (News{"tx", "rx"}));
}

}  // namespace
}  // namespace ringside::net::test
