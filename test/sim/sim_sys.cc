#include "sim_sys.h"

#include <linux/tls.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "operations.h"

namespace ringside::sim {

namespace {

constexpr std::uint32_t pipe_bytes_min = 4096;

// Written out so that the simulator needs nothing of the product's own error mapping.
std::unexpected<base::Error> failed(base::ErrorCode code, int sys_errno) {
  return std::unexpected(base::Error{.code = code, .sys_errno = sys_errno});
}

}  // namespace

base::Result<int> SimSys::open_stream_socket(int family) {
  if (family != AF_INET && family != AF_INET6 && family != AF_UNIX) {
    return failed(base::ErrorCode::unsupported, EAFNOSUPPORT);
  }
  if (core_.faults.hit(Fault::socket_no_descriptors)) {
    return failed(base::ErrorCode::no_descriptors, core_.random.coin() ? EMFILE : ENFILE);
  }
  return core_.files.open(std::make_shared<SocketFile>(core_.network, family));
}

int SimSys::set_option(int fd, int level, int name, int value) {
  auto socket = core_.files.socket(fd);
  return socket != nullptr ? socket->set_option(level, name, value) : -EBADF;
}

// Kernel TLS, as far as TCP_ULP and the keys go; these are RecordKeys here.
int SimSys::set_option_bytes(int fd, int level, int name, const void* value, std::size_t bytes) {
  auto socket = core_.files.socket(fd);
  if (socket == nullptr) return -EBADF;
  if (level == SOL_TCP && name == TCP_ULP) {
    // As where the module is missing.
    return core_.faults.hit(Fault::tls_no_module) ? -ENOENT : socket->attach_tls();
  }
  const bool tx = name == TLS_TX;
  RecordKeys keys;
  if (level != SOL_TLS || (!tx && name != TLS_RX) || bytes != sizeof keys) return -EINVAL;
  if (core_.faults.hit(tx ? Fault::tls_refused_sending : Fault::tls_refused_receiving))
    return -EINVAL;
  std::memcpy(&keys, value, sizeof keys);
  return socket->install_keys(tx, keys);
}

int SimSys::reset_on_close(int fd) {
  auto socket = core_.files.socket(fd);
  if (socket == nullptr) return -EBADF;
  socket->reset_on_close();
  return 0;
}

int SimSys::bind(int fd, const net::Address& address) {
  auto socket = core_.files.socket(fd);
  return socket != nullptr ? socket->bind(address) : -EBADF;
}

int SimSys::listen(int fd, int backlog) {
  auto socket = core_.files.socket(fd);
  return socket != nullptr ? socket->listen(backlog) : -EBADF;
}

int SimSys::connect_now(int fd, const net::Address&) {
  return core_.files.socket(fd) != nullptr ? -EOPNOTSUPP : -EBADF;
}

int SimSys::shutdown(int fd, int how) {
  auto socket = core_.files.socket(fd);
  return socket != nullptr ? socket->shutdown(how) : -EBADF;
}

int SimSys::unacknowledged(int fd) {
  auto socket = core_.files.socket(fd);
  if (socket == nullptr) return -EBADF;
  Stream* stream = socket->stream();
  return stream == nullptr ? -EINVAL : static_cast<int>(stream->unread_by_peer());
}

int SimSys::set_nonblocking(int fd, bool on) {
  auto socket = core_.files.socket(fd);
  if (socket == nullptr) return -EBADF;
  socket->set_nonblocking(on);
  return 0;
}

int SimSys::accept_now(int fd, net::Address& peer) {
  auto socket = core_.files.socket(fd);
  if (socket == nullptr) return -EBADF;
  if (!socket->nonblocking()) return -EDEADLK;  // a true one would wait, and the ring with it
  if (const int error = accept_fault(core_, *socket); error != 0) return error;
  int error = 0;
  auto accepted = socket->accept(&error);
  if (accepted == nullptr) return error;
  accepted->peer_address(&peer);
  return core_.files.open(std::move(accepted));
}

base::Result<int> SimSys::duplicate(int fd) {
  auto file = core_.files.get(fd);
  if (file == nullptr) return failed(base::ErrorCode::system, EBADF);
  return core_.files.open(std::move(file));
}

base::Result<net::Address> SimSys::local_address(int fd) {
  auto socket = core_.files.socket(fd);
  if (socket == nullptr) return failed(base::ErrorCode::system, EBADF);
  return socket->local_address();
}

base::Result<net::Address> SimSys::peer_address(int fd) {
  auto socket = core_.files.socket(fd);
  if (socket == nullptr) return failed(base::ErrorCode::system, EBADF);
  net::Address out;
  const int result = socket->peer_address(&out);
  if (result < 0) return failed(base::ErrorCode::closed, -result);
  return out;
}

void SimSys::close(int fd) {
  core_.files.close(fd);
}

std::shared_ptr<PipeFile> SimSys::pipe(int fd) const {
  auto file = core_.files.get(fd);
  if (file == nullptr || file->kind() != File::Kind::pipe) return nullptr;
  return std::static_pointer_cast<PipeFile>(std::move(file));
}

std::size_t SimSys::shorten(std::size_t bytes, Fault fault) {
  if (bytes <= 1 || !core_.faults.hit(fault)) return bytes;
  return core_.random.between(1, bytes - 1);
}

base::Result<net::PipeEnds> SimSys::open_pipe(std::uint32_t bytes) {
  if (core_.faults.hit(Fault::pipe_no_descriptors)) {
    return failed(base::ErrorCode::no_descriptors, core_.random.coin() ? EMFILE : ENFILE);
  }
  // A user who has many pipes gets small ones.
  if (core_.faults.hit(Fault::small_pipe)) {
    bytes = static_cast<std::uint32_t>(core_.random.between(pipe_bytes_min, bytes));
  }
  auto store = std::make_shared<PipeFile::Store>();
  store->capacity = bytes;
  const int read_fd = core_.files.open(std::make_shared<PipeFile>(store));
  const int write_fd = core_.files.open(std::make_shared<PipeFile>(store));
  return net::PipeEnds{.read_fd = read_fd, .write_fd = write_fd, .capacity = bytes};
}

int SimSys::splice_in(int socket, int pipe_write_fd, std::uint32_t bytes) {
  auto from = core_.files.socket(socket);
  auto to = pipe(pipe_write_fd);
  if (from == nullptr || to == nullptr) return -EBADF;
  if (core_.faults.hit(Fault::splice_again)) return -EAGAIN;
  std::size_t room = std::min<std::size_t>(bytes, to->store().room());
  if (room == 0) return -EAGAIN;
  room = shorten(room, Fault::short_read);
  std::string data(room, '\0');
  const int result = from->read(data.data(), room, false);
  if (result > 0) to->store().bytes.append(data, 0, static_cast<std::size_t>(result));
  // tls_sw_splice_read() says of a record that is no data what others say of no such call.
  return result == -EIO && from->tls() != nullptr ? -EINVAL : result;
}

int SimSys::splice_out(int pipe_read_fd, int socket, std::uint32_t bytes) {
  auto from = pipe(pipe_read_fd);
  auto to = core_.files.socket(socket);
  if (from == nullptr || to == nullptr) return -EBADF;
  std::string& data = from->store().bytes;
  if (data.empty()) return 0;
  const std::size_t some = shorten(std::min<std::size_t>(bytes, data.size()), Fault::short_write);
  const int result = to->write(data.data(), some, nullptr);
  if (result > 0) data.erase(0, static_cast<std::size_t>(result));
  return result;
}

int SimSys::remove_stale_unix_socket(const net::Address& address) {
  return core_.network.unlink(address);
}

void SimSys::random_bytes(void* out, std::size_t bytes) {
  auto* at = static_cast<unsigned char*>(out);
  for (std::size_t i = 0; i < bytes;) {
    const std::uint64_t word = random_.next();
    const std::size_t piece = std::min<std::size_t>(sizeof(word), bytes - i);
    std::memcpy(at + i, &word, piece);
    i += piece;
  }
}

}  // namespace ringside::sim
