#include <cerrno>
#include <set>

#include "parity.h"

namespace ringside::parity {
namespace {

TEST_P(Parity, accept_gives_one_completion_a_connection) {
  Listener listener = listen();
  Recorder recorder(ring());
  ring().accept_multishot(recorder, kind_accept, listener.fd);
  std::set<int> accepted_fds;
  for (int i = 0; i < 3; ++i) {
    int fd = open_socket();
    ASSERT_EQ(connect(fd, listener.address), 0);
    Event got = await(recorder, kind_accept);
    EXPECT_EQ(got, accepted(got.result));
    EXPECT_GE(got.result, 0);
    EXPECT_TRUE(accepted_fds.insert(got.result).second);
    EXPECT_EQ(recorder.in_flight(), 1U);
    close(fd);
    EXPECT_TRUE(sees_end(got.result));
  }
  ring().cancel(recorder, kind_accept, kind_cancel);
  EXPECT_EQ(await(recorder, kind_accept), event(kind_accept, -ECANCELED));
  EXPECT_EQ(await(recorder, kind_cancel), event(kind_cancel, 0));
  for (int fd : accepted_fds)
    close(fd);
  close(listener.fd);
}

TEST_P(Parity, accept_finds_connections_that_wait) {
  Listener listener = listen();
  int clients[3];
  for (int& fd : clients) {
    fd = open_socket();
    ASSERT_EQ(connect(fd, listener.address), 0);
  }
  Recorder recorder(ring());
  ring().accept_multishot(recorder, kind_accept, listener.fd);
  for (int fd : clients) {
    Event got = await(recorder, kind_accept);
    EXPECT_EQ(got, accepted(got.result));
    EXPECT_GE(got.result, 0);
    close(got.result);
    close(fd);
  }
  ring().cancel(recorder, kind_accept, kind_cancel);
  await_end(recorder);
  close(listener.fd);
}

// A unix listener does not wake its accept: it must be cancelled.
TEST_P(ParityInet, accept_ends_when_the_listener_is_shut_down) {
  Listener listener = listen();
  Recorder recorder(ring());
  ring().accept_multishot(recorder, kind_accept, listener.fd);
  settle();
  shutdown(listener.fd, SHUT_RDWR);
  EXPECT_EQ(await(recorder, kind_accept), event(kind_accept, -EINVAL));
  close(listener.fd);
}

TEST_P(Parity, accept_on_a_socket_that_does_not_listen_fails) {
  int fd = open_socket();
  Recorder recorder(ring());
  ring().accept_multishot(recorder, kind_accept, fd);
  EXPECT_EQ(await(recorder, kind_accept), event(kind_accept, -EINVAL));
  close(fd);
}

TEST_P(Parity, accept_on_a_bad_descriptor_fails) {
  Recorder recorder(ring());
  ring().accept_multishot(recorder, kind_accept, 999'999);
  EXPECT_EQ(await(recorder, kind_accept), event(kind_accept, -EBADF));
}

TEST_P(Parity, accept_now_takes_what_waits) {
  Listener listener = listen();
  net::Address peer;
  int client = open_socket();
  ASSERT_EQ(connect(client, listener.address), 0);
  int server = accept_one(listener.fd, &peer);
  ASSERT_EQ(sys().set_nonblocking(listener.fd, true), 0);
  EXPECT_EQ(peer.family(), listener.address.family());
  if (inet()) {
    EXPECT_EQ(peer, *sys().local_address(client));
  }
  EXPECT_EQ(sys().accept_now(listener.fd, peer), -EAGAIN);
  send_all(client, "hello");
  EXPECT_EQ(receive_some(server, 5), "hello");
  close(server);
  close(client);
  close(listener.fd);
}

// A connection that waits in the queue when the listener goes away is reset.
TEST_P(Parity, closing_a_listener_ends_what_waits) {
  Listener listener = listen();
  int client = open_socket();
  ASSERT_EQ(connect(client, listener.address), 0);
  settle();
  close(listener.fd);
  ring().receive(*helper_, kind_receive, client, *group_);
  EXPECT_EQ(await(*helper_, kind_receive), event(kind_receive, -ECONNRESET));
  close(client);
}

TEST_P(Parity, addresses_of_both_ends) {
  Listener listener = listen();
  int client = open_socket();
  ASSERT_EQ(connect(client, listener.address), 0);
  int server = accept_one(listener.fd);
  auto peer = sys().peer_address(client);
  ASSERT_TRUE(peer.has_value());
  EXPECT_EQ(*peer, listener.address);
  auto local = sys().local_address(client);
  auto seen = sys().peer_address(server);
  ASSERT_TRUE(local.has_value());
  ASSERT_TRUE(seen.has_value());
  EXPECT_EQ(local->family(), listener.address.family());
  if (inet()) {
    EXPECT_EQ(*local, *seen);
    EXPECT_NE(local->port(), 0);
  }
  close(server);
  close(client);
  close(listener.fd);
}

}  // namespace
}  // namespace ringside::parity
