// Cancelling, shutting down and closing.
#include <poll.h>

#include <cerrno>

#include "parity.h"

namespace ringside::parity {
namespace {

TEST_P(Parity, cancel_of_nothing_finds_nothing) {
  Recorder recorder(ring());
  ring().cancel(recorder, kind_receive, kind_cancel);
  EXPECT_EQ(await(recorder, kind_cancel), event(kind_cancel, -ENOENT));
}

TEST_P(Parity, cancel_of_what_has_completed_finds_nothing) {
  Pair pair = connect_pair();
  send_all(pair.client, "hello");
  Recorder recorder(ring(), group_.get());
  ring().receive(recorder, kind_receive, pair.server, *group_);
  EXPECT_EQ(await(recorder, kind_receive), received("hello", false));
  ring().cancel(recorder, kind_receive, kind_cancel);
  EXPECT_EQ(await(recorder, kind_cancel), event(kind_cancel, -ENOENT));
  close(pair.client);
  close(pair.server);
}

TEST_P(Parity, cancel_hits_only_the_operation_that_it_names) {
  Pair pair = connect_pair();
  Pair other = connect_pair();
  Recorder recorder(ring(), group_.get());
  Recorder bystander(ring(), group_.get());
  ring().receive_multishot(recorder, kind_receive, pair.server, *group_);
  ring().receive_multishot(bystander, kind_receive, other.server, *group_);
  ring().poll(recorder, kind_poll, pair.client, POLLIN);
  settle();
  ring().cancel(recorder, kind_receive, kind_cancel);
  EXPECT_EQ(await(recorder, kind_receive), event(kind_receive, -ECANCELED));
  EXPECT_EQ(await(recorder, kind_cancel), event(kind_cancel, 0));
  EXPECT_EQ(recorder.in_flight(), 1U);
  EXPECT_EQ(bystander.in_flight(), 1U);
  send_all(other.client, "still here");
  EXPECT_EQ(await(bystander, kind_receive), received("still here", true));
  ring().cancel(recorder, kind_poll, kind_cancel);
  EXPECT_EQ(await(recorder, kind_poll), event(kind_poll, -ECANCELED));
  EXPECT_EQ(await(recorder, kind_cancel), event(kind_cancel, 0));
  ring().cancel(bystander, kind_receive, kind_cancel);
  await_end(bystander);
  for (int fd : {pair.client, pair.server, other.client, other.server})
    close(fd);
}

TEST_P(Parity, cancel_in_the_same_submission_as_its_operation) {
  Pair pair = connect_pair();
  Recorder recorder(ring(), group_.get());
  ring().receive_multishot(recorder, kind_receive, pair.server, *group_);
  ring().cancel(recorder, kind_receive, kind_cancel);
  EXPECT_EQ(await(recorder, kind_receive), event(kind_receive, -ECANCELED));
  EXPECT_EQ(await(recorder, kind_cancel), event(kind_cancel, 0));
  close(pair.client);
  close(pair.server);
}

TEST_P(Parity, shutting_down_writing_leaves_reading) {
  Pair pair = connect_pair();
  shutdown(pair.client, SHUT_WR);
  EXPECT_TRUE(sees_end(pair.server));
  send_all(pair.server, "answer");
  EXPECT_EQ(receive_some(pair.client, 6), "answer");
  shutdown(pair.server, SHUT_WR);
  EXPECT_TRUE(sees_end(pair.client));
  close(pair.client);
  close(pair.server);
}

TEST_P(Parity, shutting_down_twice) {
  Pair pair = connect_pair();
  shutdown(pair.client, SHUT_WR);
  EXPECT_EQ(sys().shutdown(pair.client, SHUT_WR), 0);
  close(pair.client);
  close(pair.server);
}

TEST_P(ParityInet, shutting_down_what_is_not_connected_fails) {
  int fd = open_socket();
  EXPECT_EQ(sys().shutdown(fd, SHUT_RDWR), -ENOTCONN);
  close(fd);
}

TEST_P(Parity, closing_ends_the_stream) {
  Pair pair = connect_pair();
  send_all(pair.client, "bye");
  close(pair.client);
  EXPECT_EQ(receive_some(pair.server, 3), "bye");
  EXPECT_TRUE(sees_end(pair.server));
  close(pair.server);
}

TEST_P(Parity, closing_a_bad_descriptor_fails) {
  ring().close(*helper_, kind_close, 999'999);
  EXPECT_EQ(await(*helper_, kind_close), event(kind_close, -EBADF));
}

// An operation in flight holds the socket: close gives the descriptor back, but no FIN leaves until
// the operation is over.
TEST_P(Parity, closing_under_an_armed_receive_does_not_end_the_stream) {
  Pair pair = connect_pair();
  Recorder recorder(ring(), group_.get());
  ring().receive_multishot(recorder, kind_receive, pair.server, *group_);
  settle();
  close(pair.server);
  Recorder peer(ring(), group_.get());
  ring().receive(peer, kind_receive, pair.client, *group_);
  settle();
  EXPECT_EQ(peer.pending(kind_receive), 0U);
  // It still receives.
  send_all(pair.client, "are you there");
  EXPECT_EQ(await(recorder, kind_receive), received("are you there", true));
  ring().cancel(recorder, kind_receive, kind_cancel);
  EXPECT_EQ(await(recorder, kind_receive), event(kind_receive, -ECANCELED));
  EXPECT_EQ(await(peer, kind_receive), event(kind_receive, 0));
  await_end(recorder);
  close(pair.client);
}

// Shutting down first ends the receive and sends the FIN, whatever close does afterwards. It must
// have completed before close is submitted: the kernel runs it in a worker thread, where it finds a
// descriptor that an inline close has already given back (-EBADF).
TEST_P(Parity, shutting_down_before_closing_ends_both) {
  Pair pair = connect_pair();
  Recorder recorder(ring(), group_.get());
  ring().receive_multishot(recorder, kind_receive, pair.server, *group_);
  settle();
  shutdown(pair.server, SHUT_RDWR);
  close(pair.server);
  EXPECT_EQ(await(recorder, kind_receive), event(kind_receive, 0));
  EXPECT_TRUE(sees_end(pair.client));
  close(pair.client);
}

TEST_P(Parity, poll_tells_of_data) {
  Pair pair = connect_pair();
  Recorder recorder(ring());
  ring().poll(recorder, kind_poll, pair.server, POLLIN);
  settle();
  EXPECT_EQ(recorder.pending(kind_poll), 0U);
  send_all(pair.client, "x");
  Event got = await(recorder, kind_poll);
  EXPECT_EQ(got.result & (POLLIN | POLLOUT | POLLHUP | POLLERR), POLLIN) << got;
  EXPECT_FALSE(got.more);
  EXPECT_EQ(recorder.in_flight(), 0U);
  EXPECT_EQ(receive_some(pair.server, 1), "x");
  close(pair.client);
  close(pair.server);
}

TEST_P(Parity, poll_tells_of_room) {
  Pair pair = connect_pair();
  Recorder recorder(ring());
  ring().poll(recorder, kind_poll, pair.server, POLLOUT);
  Event got = await(recorder, kind_poll);
  EXPECT_EQ(got.result & (POLLIN | POLLOUT | POLLHUP | POLLERR), POLLOUT) << got;
  close(pair.client);
  close(pair.server);
}

TEST_P(Parity, poll_tells_of_the_end) {
  Pair pair = connect_pair();
  Recorder recorder(ring());
  ring().poll(recorder, kind_poll, pair.server, POLLIN | POLLRDHUP);
  settle();
  shutdown(pair.client, SHUT_WR);
  Event got = await(recorder, kind_poll);
  EXPECT_EQ(got.result & (POLLIN | POLLRDHUP | POLLERR), POLLIN | POLLRDHUP) << got;
  close(pair.client);
  close(pair.server);
}

}  // namespace
}  // namespace ringside::parity
