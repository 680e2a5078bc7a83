// The simulated kernel and system calls, with the meter stopped while they work.
#pragma once

#include "ringside/net/sys_port.h"
#include "ringside/ring/kernel_port.h"

#include "meter.h"

namespace ringside::budget {

// Both refer to a meter and to the port behind them, which outlive them.
class MeteredKernel final : public ring::KernelPort {
 public:
  MeteredKernel(ring::KernelPort& kernel, Meter& meter) : kernel_(kernel), meter_(meter) {}

  int setup(unsigned entries, io_uring_params& params, io_uring& ring) override;
  int enter(io_uring& ring, unsigned to_submit, unsigned min_complete, unsigned flags,
            const __kernel_timespec* timeout) override;
  int register_resource(io_uring& ring, unsigned opcode, void* arg, unsigned count) override;
  void teardown(io_uring& ring) override;
  void try_features(unsigned setup_flags, ring::Features& features) override;
  int open_event() override;
  void signal_event(int fd) override;
  void close_event(int fd) override;
  std::uint64_t monotonic_ns() override;
  std::uint64_t realtime_ns() override;
  std::uint64_t thread_cpu_ns() override;

 private:
  ring::KernelPort& kernel_;
  Meter& meter_;
};

class MeteredSys final : public net::SysPort {
 public:
  MeteredSys(net::SysPort& sys, Meter& meter) : sys_(sys), meter_(meter) {}

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
  net::SysPort& sys_;
  Meter& meter_;
};

}  // namespace ringside::budget
