#include "operations.h"

#include <linux/tls.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "sim_ring.h"

namespace ringside::sim {

namespace {

// From kernel headers newer than those of Debian 12.
constexpr unsigned send_zc_report_usage = 1U << 3;
constexpr std::int32_t notification_copied = static_cast<std::int32_t>(1U << 31);

template <typename T>
T* pointer(std::uint64_t value) {
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(value));
}

SocketFile* socket_of(const Op& op) {
  const bool is = op.file != nullptr && op.file->kind() == File::Kind::socket;
  return is ? static_cast<SocketFile*>(op.file.get()) : nullptr;
}

Faults& faults(SimRing& ring) {
  return ring.core().faults;
}

bool ended(const Op& op) {
  return op.ending != Op::Ending::none;
}

// Limits a transfer to a random part.
std::size_t shorten(SimRing& ring, std::size_t bytes, Fault fault) {
  if (bytes <= 1 || !faults(ring).hit(fault)) return bytes;
  return ring.core().random.between(1, bytes - 1);
}

// --- receiving ---------------------------------------------------------------------------------

struct Target {
  char* data = nullptr;
  std::size_t room = 0;
  bool selected = false;
  std::uint16_t id = 0;
  std::size_t whole = 0;  // size of the selected buffer
};

// Chooses where a receive goes. False: no buffer.
bool choose(SimRing& ring, const Op& op, Target* out) {
  if (!op.selects_buffer()) {
    if (op.sqe.opcode == IORING_OP_RECVMSG) {
      const iovec& piece = op.pieces.front();  // one is all that anybody asks for
      *out = {static_cast<char*>(piece.iov_base), piece.iov_len, false, 0, 0};
      return true;
    }
    *out = {pointer<char>(op.sqe.addr) + op.done_bytes, op.sqe.len - op.done_bytes, false, 0, 0};
    return true;
  }
  BufferGroups::Buffer buffer;
  if (!ring.buffers().peek(op.sqe.buf_group, &buffer)) return false;
  const std::size_t room =
      op.sqe.len != 0 ? std::min<std::size_t>(op.sqe.len, buffer.bytes) : buffer.bytes;
  *out = {buffer.data, room, true, buffer.id, buffer.bytes};
  return true;
}

// An error that the network or the kernel has in store, or 0.
int receive_error(SimRing& ring, SocketFile& socket) {
  Stream* stream = socket.stream();
  if (stream == nullptr) return 0;
  if (faults(ring).hit(Fault::receive_no_memory)) return -ENOMEM;
  if (faults(ring).hit(Fault::receive_reset)) {
    stream->cut();
    stream->take_error();
    return -ECONNRESET;
  }
  return 0;
}

std::uint32_t receive_flags(const SocketFile& socket, const Target& target, int result) {
  std::uint32_t flags = 0;
  if (target.selected && result > 0) {
    flags = IORING_CQE_F_BUFFER | static_cast<std::uint32_t>(target.id) << IORING_CQE_BUFFER_SHIFT;
  }
  if (result > 0 && const_cast<SocketFile&>(socket).has_bytes()) {
    flags |= IORING_CQE_F_SOCK_NONEMPTY;
  }
  return flags;
}

// Goes on with the buffers behind the first one, which is full, while there is something to read.
// A buffer that the length would cut is left out; a length of whole buffers does not hold it.
int fill_bundle(SimRing& ring, const Op& op, SocketFile& socket, std::size_t total) {
  for (;;) {
    BufferGroups::Buffer next;
    if (!ring.buffers().peek(op.sqe.buf_group, &next)) break;
    const bool limited = op.sqe.len % next.bytes != 0;
    if (limited && total + next.bytes > op.sqe.len) break;
    // An end or an error behind the data is for the next receive to tell.
    if (!socket.has_bytes()) break;
    const std::size_t room = shorten(ring, next.bytes, Fault::short_read);
    BufferGroups::unpoison(next.data, room);
    const int result = socket.read(next.data, room, false);
    ring.buffers().take(op.sqe.buf_group, static_cast<std::size_t>(result));
    total += static_cast<std::size_t>(result);
    if (static_cast<std::size_t>(result) < next.bytes) break;
  }
  return static_cast<int>(total);
}

// With room for a control message: a record of whatever type, which is told.
int receive_record(const Op& op, SocketFile& socket, const Target& target) {
  auto* message = pointer<msghdr>(op.sqe.addr);
  RecordType type{};
  const int result = socket.tls()->read_any(*socket.stream(), target.data, target.room, &type);
  if (result <= 0) return result;
  cmsghdr* header = CMSG_FIRSTHDR(message);
  header->cmsg_level = SOL_TLS;
  header->cmsg_type = TLS_GET_RECORD_TYPE;
  header->cmsg_len = CMSG_LEN(1);
  *CMSG_DATA(header) = static_cast<unsigned char>(type);
  return result;
}

int receive_into(SimRing& ring, Op& op, SocketFile& socket, const Target& target) {
  if (op.sqe.opcode == IORING_OP_RECVMSG && socket.tls() != nullptr && socket.tls()->opens())
    return receive_record(op, socket, target);
  // Whether there is anything to hear at all; errors are injected only then.
  char probe;
  const int peeked = socket.read(&probe, 1, true);
  if (peeked == -EAGAIN) return -EAGAIN;
  if (peeked < 0) return peeked;
  if (const int error = receive_error(ring, socket); error != 0) return error;
  if (peeked == 0) return 0;
  const std::size_t room = shorten(ring, target.room, Fault::short_read);
  if (target.selected) BufferGroups::unpoison(target.data, room);
  const bool peek = (op.sqe.msg_flags & MSG_PEEK) != 0;
  const int result = socket.read(target.data, room, peek);
  if (target.selected) ring.buffers().take(op.sqe.buf_group, static_cast<std::size_t>(result));
  if (op.bundle() && result > 0 && static_cast<std::size_t>(result) == target.whole) {
    return fill_bundle(ring, op, socket, static_cast<std::size_t>(result));
  }
  return result;
}

enum class Next : std::uint8_t { again, over };

Next receive_result(SimRing& ring, Op& op, SocketFile& socket, const Target& target, int result) {
  if (result > 0 && (op.sqe.msg_flags & MSG_WAITALL) != 0 && !op.multishot()) {
    op.done_bytes += static_cast<std::size_t>(result);
    if (!op.selects_buffer() && op.done_bytes < op.sqe.len) return Next::again;
    result = static_cast<int>(op.done_bytes);
  } else if (result <= 0 && op.done_bytes != 0) {
    result = static_cast<int>(op.done_bytes);
  }
  const std::uint32_t flags = receive_flags(socket, target, result);
  const bool goes_on = op.multishot() && result > 0 && !faults(ring).hit(Fault::multishot_ended);
  if (!goes_on) {
    ring.complete(op, result, flags);
    return Next::over;
  }
  ring.post(op.sqe.user_data, result, flags | IORING_CQE_F_MORE);
  return Next::again;
}

void receive(SimRing& ring, Op& op) {
  SocketFile* socket = socket_of(op);
  if (socket == nullptr) return ring.complete(op, op.file == nullptr ? -EBADF : -ENOTSOCK);
  // Without a look for a buffer, so that a lack of them is no matter before there is data.
  if (op.poll_first() && !std::exchange(op.polled, true) &&
      (socket->poll_events() & (POLLIN | POLLERR | POLLHUP)) == 0) {
    return ring.wait_for(op);
  }
  bool first = true;
  for (;;) {
    // Newer kernels know that the socket is empty and do not look for a buffer then; older ones
    // find none and end the operation.
    const bool known_empty = !first && (socket->poll_events() & POLLIN) == 0;
    first = false;
    Target target;
    const bool chosen = choose(ring, op, &target);
    if (known_empty && (chosen || !faults(ring).hit(Fault::early_no_buffers))) {
      return ring.wait_for(op);
    }
    const bool lost = op.selects_buffer() && faults(ring).hit(Fault::lost_buffers);
    if (lost || !chosen) return ring.complete(op, -ENOBUFS);
    const int result = receive_into(ring, op, *socket, target);
    if (result == -EAGAIN) {
      if ((op.sqe.msg_flags & MSG_DONTWAIT) != 0) return ring.complete(op, -EAGAIN);
      return ring.wait_for(op);
    }
    if (receive_result(ring, op, *socket, target, result) == Next::over) return;
  }
}

// --- sending -----------------------------------------------------------------------------------

int send_error(SimRing& ring, SocketFile& socket) {
  if (socket.stream() == nullptr) return 0;
  if (faults(ring).hit(Fault::send_no_buffers))
    return ring.core().random.coin() ? -ENOBUFS : -ENOMEM;
  if (faults(ring).hit(Fault::send_broken_pipe)) {
    // As when the reset had come just before: ECONNRESET, or EPIPE after the peer's FIN.
    socket.stream()->cut();
    return -socket.stream()->take_error();
  }
  return 0;
}

std::size_t total(const Op& op) {
  std::size_t bytes = 0;
  for (const iovec& piece : op.pieces)
    bytes += piece.iov_len;
  return bytes;
}

// Writes from `op.done_bytes` on, at most `limit`. Bytes taken, or an error when there are none.
int write_pieces(Op& op, SocketFile& socket, std::size_t limit) {
  std::size_t skip = op.done_bytes;
  std::size_t taken = 0;
  for (const iovec& piece : op.pieces) {
    if (piece.iov_len <= skip) {
      skip -= piece.iov_len;
      continue;
    }
    if (op.record_type && socket.tls() != nullptr && socket.tls()->sends()) {
      return socket.tls()->write(*socket.stream(), *op.record_type,
                                 static_cast<const char*>(piece.iov_base), piece.iov_len);
    }
    const std::size_t want = std::min(piece.iov_len - skip, limit - taken);
    const int result = socket.write(static_cast<const char*>(piece.iov_base) + skip, want, op.hold);
    if (result < 0) return taken != 0 ? static_cast<int>(taken) : result;
    taken += static_cast<std::size_t>(result);
    if (static_cast<std::size_t>(result) < piece.iov_len - skip || taken == limit) break;
    skip = 0;
  }
  return static_cast<int>(taken);
}

void send(SimRing& ring, Op& op) {
  SocketFile* socket = socket_of(op);
  if (socket == nullptr) return ring.complete(op, op.file == nullptr ? -EBADF : -ENOTSOCK);
  if ((socket->poll_events() & POLLOUT) != 0) {
    if (const int error = send_error(ring, *socket); error != 0) return ring.complete(op, error);
  }
  if (op.hold != nullptr && socket->tls() != nullptr && socket->tls()->sends()) {
    op.hold = nullptr;
    return ring.complete(op, -EOPNOTSUPP);
  }
  const std::size_t all = total(op);
  for (;;) {
    // A control record leaves whole.
    const std::size_t limit =
        op.record_type ? all : shorten(ring, all - op.done_bytes, Fault::short_write);
    int result = write_pieces(op, *socket, limit);
    if (result == -EAGAIN) {
      if ((op.sqe.msg_flags & MSG_DONTWAIT) != 0) {
        return ring.complete(op, op.done_bytes != 0 ? static_cast<int>(op.done_bytes) : -EAGAIN);
      }
      return ring.wait_for(op);
    }
    if (result > 0) op.done_bytes += static_cast<std::size_t>(result);
    const bool whole = (op.sqe.msg_flags & MSG_WAITALL) != 0;
    if (result > 0 && whole && op.done_bytes < all) continue;
    if (op.done_bytes != 0) result = static_cast<int>(op.done_bytes);
    return ring.complete(op, result);
  }
}

// --- the others --------------------------------------------------------------------------------

void accept(SimRing& ring, Op& op) {
  SocketFile* socket = socket_of(op);
  if (socket == nullptr) return ring.complete(op, op.file == nullptr ? -EBADF : -ENOTSOCK);
  for (;;) {
    if (const int error = accept_fault(ring.core(), *socket); error != 0)
      return ring.complete(op, error);
    int error = 0;
    auto accepted = socket->accept(&error);
    if (error == -EAGAIN) return ring.wait_for(op);
    if (error < 0) return ring.complete(op, error);
    const int fd = ring.core().files.open(std::move(accepted));
    const std::uint32_t flags =
        (socket->poll_events() & POLLIN) != 0 ? std::uint32_t{IORING_CQE_F_SOCK_NONEMPTY} : 0;
    if (!op.multishot() || ended(op) || faults(ring).hit(Fault::multishot_ended)) {
      return ring.complete(op, fd, flags);
    }
    ring.post(op.sqe.user_data, fd, flags | IORING_CQE_F_MORE);
  }
}

void connect(SimRing& ring, Op& op) {
  SocketFile* socket = socket_of(op);
  if (socket == nullptr) return ring.complete(op, op.file == nullptr ? -EBADF : -ENOTSOCK);
  const int result = socket->connect(op.address);
  if (result == -EINPROGRESS) return ring.wait_for(op);
  ring.complete(op, result);
}

void close(SimRing& ring, Op& op) {
  ring.complete(op, ring.core().files.close(op.sqe.fd) ? 0 : -EBADF);
}

void open_socket(SimRing& ring, Op& op) {
  if (faults(ring).hit(Fault::socket_no_descriptors)) return ring.complete(op, -EMFILE);
  Core& core = ring.core();
  ring.complete(op, core.files.open(std::make_shared<SocketFile>(core.network, op.sqe.fd)));
}

void poll(SimRing& ring, Op& op) {
  if (op.file == nullptr) return ring.complete(op, -EBADF);
  const unsigned wanted = op.sqe.poll32_events | POLLERR | POLLHUP;
  const unsigned events = op.file->poll_events() & wanted;
  if (events != 0) return ring.complete(op, static_cast<std::int32_t>(events));
  if (SocketFile* socket = socket_of(op); socket != nullptr && socket->stream() != nullptr) {
    socket->stream()->want_room();
  }
  ring.wait_for(op);
}

void read(SimRing& ring, Op& op) {
  if (op.file == nullptr) return ring.complete(op, -EBADF);
  if (op.file->kind() == File::Kind::socket) return receive(ring, op);
  if (op.file->kind() != File::Kind::event || op.sqe.len < 8) return ring.complete(op, -EINVAL);
  std::uint64_t count = 0;
  const int result = static_cast<EventFile&>(*op.file).take(&count);
  if (result == -EAGAIN) return ring.wait_for(op);
  std::memcpy(pointer<void>(op.sqe.addr), &count, sizeof(count));
  ring.complete(op, result);
}

void write(SimRing& ring, Op& op) {
  if (op.file == nullptr) return ring.complete(op, -EBADF);
  if (op.file->kind() == File::Kind::socket) return send(ring, op);
  if (op.file->kind() != File::Kind::event || op.sqe.len != 8) return ring.complete(op, -EINVAL);
  static_cast<EventFile&>(*op.file).signal();
  ring.complete(op, 8);
}

void message(SimRing& ring, Op& op) {
  if (op.file == nullptr) return ring.complete(op, -EBADF);
  if (op.file->kind() != File::Kind::ring) return ring.complete(op, -EBADFD);
  auto target = static_cast<RingFile&>(*op.file).ring();
  if (target == nullptr) return ring.complete(op, -EBADFD);
  target->post_later(op.sqe.off, static_cast<std::int32_t>(op.sqe.len), 0);
  ring.complete(op, 0);
}

// --- submission --------------------------------------------------------------------------------

bool needs_file(std::uint8_t opcode) {
  switch (opcode) {
    case IORING_OP_NOP:
    case IORING_OP_ASYNC_CANCEL:
    case IORING_OP_CLOSE:
    case IORING_OP_SOCKET:
      return false;
    default:
      return true;
  }
}

int prepare_zero_copy(SimRing& ring, Op& op) {
  const unsigned flags = op.sqe.ioprio;
  if ((flags & IORING_RECVSEND_FIXED_BUF) != 0 &&
      !ring.buffers().covers(op.sqe.buf_index, pointer<void>(op.sqe.addr), op.sqe.len)) {
    return -EFAULT;
  }
  std::int32_t report = 0;
  if ((flags & send_zc_report_usage) != 0 && ring.core().random.coin())
    report = notification_copied;
  op.hold = std::shared_ptr<void>(
      &ring, [weak = ring.weak_from_this(), user_data = op.sqe.user_data, report](void*) {
        if (auto alive = weak.lock()) alive->notify(user_data, report);
      });
  return 0;
}

int prepare_connect(Op& op) {
  const auto length = static_cast<socklen_t>(op.sqe.off);
  if (length < sizeof(sa_family_t) || length > sizeof(sockaddr_storage)) return -EINVAL;
  std::memcpy(op.address.raw(), pointer<void>(op.sqe.addr), length);
  op.address.set_length(length);
  return 0;
}

void capture_message(Op& op) {
  const auto* message = pointer<const msghdr>(op.sqe.addr);
  op.pieces.assign(message->msg_iov, message->msg_iov + message->msg_iovlen);
  const cmsghdr* header = CMSG_FIRSTHDR(message);
  if (op.sqe.opcode != IORING_OP_SENDMSG || header == nullptr) return;
  if (header->cmsg_level == SOL_TLS && header->cmsg_type == TLS_SET_RECORD_TYPE)
    op.record_type = static_cast<RecordType>(*CMSG_DATA(header));
}

}  // namespace

int accept_fault(Core& core, SocketFile& listener) {
  if (!listener.listening() || (listener.poll_events() & POLLIN) == 0) return 0;
  if (core.faults.hit(Fault::accept_no_descriptors)) return core.random.coin() ? -EMFILE : -ENFILE;
  if (core.faults.hit(Fault::accept_aborted)) {
    int error = 0;
    if (auto lost = listener.accept(&error)) lost->reset_on_close();
    return -ECONNABORTED;
  }
  return 0;
}

int prepare(SimRing& ring, Op& op) {
  constexpr unsigned known =
      IOSQE_ASYNC | IOSQE_BUFFER_SELECT | IOSQE_CQE_SKIP_SUCCESS | IOSQE_IO_LINK;
  if ((op.sqe.flags & ~known) != 0) return -EINVAL;
  if (needs_file(op.sqe.opcode)) op.file = ring.core().files.get(op.sqe.fd);
  switch (op.sqe.opcode) {
    case IORING_OP_SEND:
    case IORING_OP_WRITE:
      op.pieces.push_back({pointer<void>(op.sqe.addr), op.sqe.len});
      return 0;
    case IORING_OP_SEND_ZC:
      op.pieces.push_back({pointer<void>(op.sqe.addr), op.sqe.len});
      return prepare_zero_copy(ring, op);
    case IORING_OP_SENDMSG:
    case IORING_OP_RECVMSG:
      capture_message(op);
      return 0;
    case IORING_OP_CONNECT:
      return prepare_connect(op);
    case IORING_OP_RECV:
      // A multishot receive needs buffers to choose from, and no length of its own.
      if (op.multishot() && (!op.selects_buffer() || (op.sqe.msg_flags & MSG_WAITALL) != 0)) {
        return -EINVAL;
      }
      return 0;
    case IORING_OP_POLL_ADD:
      return op.sqe.len == 0 ? 0 : -EINVAL;
    case IORING_OP_NOP:
    case IORING_OP_ACCEPT:
    case IORING_OP_ASYNC_CANCEL:
    case IORING_OP_CLOSE:
    case IORING_OP_READ:
    case IORING_OP_MSG_RING:
    case IORING_OP_SOCKET:
      return 0;
    default:
      return -EINVAL;
  }
}

void attempt(SimRing& ring, Op& op) {
  switch (op.sqe.opcode) {
    case IORING_OP_RECV:
    case IORING_OP_RECVMSG:
      return receive(ring, op);
    case IORING_OP_SEND:
    case IORING_OP_SEND_ZC:
    case IORING_OP_SENDMSG:
      return send(ring, op);
    case IORING_OP_ACCEPT:
      return accept(ring, op);
    case IORING_OP_CONNECT:
      return connect(ring, op);
    case IORING_OP_CLOSE:
      return close(ring, op);
    case IORING_OP_POLL_ADD:
      return poll(ring, op);
    case IORING_OP_READ:
      return read(ring, op);
    case IORING_OP_WRITE:
      return write(ring, op);
    case IORING_OP_MSG_RING:
      return message(ring, op);
    case IORING_OP_SOCKET:
      return open_socket(ring, op);
    case IORING_OP_ASYNC_CANCEL:
      return ring.complete(op, ring.cancel(op));
    default:
      return ring.complete(op, 0);
  }
}

}  // namespace ringside::sim
