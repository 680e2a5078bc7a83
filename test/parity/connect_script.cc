#include <cerrno>

#include "parity.h"

namespace ringside::parity {
namespace {

TEST_P(Parity, connect_completes_with_zero) {
  Listener listener = listen();
  int fd = open_socket();
  Recorder recorder(ring());
  {
    // The address is needed only until the ring has submitted.
    net::Address address = listener.address;
    ring().connect(recorder, kind_connect, fd, address.raw(), address.length());
    ring().run_once(0);
    address = net::Address();
  }
  EXPECT_EQ(await(recorder, kind_connect), event(kind_connect, 0));
  close(fd);
  close(listener.fd);
}

TEST_P(Parity, connect_is_refused_where_nobody_listens) {
  Listener listener = listen();
  close(listener.fd);
  int fd = open_socket();
  Recorder recorder(ring());
  ring().connect(recorder, kind_connect, fd, listener.address.raw(), listener.address.length());
  EXPECT_EQ(await(recorder, kind_connect), event(kind_connect, -ECONNREFUSED));
  close(fd);
}

TEST_P(Parity, connect_on_a_connected_socket_fails) {
  Listener listener = listen();
  int fd = open_socket();
  ASSERT_EQ(connect(fd, listener.address), 0);
  Recorder recorder(ring());
  ring().connect(recorder, kind_connect, fd, listener.address.raw(), listener.address.length());
  EXPECT_EQ(await(recorder, kind_connect), event(kind_connect, -EISCONN));
  close(fd);
  close(listener.fd);
}

TEST_P(Parity, connect_on_a_bad_descriptor_fails) {
  net::Address address = *net::Address::from_ip("127.0.0.1", 1);
  EXPECT_EQ(connect(999'999, address), -EBADF);
}

// A queue that is full leaves the next connect waiting: it can be cancelled.
TEST_P(ParityInet, connect_that_waits_can_be_cancelled) {
  Listener listener = listen(0);
  Recorder recorder(ring());
  std::vector<int> connected;
  int waiting = -1;
  for (int i = 0; i < 8 && waiting < 0; ++i) {
    int fd = open_socket();
    ring().connect(recorder, kind_connect, fd, listener.address.raw(), listener.address.length());
    settle();
    if (recorder.pending(kind_connect) == 0) {
      waiting = fd;
    } else {
      EXPECT_EQ(await(recorder, kind_connect), event(kind_connect, 0));
      connected.push_back(fd);
    }
  }
  ASSERT_GE(waiting, 0) << "the queue is never full";
  ring().cancel(recorder, kind_connect, kind_cancel);
  EXPECT_EQ(await(recorder, kind_connect), event(kind_connect, -ECANCELED));
  EXPECT_EQ(await(recorder, kind_cancel), event(kind_cancel, 0));
  close(waiting);
  for (int fd : connected)
    close(fd);
  close(listener.fd);
}

TEST_P(Parity, bind_to_an_address_in_use_fails) {
  Listener listener = listen();
  int fd = open_socket();
  EXPECT_EQ(sys().bind(fd, listener.address), -EADDRINUSE);
  close(fd);
  close(listener.fd);
}

}  // namespace
}  // namespace ringside::parity
