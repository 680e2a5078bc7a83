#include <cerrno>

#include "parity.h"

namespace ringside::parity {
namespace {

TEST_P(Parity, multishot_receive_gives_data_as_it_comes) {
  Pair pair = connect_pair();
  Recorder recorder(ring(), group_.get());
  ring().receive_multishot(recorder, kind_receive, pair.server, *group_);
  for (std::string_view text : {"one", "two", "three"}) {
    send_all(pair.client, text);
    EXPECT_EQ(await(recorder, kind_receive), received(text, true));
    EXPECT_EQ(recorder.in_flight(), 1U);
  }
  ring().cancel(recorder, kind_receive, kind_cancel);
  EXPECT_EQ(await(recorder, kind_receive), event(kind_receive, -ECANCELED));
  EXPECT_EQ(await(recorder, kind_cancel), event(kind_cancel, 0));
  close(pair.client);
  close(pair.server);
}

TEST_P(Parity, multishot_receive_ends_with_the_stream) {
  Pair pair = connect_pair();
  send_all(pair.client, "last words");
  shutdown(pair.client, SHUT_WR);
  Recorder recorder(ring(), group_.get());
  ring().receive_multishot(recorder, kind_receive, pair.server, *group_);
  EXPECT_EQ(await(recorder, kind_receive), received("last words", true));
  EXPECT_EQ(await(recorder, kind_receive), event(kind_receive, 0));
  EXPECT_EQ(recorder.in_flight(), 0U);
  // And again, for whoever asks again.
  ring().receive(recorder, kind_receive, pair.server, *group_);
  EXPECT_EQ(await(recorder, kind_receive), event(kind_receive, 0));
  close(pair.client);
  close(pair.server);
}

TEST_P(Parity, multishot_receive_fills_buffers_in_order) {
  Pair pair = connect_pair();
  Recorder recorder(ring(), group_.get());
  ring().receive_multishot(recorder, kind_receive, pair.server, *group_);
  std::string text = pattern(3 * buffer_bytes + 100);
  send_all(pair.client, text);
  std::string got;
  while (got.size() < text.size()) {
    Event event = await(recorder, kind_receive);
    ASSERT_GT(event.result, 0) << event;
    EXPECT_LE(event.data.size(), std::size_t{buffer_bytes});
    EXPECT_TRUE(event.more);
    EXPECT_TRUE(event.buffer);
    got += event.data;
  }
  EXPECT_TRUE(got == text);
  shutdown(pair.client, SHUT_WR);
  EXPECT_EQ(await(recorder, kind_receive), event(kind_receive, 0));
  close(pair.client);
  close(pair.server);
}

TEST_P(Parity, multishot_receive_ends_without_buffers_and_loses_nothing) {
  Pair pair = connect_pair();
  Recorder recorder(ring(), group_.get());
  recorder.hold_leases = true;
  std::string text = pattern((buffer_count + 2) * std::size_t{buffer_bytes});
  ring().receive_multishot(recorder, kind_receive, pair.server, *group_);
  // One buffer a message, so that each of them is used up.
  std::string got;
  for (std::uint32_t i = 0; i < buffer_count; ++i) {
    std::string_view piece = std::string_view(text).substr(got.size(), 10);
    send_all(pair.client, piece);
    EXPECT_EQ(await(recorder, kind_receive), received(piece, true));
    got += piece;
  }
  EXPECT_EQ(group_->leased(), buffer_count);
  EXPECT_EQ(group_->published(), 0U);
  send_all(pair.client, "more");
  EXPECT_EQ(await(recorder, kind_receive), event(kind_receive, -ENOBUFS));
  EXPECT_EQ(recorder.in_flight(), 0U);
  // A single receive has none either.
  ring().receive(recorder, kind_receive, pair.server, *group_);
  EXPECT_EQ(await(recorder, kind_receive), event(kind_receive, -ENOBUFS));
  // What could not be received stays in the socket.
  recorder.leases.clear();
  ring().receive_multishot(recorder, kind_receive, pair.server, *group_);
  EXPECT_EQ(await(recorder, kind_receive), received("more", true));
  recorder.leases.clear();
  shutdown(pair.client, SHUT_WR);
  EXPECT_EQ(await(recorder, kind_receive), event(kind_receive, 0));
  close(pair.client);
  close(pair.server);
}

// Submitting a receive needs a free buffer, whether or not there is data yet.
TEST_P(Parity, receive_cannot_be_armed_without_buffers) {
  Pair pair = connect_pair();
  Recorder recorder(ring(), group_.get());
  recorder.hold_leases = true;
  for (std::uint32_t i = 0; i < buffer_count; ++i) {
    send_all(pair.client, "x");
    ring().receive(recorder, kind_receive, pair.server, *group_);
    EXPECT_EQ(await(recorder, kind_receive), received("x", false));
  }
  ring().receive_multishot(recorder, kind_receive, pair.server, *group_);
  EXPECT_EQ(await(recorder, kind_receive), event(kind_receive, -ENOBUFS));
  recorder.leases.clear();
  close(pair.client);
  close(pair.server);
}

// One that is armed holds none, and waits through a time without any.
TEST_P(Parity, armed_receive_survives_an_empty_group) {
  Pair pair = connect_pair();
  Pair other = connect_pair();
  Recorder recorder(ring(), group_.get());
  ring().receive_multishot(recorder, kind_receive, pair.server, *group_);
  settle();
  Recorder hoarder(ring(), group_.get());
  hoarder.hold_leases = true;
  for (std::uint32_t i = 0; i < buffer_count; ++i) {
    send_all(other.client, "x");
    ring().receive(hoarder, kind_receive, other.server, *group_);
    EXPECT_EQ(await(hoarder, kind_receive), received("x", false));
  }
  EXPECT_EQ(group_->published(), 0U);
  settle();
  EXPECT_EQ(recorder.pending(kind_receive), 0U);
  hoarder.leases.clear();
  send_all(pair.client, "y");
  EXPECT_EQ(await(recorder, kind_receive), received("y", true));
  close(pair.client);
  EXPECT_EQ(await(recorder, kind_receive), event(kind_receive, 0));
  for (int fd : {pair.server, other.client, other.server})
    close(fd);
}

// Up to the end of a record and no further.
TEST_P(Parity, receive_may_be_limited) {
  Pair pair = connect_pair();
  send_all(pair.client, "hello");
  Recorder recorder(ring(), group_.get());
  ring().receive_exactly(recorder, kind_receive, pair.server, *group_, 2);
  EXPECT_EQ(await(recorder, kind_receive), received("he", false));
  ring().receive_exactly(recorder, kind_receive, pair.server, *group_, 2 * buffer_bytes);
  EXPECT_EQ(await(recorder, kind_receive), received("llo", false));
  ring().receive_exactly(recorder, kind_receive, pair.server, *group_, 1);
  settle();
  EXPECT_EQ(recorder.pending(kind_receive), 0U);
  send_all(pair.client, "!?");
  EXPECT_EQ(await(recorder, kind_receive), received("!", false));
  shutdown(pair.client, SHUT_WR);
  ring().receive_exactly(recorder, kind_receive, pair.server, *group_, 5);
  EXPECT_EQ(await(recorder, kind_receive), received("?", false));
  ring().receive_exactly(recorder, kind_receive, pair.server, *group_, 5);
  EXPECT_EQ(await(recorder, kind_receive), event(kind_receive, 0));
  close(pair.client);
  close(pair.server);
}

TEST_P(Parity, message_is_received_into_its_own_memory) {
  Pair pair = connect_pair();
  Recorder recorder(ring());
  char bytes[8] = {};
  iovec piece{.iov_base = bytes, .iov_len = 4};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  ring().receive_message(recorder, kind_receive, pair.server, &message);
  settle();
  EXPECT_EQ(recorder.pending(kind_receive), 0U);
  send_all(pair.client, "hello");
  EXPECT_EQ(await(recorder, kind_receive), event(kind_receive, 4));
  EXPECT_EQ(std::string_view(bytes, 5), std::string_view("hell\0", 5));
  ring().receive_message(recorder, kind_receive, pair.server, &message);
  EXPECT_EQ(await(recorder, kind_receive), event(kind_receive, 1));
  EXPECT_EQ(bytes[0], 'o');
  ring().receive_message(recorder, kind_receive, pair.server, &message);
  settle();
  ring().cancel(recorder, kind_receive, kind_cancel);
  EXPECT_EQ(await(recorder, kind_receive), event(kind_receive, -ECANCELED));
  EXPECT_EQ(await(recorder, kind_cancel), event(kind_cancel, 0));
  shutdown(pair.client, SHUT_WR);
  ring().receive_message(recorder, kind_receive, pair.server, &message);
  EXPECT_EQ(await(recorder, kind_receive), event(kind_receive, 0));
  close(pair.client);
  close(pair.server);
}

TEST_P(Parity, single_receive_takes_what_is_there) {
  Pair pair = connect_pair();
  send_all(pair.client, "hello");
  Recorder recorder(ring(), group_.get());
  ring().receive(recorder, kind_receive, pair.server, *group_);
  EXPECT_EQ(await(recorder, kind_receive), received("hello", false));
  EXPECT_EQ(recorder.in_flight(), 0U);
  close(pair.client);
  close(pair.server);
}

// A kernel without bundles (before 6.10) fills one buffer.
TEST_P(Parity, bundle_fills_as_many_buffers_as_it_may) {
  Pair pair = connect_pair();
  std::string text = pattern(5 * buffer_bytes + 100);
  send_all(pair.client, text);
  settle();
  Recorder recorder(ring(), group_.get());
  std::string_view rest = text;
  for (std::uint32_t buffers : {3U, 1U, 4U}) {
    ring().receive_bundle(recorder, kind_receive, pair.server, *group_, buffers, false);
    std::uint32_t filled = ring().features().bundles ? buffers : 1;
    std::string_view expected = rest.substr(0, std::size_t{filled} * buffer_bytes);
    EXPECT_EQ(await(recorder, kind_receive), received(expected, false));
    EXPECT_EQ(recorder.in_flight(), 0U);
    rest.remove_prefix(expected.size());
  }
  EXPECT_EQ(group_->published() + group_->leased(), buffer_count);
  shutdown(pair.client, SHUT_WR);
  if (rest.empty()) {
    ring().receive_bundle(recorder, kind_receive, pair.server, *group_, 4, false);
    EXPECT_EQ(await(recorder, kind_receive), event(kind_receive, 0));
  }
  close(pair.client);
  close(pair.server);
}

TEST_P(Parity, receive_that_polls_first_waits_or_finds_what_is_there) {
  Pair pair = connect_pair();
  Recorder recorder(ring(), group_.get());
  ring().receive_bundle(recorder, kind_receive, pair.server, *group_, 1, true);
  settle();
  EXPECT_EQ(recorder.pending(kind_receive), 0U);
  send_all(pair.client, "late");
  EXPECT_EQ(await(recorder, kind_receive), received("late", false));
  send_all(pair.client, "early");
  settle();
  ring().receive_bundle(recorder, kind_receive, pair.server, *group_, 1, true);
  EXPECT_EQ(await(recorder, kind_receive), received("early", false));
  close(pair.client);
  ring().receive_bundle(recorder, kind_receive, pair.server, *group_, 1, true);
  EXPECT_EQ(await(recorder, kind_receive), event(kind_receive, 0));
  close(pair.server);
}

// Unlike one that does not (receive_cannot_be_armed_without_buffers).
TEST_P(Parity, receive_that_polls_first_can_be_armed_without_buffers) {
  Pair pair = connect_pair();
  Pair other = connect_pair();
  Recorder hoarder(ring(), group_.get());
  hoarder.hold_leases = true;
  for (std::uint32_t i = 0; i < buffer_count; ++i) {
    send_all(other.client, "x");
    ring().receive(hoarder, kind_receive, other.server, *group_);
    EXPECT_EQ(await(hoarder, kind_receive), received("x", false));
  }
  Recorder recorder(ring(), group_.get());
  ring().receive_bundle(recorder, kind_receive, pair.server, *group_, 1, true);
  settle();
  EXPECT_EQ(recorder.pending(kind_receive), 0U);
  send_all(pair.client, "y");
  EXPECT_EQ(await(recorder, kind_receive), event(kind_receive, -ENOBUFS));
  hoarder.leases.clear();
  ring().receive_bundle(recorder, kind_receive, pair.server, *group_, 1, true);
  EXPECT_EQ(await(recorder, kind_receive), received("y", false));
  for (int fd : {pair.client, pair.server, other.client, other.server})
    close(fd);
}

TEST_P(Parity, bundle_takes_what_buffers_there_are) {
  Pair pair = connect_pair();
  Recorder hoarder(ring(), group_.get());
  hoarder.hold_leases = true;
  for (std::uint32_t i = 0; i + 2 < buffer_count; ++i) {
    send_all(pair.client, "x");
    ring().receive(hoarder, kind_receive, pair.server, *group_);
    EXPECT_EQ(await(hoarder, kind_receive), received("x", false));
  }
  std::string text = pattern(4 * buffer_bytes);
  send_all(pair.client, text);
  settle();
  Recorder recorder(ring(), group_.get());
  ring().receive_bundle(recorder, kind_receive, pair.server, *group_, 4, false);
  std::size_t filled = ring().features().bundles ? 2 : 1;
  EXPECT_EQ(await(recorder, kind_receive), received(text.substr(0, filled * buffer_bytes), false));
  hoarder.leases.clear();
  close(pair.client);
  close(pair.server);
}

TEST_P(Parity, single_receive_waits_for_data) {
  Pair pair = connect_pair();
  Recorder recorder(ring(), group_.get());
  ring().receive(recorder, kind_receive, pair.server, *group_);
  settle();
  EXPECT_EQ(recorder.pending(kind_receive), 0U);
  send_all(pair.client, "hello");
  EXPECT_EQ(await(recorder, kind_receive), received("hello", false));
  close(pair.client);
  close(pair.server);
}

TEST_P(Parity, single_receive_waits_and_meets_the_end) {
  Pair pair = connect_pair();
  Recorder recorder(ring(), group_.get());
  ring().receive(recorder, kind_receive, pair.server, *group_);
  settle();
  close(pair.client);
  EXPECT_EQ(await(recorder, kind_receive), event(kind_receive, 0));
  close(pair.server);
}

TEST_P(Parity, receive_on_a_socket_that_is_not_connected_fails) {
  int fd = open_socket();
  Recorder recorder(ring(), group_.get());
  ring().receive(recorder, kind_receive, fd, *group_);
  Event got = await(recorder, kind_receive);
  // Unix sockets say -EINVAL, TCP -ENOTCONN.
  EXPECT_EQ(got, event(kind_receive, inet() ? -ENOTCONN : -EINVAL));
  close(fd);
}

TEST_P(ParityInet, receive_meets_a_reset) {
  Pair pair = connect_pair();
  Recorder recorder(ring(), group_.get());
  ring().receive_multishot(recorder, kind_receive, pair.server, *group_);
  settle();
  ASSERT_EQ(sys().reset_on_close(pair.client), 0);
  close(pair.client);
  EXPECT_EQ(await(recorder, kind_receive), event(kind_receive, -ECONNRESET));
  EXPECT_EQ(recorder.in_flight(), 0U);
  // The error is told once; after that the stream has ended.
  ring().receive(recorder, kind_receive, pair.server, *group_);
  EXPECT_EQ(await(recorder, kind_receive), event(kind_receive, 0));
  close(pair.server);
}

TEST_P(Parity, closing_with_unread_data_resets_the_peer) {
  Pair pair = connect_pair();
  send_all(pair.client, "nobody reads this");
  settle();
  close(pair.server);
  ring().receive(*helper_, kind_receive, pair.client, *group_);
  EXPECT_EQ(await(*helper_, kind_receive), event(kind_receive, -ECONNRESET));
  close(pair.client);
}

// Data that came before a reset is still received.
TEST_P(ParityInet, a_reset_comes_after_the_data_before_it) {
  Pair pair = connect_pair();
  send_all(pair.client, "kept");
  ASSERT_EQ(sys().reset_on_close(pair.client), 0);
  close(pair.client);
  await_hang_up(pair.server);
  Recorder recorder(ring(), group_.get());
  ring().receive_multishot(recorder, kind_receive, pair.server, *group_);
  EXPECT_EQ(await(recorder, kind_receive), received("kept", true));
  EXPECT_EQ(await(recorder, kind_receive), event(kind_receive, -ECONNRESET));
  close(pair.server);
}

// Also where the data filled its buffers, so that the receive looked for more.
TEST_P(ParityInet, a_reset_comes_after_the_bundle_before_it) {
  Pair pair = connect_pair();
  const std::string text = pattern(3 * buffer_bytes);
  send_all(pair.client, text);
  ASSERT_EQ(sys().reset_on_close(pair.client), 0);
  close(pair.client);
  await_hang_up(pair.server);
  Recorder recorder(ring(), group_.get());
  for (std::string_view rest = text; !rest.empty();) {
    ring().receive_bundle(recorder, kind_receive, pair.server, *group_, 4, false);
    const std::size_t bytes = ring().features().bundles ? rest.size() : buffer_bytes;
    ASSERT_EQ(await(recorder, kind_receive), received(rest.substr(0, bytes), false));
    rest.remove_prefix(bytes);
  }
  ring().receive_bundle(recorder, kind_receive, pair.server, *group_, 4, false);
  EXPECT_EQ(await(recorder, kind_receive), event(kind_receive, -ECONNRESET));
  close(pair.server);
}

TEST_P(Parity, receive_after_shutting_down_reading_meets_the_end) {
  Pair pair = connect_pair();
  shutdown(pair.server, SHUT_RD);
  Recorder recorder(ring(), group_.get());
  ring().receive(recorder, kind_receive, pair.server, *group_);
  EXPECT_EQ(await(recorder, kind_receive), event(kind_receive, 0));
  close(pair.client);
  close(pair.server);
}

TEST_P(Parity, shutting_down_ends_an_armed_receive) {
  Pair pair = connect_pair();
  Recorder recorder(ring(), group_.get());
  ring().receive_multishot(recorder, kind_receive, pair.server, *group_);
  settle();
  shutdown(pair.server, SHUT_RDWR);
  EXPECT_EQ(await(recorder, kind_receive), event(kind_receive, 0));
  EXPECT_TRUE(sees_end(pair.client));
  close(pair.client);
  close(pair.server);
}

}  // namespace
}  // namespace ringside::parity
