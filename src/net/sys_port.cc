#include "ringside/net/sys_port.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>

namespace ringside::net {

namespace {

int result_of(int value) {
  return value < 0 ? -errno : value;
}

class RealSys final : public SysPort {
 public:
  base::Result<int> open_stream_socket(int family) override {
    int fd = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return std::unexpected(base::from_errno(errno));
    return fd;
  }

  int set_option(int fd, int level, int name, int value) override {
    return result_of(::setsockopt(fd, level, name, &value, sizeof value));
  }

  int set_option_bytes(int fd, int level, int name, const void* value, std::size_t bytes) override {
    return result_of(::setsockopt(fd, level, name, value, static_cast<socklen_t>(bytes)));
  }

  int reset_on_close(int fd) override {
    linger now{.l_onoff = 1, .l_linger = 0};
    return result_of(::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now));
  }

  int bind(int fd, const Address& address) override {
    return result_of(::bind(fd, address.raw(), address.length()));
  }

  int listen(int fd, int backlog) override { return result_of(::listen(fd, backlog)); }

  int connect_now(int fd, const Address& address) override {
    return result_of(::connect(fd, address.raw(), address.length()));
  }

  int shutdown(int fd, int how) override { return result_of(::shutdown(fd, how)); }

  int unacknowledged(int fd) override {
    int bytes = 0;
    const int result = result_of(::ioctl(fd, SIOCOUTQ, &bytes));
    return result < 0 ? result : bytes;
  }

  int set_nonblocking(int fd, bool on) override {
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags < 0) return -errno;
    return result_of(::fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK));
  }

  int accept_now(int fd, Address& peer) override {
    sockaddr_storage storage;
    socklen_t length = sizeof storage;
    auto* raw = reinterpret_cast<sockaddr*>(&storage);
    const int accepted = result_of(::accept4(fd, raw, &length, SOCK_CLOEXEC));
    if (accepted >= 0) peer = Address::from_raw(raw, length);
    return accepted;
  }

  base::Result<int> duplicate(int fd) override {
    int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) return std::unexpected(base::from_errno(errno));
    return copy;
  }

  base::Result<Address> local_address(int fd) override { return name_of(fd, &::getsockname); }
  base::Result<Address> peer_address(int fd) override { return name_of(fd, &::getpeername); }

  void close(int fd) override { ::close(fd); }

  base::Result<PipeEnds> open_pipe(std::uint32_t bytes) override {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return std::unexpected(base::from_errno(errno));
    int capacity = ::fcntl(ends[1], F_SETPIPE_SZ, static_cast<int>(bytes));
    if (capacity < 0) capacity = ::fcntl(ends[1], F_GETPIPE_SZ);
    return PipeEnds{ends[0], ends[1], static_cast<std::uint32_t>(capacity)};
  }

  int splice_in(int socket, int pipe_write_fd, std::uint32_t bytes) override {
    return splice(socket, pipe_write_fd, bytes, socket);
  }

  // Without SPLICE_F_MORE: on the last piece it would hold the bytes back.
  int splice_out(int pipe_read_fd, int socket, std::uint32_t bytes) override {
    return splice(pipe_read_fd, socket, bytes, socket);
  }

  int remove_stale_unix_socket(const Address& address) override {
    const auto* name = reinterpret_cast<const sockaddr_un*>(address.raw());
    struct stat info{};
    if (name->sun_path[0] == '\0' || ::lstat(name->sun_path, &info) != 0) return 0;
    if (!S_ISSOCK(info.st_mode)) return -EEXIST;
    int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -errno;
    int connected = result_of(::connect(fd, address.raw(), address.length()));
    ::close(fd);
    if (connected == 0 || connected == -EAGAIN) return -EADDRINUSE;  // somebody listens
    if (connected != -ECONNREFUSED) return connected;
    return result_of(::unlink(name->sun_path));
  }

  void random_bytes(void* out, std::size_t bytes) override {
    auto* at = static_cast<char*>(out);
    while (bytes > 0) {
      ssize_t got = ::getrandom(at, bytes, 0);
      if (got <= 0) continue;  // only EINTR is possible for small requests
      at += got;
      bytes -= static_cast<std::size_t>(got);
    }
  }

 private:
  // The flag of the call counts for the pipe alone; a socket waits unless its description says
  // otherwise. That flag cannot stay, since the ring's operations would no longer wait either. The
  // two calls are about 0.1 us, of a splice of many pages.
  static int splice(int from, int to, std::uint32_t bytes, int socket) {
    int flags = ::fcntl(socket, F_GETFL);
    ::fcntl(socket, F_SETFL, flags | O_NONBLOCK);
    int moved = result_of(static_cast<int>(
        ::splice(from, nullptr, to, nullptr, bytes, SPLICE_F_MOVE | SPLICE_F_NONBLOCK)));
    ::fcntl(socket, F_SETFL, flags);
    return moved;
  }

  using NameCall = int (*)(int, sockaddr*, socklen_t*);
  static base::Result<Address> name_of(int fd, NameCall call) {
    sockaddr_storage storage{};
    socklen_t length = sizeof storage;
    auto* raw = reinterpret_cast<sockaddr*>(&storage);
    if (call(fd, raw, &length) != 0) return std::unexpected(base::from_errno(errno));
    return Address::from_raw(raw, length);
  }
};

}  // namespace

SysPort& real_sys() {
  static RealSys sys;
  return sys;
}

}  // namespace ringside::net
