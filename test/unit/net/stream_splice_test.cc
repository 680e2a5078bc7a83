// Bodies that pass through a pipe: from one stream's socket to another's.
#include <poll.h>

#include <cerrno>

#include "stream_fixture.h"

namespace ringside::net::test {
namespace {

constexpr std::uint64_t no_end = ~std::uint64_t{0};

// Passes on to another stream what comes.
class Relay final : public StreamHandler {
 public:
  void on_received(ring::Lease lease) override {
    events.push_back("received " + std::string(lease.bytes()));
    opaque -= opaque == no_end ? 0 : lease.size();
    if (to != nullptr) to->send_piece(std::move(lease));
  }
  std::uint64_t opaque_bytes() override { return opaque; }
  void on_piped(PipeBytes bytes) override {
    events.push_back("piped " + std::to_string(bytes.size()));
    opaque -= opaque == no_end ? 0 : bytes.size();
    if (drop) return;
    if (keep) {
      kept = std::move(bytes);
    } else {
      to->send_piece(std::move(bytes));
    }
  }
  void on_end_of_stream() override { events.push_back("end"); }
  void on_sent() override {}
  void on_failed(const base::Error& error, Direction) override {
    events.push_back("failed " + std::string(base::describe(error.code)));
  }
  void on_closed() override { events.push_back("closed"); }
  std::vector<std::string> news() { return std::exchange(events, {}); }

  Stream* to = nullptr;
  std::uint64_t opaque = 0;
  bool drop = false;
  bool keep = false;
  PipeBytes kept;
  std::vector<std::string> events;
};

class StreamSpliceTest : public StreamTest {
 protected:
  StreamSpliceTest() {
    machine_.context.splice_bytes_min = 1;
    adopt();
    from_ = std::make_unique<Stream>(machine_.context, relay_);
    from_fd_ = *sys_.open_stream_socket(AF_INET);
    EXPECT_TRUE(from_->adopt(from_fd_));
    relay_.to = stream_.get();
    from_->receive_singly(true);
  }
  ~StreamSpliceTest() override {
    relay_.kept = {};
    if (!from_->closing()) from_->close();
    machine_.tidy();
    EXPECT_EQ(machine_.pipes.in_use(), 0U);
  }
  void expect(std::uint64_t bytes) {
    relay_.opaque = bytes;
    from_->resume();
    machine_.settle();
  }
  bool polling(int fd) const { return machine_.waits(IORING_OP_POLL_ADD, fd); }
  // The poll of that socket says that it is ready.
  void ready(int fd, int events) { machine_.finish(IORING_OP_POLL_ADD, fd, events); }
  void arrive(std::string_view bytes) {
    sys_.readable[from_fd_] += bytes;
    ready(from_fd_, POLLIN);
  }

  Relay relay_;
  std::unique_ptr<Stream> from_;
  int from_fd_ = -1;
};

TEST_F(StreamSpliceTest, bytes_pass_through_a_pipe_and_not_through_buffers) {
  expect(10);
  EXPECT_TRUE(polling(from_fd_));
  arrive("0123456");
  EXPECT_EQ(relay_.news(), (News{"piped 7"}));
  EXPECT_EQ(sys_.written[fd_], "0123456");
  EXPECT_EQ(stream_->bytes_sent(), 7U);
  EXPECT_TRUE(stream_->drained());
  // Never more than what nobody needs to look at: the next message stays in the socket.
  arrive("789next");
  EXPECT_EQ(sys_.written[fd_], "0123456789");
  EXPECT_EQ(sys_.readable[from_fd_], "next");
  EXPECT_EQ(sys_.pipes_opened, 1U);
  EXPECT_FALSE(polling(from_fd_));
  EXPECT_TRUE(machine_.receiving(from_fd_)) << "what follows must be read";
  EXPECT_EQ(machine_.pipes.in_use(), 0U) << "a body's pipe goes back when the body is over";
}

TEST_F(StreamSpliceTest, what_was_queued_before_leaves_before) {
  stream_->send_view("head|");
  stream_->send_copy("5|");
  expect(5);
  arrive("piped");
  EXPECT_EQ(sys_.written[fd_], "");
  EXPECT_EQ(stream_->pending_bytes(), 12U);
  stream_->send_view("|tail");
  EXPECT_EQ(machine_.leave(fd_), "head|5|");
  EXPECT_EQ(sys_.written[fd_], "piped");
  EXPECT_EQ(machine_.leave(fd_), "|tail");
  EXPECT_EQ(stream_->bytes_sent(), 17U);
}

TEST_F(StreamSpliceTest, a_full_socket_is_polled_for_room_and_holds_the_other_back) {
  sys_.room[fd_] = 3;
  expect(no_end);
  arrive("abcdef");
  EXPECT_EQ(sys_.written[fd_], "abc");
  EXPECT_TRUE(polling(fd_));
  EXPECT_FALSE(stream_->idle());
  EXPECT_EQ(stream_->pending_bytes(), 3U);
  EXPECT_FALSE(polling(from_fd_)) << "the pipe is filled only when it is empty";
  EXPECT_FALSE(machine_.receiving(from_fd_));
  sys_.room[fd_] = 100;
  ready(fd_, POLLOUT);
  EXPECT_EQ(sys_.written[fd_], "abcdef");
  EXPECT_TRUE(polling(from_fd_));
  arrive("ghi");
  EXPECT_EQ(sys_.written[fd_], "abcdefghi");
}

TEST_F(StreamSpliceTest, the_end_of_the_peer_is_told_while_bytes_are_in_the_pipe) {
  sys_.room[fd_] = 0;
  relay_.keep = true;
  expect(no_end);
  arrive("last");
  relay_.keep = false;
  stream_->send_piece(std::move(relay_.kept));
  machine_.settle();
  sys_.room[fd_] = 4;
  sys_.readable[from_fd_] = "";
  ready(fd_, POLLOUT);
  EXPECT_EQ(sys_.written[fd_], "last");
  ready(from_fd_, POLLIN);
  EXPECT_EQ(relay_.news(), (News{"piped 4", "end"}));
  EXPECT_TRUE(from_->ended());
}

// io_uring.md's list: "splice EAGAIN at the tail".
TEST_F(StreamSpliceTest, a_poll_that_was_wrong_leads_to_copies_and_no_spin) {
  expect(10);
  sys_.splice_errno[from_fd_] = EAGAIN;
  arrive("tail");
  EXPECT_FALSE(polling(from_fd_));
  machine_.arrive(from_fd_, "tail");
  EXPECT_EQ(relay_.news(), (News{"received tail"}));
  EXPECT_TRUE(machine_.receiving(from_fd_)) << "it copies from here on";
}

TEST_F(StreamSpliceTest, a_socket_that_cannot_is_copied) {
  expect(10);
  sys_.splice_errno[from_fd_] = EINVAL;
  arrive("x");
  machine_.arrive(from_fd_, "x");
  EXPECT_EQ(relay_.news(), (News{"received x"}));
  EXPECT_EQ(machine_.leave(fd_), "x");
}

TEST_F(StreamSpliceTest, without_a_pipe_it_copies) {
  sys_.pipe_errno = EMFILE;
  expect(10);
  arrive("x");
  EXPECT_TRUE(relay_.news().empty());
  machine_.arrive(from_fd_, "x");
  EXPECT_EQ(relay_.news(), (News{"received x"}));
}

TEST_F(StreamSpliceTest, only_as_many_pipes_as_there_may_be) {
  MachineOptions one;
  one.pipes = 1;
  PipePool pool(sys_, one.pipes, 64);
  PipeRef first = pool.take();
  ASSERT_TRUE(first);
  EXPECT_FALSE(pool.take());
  int read_fd = first->ends.read_fd;
  first.reset();
  PipeRef second = pool.take();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->ends.read_fd, read_fd) << "an empty pipe is used again";
}

// An unprivileged user's pipes shrink when it has many (pipe(7)).
TEST_F(StreamSpliceTest, a_pipe_that_holds_next_to_nothing_is_not_used) {
  sys_.pipe_capacity = 4;
  expect(10);
  arrive("x");
  machine_.arrive(from_fd_, "x");
  EXPECT_EQ(relay_.news(), (News{"received x"}));
  EXPECT_EQ(sys_.pipes_opened, 1U);
  EXPECT_EQ(machine_.pipes.in_use(), 0U);
}

TEST_F(StreamSpliceTest, parked_it_fills_no_pipe) {
  expect(10);
  from_->park();
  arrive("waits");
  EXPECT_TRUE(relay_.news().empty());
  EXPECT_EQ(sys_.readable[from_fd_], "waits");
  from_->resume();
  machine_.settle();
  ready(from_fd_, POLLIN);
  EXPECT_EQ(sys_.written[fd_], "waits");
}

TEST_F(StreamSpliceTest, bytes_that_nobody_sends_spoil_their_pipe) {
  relay_.drop = true;
  expect(no_end);
  arrive("dropped");
  EXPECT_TRUE(polling(from_fd_)) << "it goes on with another pipe";
  relay_.drop = false;
  arrive("kept");
  EXPECT_EQ(sys_.written[fd_], "kept") << "never a byte of what was dropped";
  EXPECT_EQ(sys_.pipes_opened, 2U);
}

TEST_F(StreamSpliceTest, a_send_that_fails_lets_the_other_side_go_on) {
  expect(no_end);
  sys_.splice_errno[fd_] = EPIPE;
  arrive("lost");
  EXPECT_FALSE(handler_.news().empty());
  EXPECT_TRUE(stream_->drained());
  EXPECT_TRUE(polling(from_fd_));
}

TEST_F(StreamSpliceTest, closing_with_bytes_in_the_pipe_leaves_nothing) {
  sys_.room[fd_] = 1;
  expect(no_end);
  arrive("half sent");
  from_->close();
  machine_.tidy();
  EXPECT_EQ(relay_.news().back(), "closed");
  sys_.room[fd_] = 100;
  ready(fd_, POLLOUT);
  EXPECT_EQ(sys_.written[fd_], "half sent") << "what was received goes on its way";
  EXPECT_EQ(machine_.pipes.in_use(), 0U);
}

TEST_F(StreamSpliceTest, closing_while_it_polls_for_room) {
  sys_.room[fd_] = 1;
  expect(no_end);
  arrive("half sent");
  Machine::Operation poll = machine_.look(IORING_OP_POLL_ADD, fd_);
  stream_->close();
  machine_.settle();
  EXPECT_TRUE(machine_.cancelled(poll));
  machine_.tidy();
  EXPECT_TRUE(polling(from_fd_)) << "the pipe is spoiled, the stream is not";
}

TEST_F(StreamSpliceTest, what_is_small_or_slow_is_copied) {
  machine_.context.splice_bytes_min = 100;
  machine_.context.splice_streak_min = 64;
  expect(99);
  EXPECT_TRUE(machine_.receiving(from_fd_)) << "too few bytes are still to come";
  relay_.opaque = 1000;
  machine_.arrive(from_fd_, "x");
  EXPECT_TRUE(machine_.receiving(from_fd_)) << "it has not shown that it sends in bulk";
}

TEST_F(StreamSpliceTest, switched_off_it_is_off_for_bodies_without_a_known_end_too) {
  machine_.context.splice_bytes_min = StreamContext::splice_never;
  expect(no_end);
  EXPECT_TRUE(machine_.receiving(from_fd_));
}

}  // namespace
}  // namespace ringside::net::test
