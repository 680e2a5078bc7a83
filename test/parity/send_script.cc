#include <cerrno>
#include <cstring>
#include <functional>

#include "parity.h"

namespace ringside::parity {
namespace {

// Submits what is left of `data` with `submit` until a send waits for room; returns how much went
// out before. The one that waits is in flight when it returns.
std::size_t fill(Recorder& recorder, std::string_view data,
                 const std::function<void(std::string_view)>& submit,
                 const std::function<void()>& settle) {
  std::size_t sent = 0;
  while (sent < data.size()) {
    submit(data.substr(sent));
    settle();
    std::vector<Event> events = recorder.take_all(kind_send);
    if (events.empty()) return sent;
    EXPECT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0], event(kind_send, events[0].result));
    EXPECT_GT(events[0].result, 0);
    if (events[0].result <= 0) return sent;
    sent += static_cast<std::size_t>(events[0].result);
  }
  ADD_FAILURE() << "the socket is never full";
  return sent;
}

constexpr std::size_t much = std::size_t{32} << 20;

TEST_P(Parity, send_on_a_full_socket_is_short_and_then_waits) {
  Pair pair = connect_pair();
  std::string data = pattern(much);
  Recorder recorder(ring());
  std::size_t sent = fill(recorder, data, sender(recorder, pair.client), [this] { settle(); });
  ASSERT_GT(sent, 0U);
  ASSERT_EQ(recorder.in_flight(), 1U);
  // Room again: the waiting send goes on, and says how much.
  std::string got = receive_some(pair.server, sent);
  Event late = await(recorder, kind_send);
  EXPECT_EQ(late, event(kind_send, late.result));
  ASSERT_GT(late.result, 0);
  shutdown(pair.client, SHUT_WR);
  got += receive_some(pair.server, much);
  EXPECT_EQ(got.size(), sent + static_cast<std::size_t>(late.result));
  EXPECT_TRUE(data.starts_with(got));
  close(pair.client);
  close(pair.server);
}

TEST_P(Parity, send_that_waits_can_be_cancelled) {
  Pair pair = connect_pair();
  std::string data = pattern(much);
  Recorder recorder(ring());
  std::size_t sent = fill(recorder, data, sender(recorder, pair.client), [this] { settle(); });
  ASSERT_EQ(recorder.in_flight(), 1U);
  ring().cancel(recorder, kind_send, kind_cancel);
  EXPECT_EQ(await(recorder, kind_send), event(kind_send, -ECANCELED));
  EXPECT_EQ(await(recorder, kind_cancel), event(kind_cancel, 0));
  shutdown(pair.client, SHUT_WR);
  EXPECT_TRUE(receive_some(pair.server, much) == data.substr(0, sent));
  close(pair.client);
  close(pair.server);
}

TEST_P(Parity, send_that_waits_fails_when_the_peer_goes) {
  Pair pair = connect_pair();
  std::string data = pattern(much);
  Recorder recorder(ring());
  fill(recorder, data, sender(recorder, pair.client), [this] { settle(); });
  ASSERT_EQ(recorder.in_flight(), 1U);
  close(pair.server);
  Event got = await(recorder, kind_send);
  EXPECT_TRUE(got.result == -EPIPE || got.result == -ECONNRESET) << got;
  close(pair.client);
}

TEST_P(Parity, send_with_waitall_is_never_short) {
  Pair pair = connect_pair();
  std::string data = pattern(8 << 20);
  Recorder recorder(ring());
  ring().send(recorder, kind_send, pair.client, data.data(), data.size(),
              MSG_NOSIGNAL | MSG_WAITALL);
  EXPECT_TRUE(receive_some(pair.server, data.size()) == data);
  EXPECT_EQ(await(recorder, kind_send), event(kind_send, static_cast<std::int32_t>(data.size())));
  close(pair.client);
  close(pair.server);
}

TEST_P(Parity, send_message_gathers_its_pieces) {
  Pair pair = connect_pair();
  Recorder recorder(ring());
  std::string pieces[] = {"alpha ", "", "beta ", "gamma"};
  ring::Ring::Gather& gather = ring().gather();
  for (std::size_t i = 0; i < std::size(pieces); ++i)
    gather.pieces[i] = {pieces[i].data(), pieces[i].size()};
  gather.message.msg_iovlen = std::size(pieces);
  ring().send_message(recorder, kind_send, pair.client, &gather.message, MSG_NOSIGNAL);
  EXPECT_EQ(await(recorder, kind_send), event(kind_send, 16));
  EXPECT_EQ(receive_some(pair.server, 16), "alpha beta gamma");
  close(pair.client);
  close(pair.server);
}

void send_and_close(ring::Ring& ring, Recorder& recorder, int fd, std::string_view data) {
  ring::Ring::Gather& gather = ring.gather();
  gather.pieces[0] = {const_cast<char*>(data.data()), data.size()};
  gather.message.msg_iovlen = 1;
  ring.send_message_and_close(recorder, kind_send, kind_close, fd, &gather.message, MSG_NOSIGNAL);
}

TEST_P(Parity, the_last_bytes_and_the_end_in_one_go) {
  Pair pair = connect_pair();
  Recorder receiver(ring(), group_.get());
  ring().receive_multishot(receiver, kind_receive, pair.client, *group_);
  settle();
  // The receive would hold the socket open.
  ring().cancel(receiver, kind_receive, kind_cancel);
  Recorder recorder(ring());
  send_and_close(ring(), recorder, pair.client, "last");
  EXPECT_EQ(await(recorder, kind_send), event(kind_send, 4));
  EXPECT_EQ(await(recorder, kind_close), event(kind_close, 0));
  await_end(receiver);
  EXPECT_EQ(receive_some(pair.server, 4), "last");
  EXPECT_TRUE(sees_end(pair.server));
  ring().close(recorder, kind_close, pair.client);
  EXPECT_EQ(await(recorder, kind_close), event(kind_close, -EBADF)) << "it is closed already";
  close(pair.server);
}

TEST_P(Parity, a_send_that_fails_is_not_followed_by_the_close) {
  Pair pair = connect_pair();
  shutdown(pair.client, SHUT_WR);
  Recorder recorder(ring());
  send_and_close(ring(), recorder, pair.client, "last");
  EXPECT_EQ(await(recorder, kind_send), event(kind_send, -EPIPE));
  EXPECT_EQ(await(recorder, kind_close), event(kind_close, -ECANCELED));
  close(pair.client);
  close(pair.server);
}

TEST_P(Parity, a_send_that_does_not_fit_is_short_and_not_followed_by_the_close) {
  Pair pair = connect_pair();
  std::string data = pattern(much);
  Recorder recorder(ring());
  std::size_t sent = 0;
  for (std::int32_t result = 1; result > 0;) {
    send_and_close(ring(), recorder, pair.client, std::string_view(data).substr(sent));
    result = await(recorder, kind_send).result;
    EXPECT_EQ(await(recorder, kind_close), event(kind_close, -ECANCELED));
    if (result <= 0) {
      EXPECT_EQ(result, -EAGAIN);
    } else {
      sent += static_cast<std::size_t>(result);
    }
    settle();
  }
  EXPECT_GT(sent, 0U);
  EXPECT_LT(sent, much);
  shutdown(pair.client, SHUT_WR);
  EXPECT_TRUE(receive_some(pair.server, much) == data.substr(0, sent));
  close(pair.client);
  close(pair.server);
}

// The message header and the vector are needed only until the ring has submitted, even when the
// send waits.
TEST_P(Parity, send_message_that_waits_has_its_own_copy_of_the_vector) {
  Pair pair = connect_pair();
  std::string data = pattern(much);
  Recorder recorder(ring());
  ring::Ring::Gather* last = nullptr;
  auto submit = [&](std::string_view rest) {
    last = &ring().gather();
    auto* begin = const_cast<char*>(rest.data());
    std::size_t half = rest.size() / 2;
    last->pieces[0] = {begin, half};
    last->pieces[1] = {begin + half, rest.size() - half};
    last->message.msg_iovlen = 2;
    ring().send_message(recorder, kind_send, pair.client, &last->message, MSG_NOSIGNAL);
  };
  std::size_t sent = fill(recorder, data, submit, [this] { settle(); });
  ASSERT_EQ(recorder.in_flight(), 1U);
  std::memset(static_cast<void*>(last), 0xff, sizeof(*last));
  std::string got = receive_some(pair.server, sent);
  Event late = await(recorder, kind_send);
  ASSERT_GT(late.result, 0);
  shutdown(pair.client, SHUT_WR);
  got += receive_some(pair.server, much);
  EXPECT_EQ(got.size(), sent + static_cast<std::size_t>(late.result));
  EXPECT_TRUE(data.starts_with(got));
  close(pair.client);
  close(pair.server);
}

TEST_P(Parity, send_to_a_peer_that_has_closed_fails_sooner_or_later) {
  Pair pair = connect_pair();
  close(pair.server);
  await_hang_up(pair.client);
  Recorder recorder(ring());
  // TCP learns of it from the answer to the first.
  std::int32_t result = 1;
  for (int i = 0; i < 3 && result > 0; ++i) {
    ring().send(recorder, kind_send, pair.client, "x", 1, MSG_NOSIGNAL);
    result = await(recorder, kind_send).result;
    settle();
  }
  EXPECT_EQ(result, -EPIPE);
  close(pair.client);
}

TEST_P(Parity, send_after_shutting_down_writing_fails) {
  Pair pair = connect_pair();
  shutdown(pair.client, SHUT_WR);
  Recorder recorder(ring());
  ring().send(recorder, kind_send, pair.client, "x", 1, MSG_NOSIGNAL);
  EXPECT_EQ(await(recorder, kind_send), event(kind_send, -EPIPE));
  close(pair.client);
  close(pair.server);
}

TEST_P(Parity, send_on_a_socket_that_is_not_connected_fails) {
  int fd = open_socket();
  Recorder recorder(ring());
  ring().send(recorder, kind_send, fd, "x", 1, MSG_NOSIGNAL);
  EXPECT_EQ(await(recorder, kind_send), event(kind_send, inet() ? -EPIPE : -ENOTCONN));
  close(fd);
}

TEST_P(ParityInet, send_after_a_reset_fails) {
  Pair pair = connect_pair();
  ASSERT_EQ(sys().reset_on_close(pair.server), 0);
  close(pair.server);
  await_hang_up(pair.client);
  Recorder recorder(ring());
  ring().send(recorder, kind_send, pair.client, "x", 1, MSG_NOSIGNAL);
  EXPECT_EQ(await(recorder, kind_send), event(kind_send, -ECONNRESET));
  ring().send(recorder, kind_send, pair.client, "x", 1, MSG_NOSIGNAL);
  EXPECT_EQ(await(recorder, kind_send), event(kind_send, -EPIPE));
  close(pair.client);
}

TEST_P(ParityInet, zero_copy_send_has_two_completions) {
  Pair pair = connect_pair();
  Recorder recorder(ring());
  std::string data = pattern(10'000);
  ring().send_zero_copy(recorder, kind_send, pair.client, data.data(), data.size(), MSG_NOSIGNAL,
                        -1);
  Event first = await(recorder, kind_send);
  EXPECT_EQ(first, (Event{.kind = kind_send, .result = 10'000, .more = true, .data = {}}));
  // The notification comes when the peer has the bytes.
  EXPECT_TRUE(receive_some(pair.server, data.size()) == data);
  EXPECT_EQ(await(recorder, kind_send),
            (Event{.kind = kind_send, .result = 0, .notification = true, .data = {}}));
  EXPECT_EQ(recorder.in_flight(), 0U);
  close(pair.client);
  close(pair.server);
}

TEST_P(ParityInet, zero_copy_send_from_a_leased_buffer) {
  Pair pair = connect_pair();
  send_all(pair.client, "echo");
  Recorder receiver(ring(), group_.get());
  receiver.hold_leases = true;
  ring().receive(receiver, kind_receive, pair.server, *group_);
  EXPECT_EQ(await(receiver, kind_receive), received("echo", false));
  ring::Lease& lease = receiver.leases[0];
  Recorder recorder(ring());
  ring().send_zero_copy(recorder, kind_send, pair.server, lease.data(), lease.size(), MSG_NOSIGNAL,
                        lease.registered_index());
  EXPECT_EQ(await(recorder, kind_send),
            (Event{.kind = kind_send, .result = 4, .more = true, .data = {}}));
  EXPECT_EQ(receive_some(pair.client, 4), "echo");
  await_end(recorder);
  EXPECT_EQ(recorder.take_all(kind_send).size(), 1U);
  receiver.leases.clear();
  close(pair.client);
  close(pair.server);
}

// A zero-copy send that fails still has a notification.
TEST_P(ParityInet, zero_copy_send_that_fails_notifies_too) {
  Pair pair = connect_pair();
  shutdown(pair.client, SHUT_WR);
  Recorder recorder(ring());
  std::string data = "x";
  ring().send_zero_copy(recorder, kind_send, pair.client, data.data(), data.size(), MSG_NOSIGNAL,
                        -1);
  EXPECT_EQ(await(recorder, kind_send),
            (Event{.kind = kind_send, .result = -EPIPE, .more = true, .data = {}}));
  EXPECT_EQ(await(recorder, kind_send),
            (Event{.kind = kind_send, .result = 0, .notification = true, .data = {}}));
  EXPECT_EQ(recorder.in_flight(), 0U);
  close(pair.client);
  close(pair.server);
}

}  // namespace
}  // namespace ringside::parity
