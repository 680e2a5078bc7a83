// System calls on sockets that are not ring operations; simulated together with the kernel.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ringside/base/error.h"
#include "ringside/net/address.h"

namespace ringside::net {

// Both ends of a pipe, and how much it holds.
struct PipeEnds {
  int read_fd = -1;
  int write_fd = -1;
  std::uint32_t capacity = 0;
};

// None of these blocks. Thread-safe in the real one; the simulated one lives in one thread.
// Sockets are in blocking mode: on a non-blocking one io_uring would answer -EAGAIN instead of
// waiting.
class SysPort {
 public:
  virtual ~SysPort() = default;
  virtual base::Result<int> open_stream_socket(int family) = 0;
  // 0 or a negative errno.
  virtual int set_option(int fd, int level, int name, int value) = 0;
  // The same for options that are no number (TCP_ULP, and keys of kernel TLS).
  virtual int set_option_bytes(int fd, int level, int name, const void* value,
                               std::size_t bytes) = 0;
  // Makes a later close send RST (SO_LINGER of zero).
  virtual int reset_on_close(int fd) = 0;
  virtual int bind(int fd, const Address& address) = 0;
  virtual int listen(int fd, int backlog) = 0;
  // For loopback, at start: waits until it is connected. 0 or a negative errno.
  virtual int connect_now(int fd, const Address& address) = 0;
  // Not an operation: the kernel runs that in a worker thread (measured: 5.2 us against 0.3), and
  // the call does not block.
  virtual int shutdown(int fd, int how) = 0;
  // Bytes that were sent and that the peer's side has not acknowledged, or a negative errno. (A
  // unix socket counts what the kernel uses for them instead, which is more.)
  virtual int unacknowledged(int fd) = 0;
  // Of the socket, not of the descriptor. Whether a ring's operations still wait then depends on
  // the kernel, so none is submitted meanwhile.
  virtual int set_nonblocking(int fd, bool on) = 0;
  // A connection that is in the accept queue of a non-blocking listener, and its client's address;
  // -EAGAIN: there is none.
  virtual int accept_now(int fd, Address& peer) = 0;
  // Another descriptor of the same socket.
  virtual base::Result<int> duplicate(int fd) = 0;
  virtual base::Result<Address> local_address(int fd) = 0;
  virtual base::Result<Address> peer_address(int fd) = 0;
  // Outside a ring's life only (a ring closes its sockets by operations).
  virtual void close(int fd) = 0;
  // A pipe that holds `bytes`, or less where the user's share of pipe memory is used up (pipe(7)).
  virtual base::Result<PipeEnds> open_pipe(std::uint32_t bytes) = 0;
  // Moves up to `bytes` bytes from a socket into an empty pipe. How many, 0 at the end of the
  // stream, or a negative errno (-EAGAIN: nothing there; -EINVAL: this kind of socket cannot).
  virtual int splice_in(int socket, int pipe_write_fd, std::uint32_t bytes) = 0;
  // Moves up to `bytes` bytes, which the pipe has, to a socket. -EAGAIN: the socket is full.
  virtual int splice_out(int pipe_read_fd, int socket, std::uint32_t bytes) = 0;
  // Removes a stale unix socket: one that nobody listens on. 0 or a negative errno.
  virtual int remove_stale_unix_socket(const Address& address) = 0;
  virtual void random_bytes(void* out, std::size_t bytes) = 0;
};

// Lives for ever.
SysPort& real_sys();

}  // namespace ringside::net
