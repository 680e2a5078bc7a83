// What can be submitted: each operation's entry, filled in.
#include <algorithm>
#include <numeric>

#include "ringside/ring/ring.h"

#include "batch_wait.h"
#include "kernel_numbers.h"

namespace ringside::ring {

namespace {

constexpr std::size_t send_bytes_max = std::size_t{1} << 30;  // an entry's length is 32 bits

void prepare_receive(io_uring_sqe* sqe, int fd, std::uint16_t group_id) {
  // Length 0: as much as the buffer that the kernel picks can hold.
  ::io_uring_prep_recv(sqe, fd, nullptr, 0, 0);
  sqe->flags |= IOSQE_BUFFER_SELECT;
  sqe->buf_group = group_id;
}

std::size_t bytes_of(const msghdr& message) {
  return std::accumulate(message.msg_iov, message.msg_iov + message.msg_iovlen, std::size_t{0},
                         [](std::size_t sum, const iovec& piece) { return sum + piece.iov_len; });
}

}  // namespace

void Ring::accept_multishot(Completer& owner, std::uint8_t kind, int fd) {
  // No address: on a multishot it would be overwritten by the next connection.
  ::io_uring_prep_multishot_accept(take_sqe(owner, kind), fd, nullptr, nullptr, SOCK_CLOEXEC);
}

void Ring::receive_multishot(Completer& owner, std::uint8_t kind, int fd, BufferGroup& group) {
  io_uring_sqe* sqe = take_sqe(owner, kind);
  prepare_receive(sqe, fd, group.id());
  sqe->ioprio |= IORING_RECV_MULTISHOT;
  slots_[owner.slot_].group = &group;
}

void Ring::receive(Completer& owner, std::uint8_t kind, int fd, BufferGroup& group) {
  prepare_receive(take_sqe(owner, kind), fd, group.id());
  slots_[owner.slot_].group = &group;
}

void Ring::receive_bundle(Completer& owner, std::uint8_t kind, int fd, BufferGroup& group,
                          std::uint32_t buffers_max, bool poll_first) {
  io_uring_sqe* sqe = take_sqe(owner, kind);
  prepare_receive(sqe, fd, group.id());
  if (poll_first) sqe->ioprio |= IORING_RECVSEND_POLL_FIRST;
  slots_[owner.slot_].group = &group;
  if (!features_.bundles || buffers_max <= 1) return;
  sqe->ioprio |= kernel::receive_send_bundle;
  // When everything that it asked for came, the kernel goes on with whatever else is there, past
  // any length; but not when a last buffer did not fit whole (try_bundles sees to that).
  sqe->len = buffers_max * group.buffer_bytes() + 1;
}

void Ring::receive_exactly(Completer& owner, std::uint8_t kind, int fd, BufferGroup& group,
                           std::uint32_t bytes) {
  io_uring_sqe* sqe = take_sqe(owner, kind);
  prepare_receive(sqe, fd, group.id());
  slots_[owner.slot_].group = &group;
  sqe->len = std::min(bytes, group.buffer_bytes());
}

void Ring::receive_message(Completer& owner, std::uint8_t kind, int fd, msghdr* message) {
  ::io_uring_prep_recvmsg(take_sqe(owner, kind), fd, message, 0);
}

void Ring::send(Completer& owner, std::uint8_t kind, int fd, const void* data, std::size_t bytes,
                int flags) {
  batch_wait_->sending(bytes);
  ::io_uring_prep_send(take_sqe(owner, kind), fd, data, std::min(bytes, send_bytes_max), flags);
}

void Ring::send_message(Completer& owner, std::uint8_t kind, int fd, const msghdr* message,
                        int flags) {
  batch_wait_->sending(bytes_of(*message));
  io_uring_sqe* sqe = take_sqe(owner, kind);
  ::io_uring_prep_sendmsg(sqe, fd, message, static_cast<unsigned>(flags));
  // Taking the entry may have submitted and so freed all gathers, this message's too: keep it.
  const void* at = message;
  if (at >= static_cast<const void*>(gathers_.data()) &&
      at < static_cast<const void*>(gathers_.data() + gathers_.size())) {
    auto index = static_cast<std::size_t>(reinterpret_cast<const Gather*>(at) - gathers_.data());
    gathers_used_ = std::max(gathers_used_, index + 1);
  }
}

void Ring::send_message_and_close(Completer& owner, std::uint8_t send_kind, std::uint8_t close_kind,
                                  int fd, const msghdr* message, int flags) {
  // A link does not outlast a submission.
  if (::io_uring_sq_space_left(&ring_) < 2) enter(0, 0, nullptr);
  // WAITALL makes a short send a failure, so that the close does not follow it; with DONTWAIT it
  // does not wait for the rest, as nobody would see how far it is. MORE holds the last packet back
  // until the close adds its FIN.
  send_message(owner, send_kind, fd, message, flags | MSG_WAITALL | MSG_DONTWAIT | MSG_MORE);
  ring_.sq.sqes[(ring_.sq.sqe_tail - 1) & ring_.sq.ring_mask].flags |= IOSQE_IO_LINK;
  close(owner, close_kind, fd);
  batch_wait_->sending(0);  // it is as prompt as the send
}

void Ring::send_zero_copy(Completer& owner, std::uint8_t kind, int fd, const void* data,
                          std::size_t bytes, int flags, int registered_index) {
  io_uring_sqe* sqe = take_sqe(owner, kind);
  unsigned report = features_.zero_copy_report ? kernel::send_zero_copy_report : 0;
  bytes = std::min(bytes, send_bytes_max);
  if (registered_index < 0) {
    ::io_uring_prep_send_zc(sqe, fd, data, bytes, flags, report);
  } else {
    ::io_uring_prep_send_zc_fixed(sqe, fd, data, bytes, flags, report,
                                  static_cast<unsigned>(registered_index));
  }
}

void Ring::connect(Completer& owner, std::uint8_t kind, int fd, const sockaddr* address,
                   socklen_t length) {
  ::io_uring_prep_connect(take_sqe(owner, kind), fd, address, length);
}

void Ring::close(Completer& owner, std::uint8_t kind, int fd) {
  ::io_uring_prep_close(take_sqe(owner, kind), fd);
}

void Ring::nop(Completer& owner, std::uint8_t kind) {
  ::io_uring_prep_nop(take_sqe(owner, kind));
}

void Ring::poll(Completer& owner, std::uint8_t kind, int fd, unsigned events) {
  ::io_uring_prep_poll_add(take_sqe(owner, kind), fd, events);
}

void Ring::read(Completer& owner, std::uint8_t kind, int fd, void* data, std::size_t bytes) {
  // Offset -1: the file's own position, which is what pipes, events and streams have.
  ::io_uring_prep_read(take_sqe(owner, kind), fd, data,
                       static_cast<unsigned>(std::min(bytes, send_bytes_max)), ~std::uint64_t{0});
}

void Ring::write(Completer& owner, std::uint8_t kind, int fd, const void* data, std::size_t bytes,
                 std::uint64_t offset) {
  ::io_uring_prep_write(take_sqe(owner, kind), fd, data,
                        static_cast<unsigned>(std::min(bytes, send_bytes_max)), offset);
}

void Ring::cancel(Completer& owner, std::uint8_t target, std::uint8_t kind) {
  ::io_uring_prep_cancel64(take_sqe(owner, kind), user_data(owner, target), 0);
}

void Ring::message(Completer& owner, std::uint8_t kind, int ring_descriptor,
                   std::uint64_t target_user_data, std::uint32_t value) {
  ::io_uring_prep_msg_ring(take_sqe(owner, kind), ring_descriptor, value,
                           target_user_data | unsolicited, 0);
}

}  // namespace ringside::ring
