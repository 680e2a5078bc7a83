// Pipes between sockets: calls of net::SysPort, not operations.
#include <poll.h>

#include <cerrno>

#include "parity.h"

namespace ringside::parity {
namespace {

constexpr std::uint32_t pipe_bytes = 64 * 1024;

class SplicePipe {
 public:
  explicit SplicePipe(net::SysPort& sys) : sys_(sys), ends_(*sys.open_pipe(pipe_bytes)) {}
  ~SplicePipe() {
    sys_.close(ends_.read_fd);
    sys_.close(ends_.write_fd);
  }
  SplicePipe(const SplicePipe&) = delete;
  SplicePipe& operator=(const SplicePipe&) = delete;
  int fill(int socket, std::uint32_t bytes = pipe_bytes) {
    return sys_.splice_in(socket, ends_.write_fd, bytes);
  }
  int empty(int socket, std::uint32_t bytes) {
    return sys_.splice_out(ends_.read_fd, socket, bytes);
  }
  std::uint32_t capacity() const { return ends_.capacity; }

 private:
  net::SysPort& sys_;
  net::PipeEnds ends_;
};

TEST_P(Parity, a_pipe_carries_bytes_from_one_socket_to_another) {
  Pair from = connect_pair();
  Pair to = connect_pair();
  SplicePipe pipe(sys());
  EXPECT_GE(pipe.capacity(), 4096U);
  send_all(from.client, "through the kernel");
  settle();
  EXPECT_EQ(pipe.fill(from.server, 7), 7);
  EXPECT_EQ(pipe.empty(to.client, 7), 7);
  EXPECT_EQ(pipe.fill(from.server), 11);
  EXPECT_EQ(pipe.empty(to.client, 5), 5);
  EXPECT_EQ(pipe.empty(to.client, 6), 6);
  EXPECT_EQ(receive_some(to.server, 18), "through the kernel");
  for (int fd : {from.client, from.server, to.client, to.server})
    close(fd);
}

// Never waits, though the sockets are of the waiting kind; and they still are afterwards.
TEST_P(Parity, an_empty_socket_fills_no_pipe_and_still_waits_in_operations) {
  Pair pair = connect_pair();
  SplicePipe pipe(sys());
  EXPECT_EQ(pipe.fill(pair.server), -EAGAIN);
  Recorder recorder(ring(), group_.get());
  ring().receive(recorder, kind_receive, pair.server, *group_);
  settle();
  EXPECT_EQ(recorder.pending(kind_receive), 0U);
  send_all(pair.client, "late");
  EXPECT_EQ(await(recorder, kind_receive), received("late", false));
  close(pair.client);
  close(pair.server);
}

TEST_P(Parity, a_full_socket_takes_nothing_more_and_a_poll_tells_when_it_does) {
  Pair from = connect_pair();
  Pair to = connect_pair();
  SplicePipe pipe(sys());
  std::string text = pattern(16 * 1024);
  std::size_t sent = 0;
  int moved = 0;
  std::uint32_t left = 0;
  while (moved != -EAGAIN && sent < 64 * 1024 * 1024) {
    if (left == 0) {
      send_all(from.client, text);
      settle();
      int filled = pipe.fill(from.server);
      ASSERT_GT(filled, 0);
      left = static_cast<std::uint32_t>(filled);
    }
    moved = pipe.empty(to.client, left);
    if (moved > 0) {
      sent += static_cast<std::size_t>(moved);
      left -= static_cast<std::uint32_t>(moved);
    }
  }
  ASSERT_EQ(moved, -EAGAIN);
  Recorder recorder(ring(), group_.get());
  ring().poll(recorder, kind_poll, to.client, POLLOUT);
  settle();
  EXPECT_EQ(recorder.pending(kind_poll), 0U);
  std::size_t got = 0;
  while (got < sent)
    got += receive_some(to.server, 1).size();
  EXPECT_EQ(got, sent);
  EXPECT_NE(await(recorder, kind_poll).result & POLLOUT, 0);
  EXPECT_GT(pipe.empty(to.client, left), 0);
  for (int fd : {from.client, from.server, to.client, to.server})
    close(fd);
}

TEST_P(Parity, the_end_of_a_stream_fills_no_pipe) {
  Pair pair = connect_pair();
  SplicePipe pipe(sys());
  send_all(pair.client, "end");
  shutdown(pair.client, SHUT_WR);
  settle();
  EXPECT_EQ(pipe.fill(pair.server), 3);
  EXPECT_EQ(pipe.fill(pair.server), 0);
  close(pair.client);
  close(pair.server);
}

TEST_P(ParityInet, a_reset_is_told_to_whoever_fills_or_empties) {
  Pair from = connect_pair();
  Pair to = connect_pair();
  SplicePipe pipe(sys());
  send_all(from.client, "x");
  settle();
  ASSERT_EQ(pipe.fill(from.server), 1);
  for (int fd : {from.client, to.server}) {
    ASSERT_EQ(sys().reset_on_close(fd), 0);
    close(fd);
  }
  await_hang_up(from.server);
  await_hang_up(to.client);
  EXPECT_EQ(pipe.empty(to.client, 1), -ECONNRESET);
  EXPECT_EQ(pipe.fill(from.server), -ECONNRESET);
  EXPECT_EQ(pipe.fill(from.server), 0);
  close(from.server);
  close(to.client);
}

}  // namespace
}  // namespace ringside::parity
