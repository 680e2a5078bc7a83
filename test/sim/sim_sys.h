// The simulated system calls behind net::SysPort.
#pragma once

#include "ringside/net/sys_port.h"

#include "core.h"

namespace ringside::sim {

class SimSys final : public net::SysPort {
 public:
  explicit SimSys(Core& core) : core_(core), random_(core.random.fork()) {}

  base::Result<int> open_stream_socket(int family) override;
  int set_option(int fd, int level, int name, int value) override;
  int set_option_bytes(int fd, int level, int name, const void* value, std::size_t bytes) override;
  int reset_on_close(int fd) override;
  int bind(int fd, const net::Address& address) override;
  int listen(int fd, int backlog) override;
  int connect_now(int fd, const net::Address& address) override;
  int shutdown(int fd, int how) override;
  int unacknowledged(int fd) override;
  int set_nonblocking(int fd, bool on) override;
  int accept_now(int fd, net::Address& peer) override;
  base::Result<int> duplicate(int fd) override;
  base::Result<net::Address> local_address(int fd) override;
  base::Result<net::Address> peer_address(int fd) override;
  void close(int fd) override;
  base::Result<net::PipeEnds> open_pipe(std::uint32_t bytes) override;
  int splice_in(int socket, int pipe_write_fd, std::uint32_t bytes) override;
  int splice_out(int pipe_read_fd, int socket, std::uint32_t bytes) override;
  int remove_stale_unix_socket(const net::Address& address) override;
  void random_bytes(void* out, std::size_t bytes) override;

 private:
  std::shared_ptr<PipeFile> pipe(int fd) const;
  // Limits a transfer to a random part.
  std::size_t shorten(std::size_t bytes, Fault fault);
  Core& core_;
  Random random_;
};

}  // namespace ringside::sim
