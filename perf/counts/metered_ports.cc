#include "metered_ports.h"

namespace ringside::budget {

int MeteredKernel::setup(unsigned entries, io_uring_params& params, io_uring& ring) {
  return meter_.outside([&] { return kernel_.setup(entries, params, ring); });
}
int MeteredKernel::enter(io_uring& ring, unsigned to_submit, unsigned min_complete, unsigned flags,
                         const __kernel_timespec* timeout) {
  return meter_.outside(
      [&] { return kernel_.enter(ring, to_submit, min_complete, flags, timeout); });
}
int MeteredKernel::register_resource(io_uring& ring, unsigned opcode, void* arg, unsigned count) {
  return meter_.outside([&] { return kernel_.register_resource(ring, opcode, arg, count); });
}
void MeteredKernel::teardown(io_uring& ring) {
  return meter_.outside([&] { return kernel_.teardown(ring); });
}
void MeteredKernel::try_features(unsigned setup_flags, ring::Features& features) {
  return meter_.outside([&] { return kernel_.try_features(setup_flags, features); });
}
int MeteredKernel::open_event() {
  return meter_.outside([&] { return kernel_.open_event(); });
}
void MeteredKernel::signal_event(int fd) {
  return meter_.outside([&] { return kernel_.signal_event(fd); });
}
void MeteredKernel::close_event(int fd) {
  return meter_.outside([&] { return kernel_.close_event(fd); });
}
std::uint64_t MeteredKernel::monotonic_ns() {
  return meter_.outside([&] { return kernel_.monotonic_ns(); });
}
std::uint64_t MeteredKernel::thread_cpu_ns() {
  return meter_.outside([&] { return kernel_.thread_cpu_ns(); });
}
std::uint64_t MeteredKernel::realtime_ns() {
  return meter_.outside([&] { return kernel_.realtime_ns(); });
}

base::Result<int> MeteredSys::open_stream_socket(int family) {
  return meter_.outside([&] { return sys_.open_stream_socket(family); });
}
int MeteredSys::set_option(int fd, int level, int name, int value) {
  return meter_.outside([&] { return sys_.set_option(fd, level, name, value); });
}
int MeteredSys::set_option_bytes(int fd, int level, int name, const void* value,
                                 std::size_t bytes) {
  return meter_.outside([&] { return sys_.set_option_bytes(fd, level, name, value, bytes); });
}
int MeteredSys::reset_on_close(int fd) {
  return meter_.outside([&] { return sys_.reset_on_close(fd); });
}
int MeteredSys::bind(int fd, const net::Address& address) {
  return meter_.outside([&] { return sys_.bind(fd, address); });
}
int MeteredSys::listen(int fd, int backlog) {
  return meter_.outside([&] { return sys_.listen(fd, backlog); });
}
int MeteredSys::connect_now(int fd, const net::Address& address) {
  return meter_.outside([&] { return sys_.connect_now(fd, address); });
}
int MeteredSys::shutdown(int fd, int how) {
  return meter_.outside([&] { return sys_.shutdown(fd, how); });
}
int MeteredSys::unacknowledged(int fd) {
  return meter_.outside([&] { return sys_.unacknowledged(fd); });
}
int MeteredSys::set_nonblocking(int fd, bool on) {
  return meter_.outside([&] { return sys_.set_nonblocking(fd, on); });
}
int MeteredSys::accept_now(int fd, net::Address& peer) {
  return meter_.outside([&] { return sys_.accept_now(fd, peer); });
}
base::Result<int> MeteredSys::duplicate(int fd) {
  return meter_.outside([&] { return sys_.duplicate(fd); });
}
base::Result<net::Address> MeteredSys::local_address(int fd) {
  return meter_.outside([&] { return sys_.local_address(fd); });
}
base::Result<net::Address> MeteredSys::peer_address(int fd) {
  return meter_.outside([&] { return sys_.peer_address(fd); });
}
void MeteredSys::close(int fd) {
  return meter_.outside([&] { return sys_.close(fd); });
}
base::Result<net::PipeEnds> MeteredSys::open_pipe(std::uint32_t bytes) {
  return meter_.outside([&] { return sys_.open_pipe(bytes); });
}
int MeteredSys::splice_in(int socket, int pipe_write_fd, std::uint32_t bytes) {
  return meter_.outside([&] { return sys_.splice_in(socket, pipe_write_fd, bytes); });
}
int MeteredSys::splice_out(int pipe_read_fd, int socket, std::uint32_t bytes) {
  return meter_.outside([&] { return sys_.splice_out(pipe_read_fd, socket, bytes); });
}
int MeteredSys::remove_stale_unix_socket(const net::Address& address) {
  return meter_.outside([&] { return sys_.remove_stale_unix_socket(address); });
}
void MeteredSys::random_bytes(void* out, std::size_t bytes) {
  return meter_.outside([&] { return sys_.random_bytes(out, bytes); });
}

}  // namespace ringside::budget
