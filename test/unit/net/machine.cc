#include "machine.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ringside::net::test {

using Operation = Machine::Operation;

base::Result<int> FakeSys::open_stream_socket(int) {
  if (open_errno != 0) return std::unexpected(base::from_errno(open_errno));
  open.insert(next_);
  return next_++;
}

int FakeSys::set_option(int fd, int level, int name, int value) {
  EXPECT_TRUE(open.contains(fd));
  if (level == IPPROTO_TCP && name == TCP_NODELAY && value == 1) without_delay.insert(fd);
  return 0;
}

int FakeSys::set_option_bytes(int fd, int level, int name, const void* value, std::size_t bytes) {
  EXPECT_TRUE(open.contains(fd));
  if (auto at = option_errno.find({level, name}); at != option_errno.end()) return -at->second;
  if (once_only == std::pair(level, name) && option_bytes.contains({fd, level, name}))
    return -EBUSY;
  option_bytes[{fd, level, name}].assign(static_cast<const char*>(value), bytes);
  return 0;
}

int FakeSys::connect_now(int fd, const Address&) {
  EXPECT_TRUE(open.contains(fd));
  return -connect_errno;
}

int FakeSys::reset_on_close(int fd) {
  EXPECT_TRUE(open.contains(fd));
  to_be_reset.insert(fd);
  return 0;
}

int FakeSys::shutdown(int fd, int how) {
  EXPECT_TRUE(open.contains(fd));
  EXPECT_EQ(how, SHUT_WR);
  ++ends[fd];
  return 0;
}

base::Result<PipeEnds> FakeSys::open_pipe(std::uint32_t) {
  if (pipe_errno != 0) return std::unexpected(base::from_errno(pipe_errno));
  ++pipes_opened;
  int read_fd = next_++;
  int write_fd = next_++;
  open.insert({read_fd, write_fd});
  pipes_[read_fd].clear();
  return PipeEnds{.read_fd = read_fd, .write_fd = write_fd, .capacity = pipe_capacity};
}

int FakeSys::splice_in(int socket, int pipe_write_fd, std::uint32_t bytes) {
  if (int error = std::exchange(splice_errno[socket], 0); error != 0) return -error;
  std::string& pipe = pipes_.at(pipe_write_fd - 1);
  EXPECT_TRUE(pipe.empty()) << "then -EAGAIN would not mean that the socket is empty";
  EXPECT_LE(bytes, pipe_capacity);
  if (!readable.contains(socket)) return -EAGAIN;
  std::string& from = readable[socket];
  pipe = from.substr(0, bytes);
  from.erase(0, pipe.size());
  return static_cast<int>(pipe.size());
}

int FakeSys::splice_out(int pipe_read_fd, int socket, std::uint32_t bytes) {
  if (int error = std::exchange(splice_errno[socket], 0); error != 0) return -error;
  std::string& pipe = pipes_.at(pipe_read_fd);
  EXPECT_LE(bytes, pipe.size());
  if (!room.contains(socket)) room[socket] = ~std::size_t{0};
  std::string some = pipe.substr(0, std::min<std::size_t>(bytes, room[socket]));
  if (some.empty()) return -EAGAIN;
  pipe.erase(0, some.size());
  room[socket] -= some.size();
  written[socket] += some;
  return static_cast<int>(some.size());
}

void FakeSys::close(int fd) {
  EXPECT_EQ(open.erase(fd), 1U) << fd << " is not open";
}

Machine::Machine(FakeSys& system, const MachineOptions& options)
    : sys(system),
      ring(open(options)),
      buffers(make_buffers(options)),
      large(make_large(options)),
      opened(make_opened(options)),
      blocks(options.blocks),
      slices(options.slices),
      pipes(sys, options.pipes, 64),
      context{.ring = *ring,
              .buffers = *buffers,
              .slices = slices,
              .sys = sys,
              .pipes = pipes,
              .large = large.get(),
              .opened = opened.get(),
              .blocks = &blocks} {
  kernel.on_enter = [this](const ring::test::FakeKernel::Entered& entered,
                           const ring::test::FakeKernel::Take& take) {
    return submit(entered.to_submit, take);
  };
}

std::unique_ptr<ring::Ring> Machine::open(const MachineOptions& options) {
  constexpr unsigned feature_bundle = 1U << 14;
  kernel.features.bundles = options.bundles;
  kernel.feature_bits |= feature_bundle;
  // Two machines are two kernels, so one cannot wake the other by a message.
  kernel.features.message_ring = false;
  return std::move(*ring::Ring::open(
      kernel, {.entries = 256, .completion_entries = 1024, .owners_max = options.owners_max}));
}

std::unique_ptr<ring::BufferGroup> Machine::make_buffers(const MachineOptions& options) {
  return std::move(
      *ring::BufferGroup::create(*ring, group_id, options.buffers, options.buffer_bytes, false));
}

std::unique_ptr<ring::BufferGroup> Machine::make_large(const MachineOptions& options) {
  if (options.large_buffers == 0) return nullptr;
  return std::move(*ring::BufferGroup::create(*ring, large_group_id, options.large_buffers,
                                              options.large_buffer_bytes, true));
}

std::unique_ptr<ring::BufferGroup> Machine::make_opened(const MachineOptions& options) {
  if (options.opened_buffers == 0) return nullptr;
  return std::move(*ring::BufferGroup::create_private(*ring, options.opened_buffers,
                                                      options.opened_buffer_bytes));
}

// The pieces of a message may be gone once it was submitted; what they point to may not.
int Machine::submit(unsigned count, const ring::test::FakeKernel::Take& take) {
  take(count);
  std::size_t first = kernel.submitted.size() - count;
  for (std::size_t i = first; i < kernel.submitted.size(); ++i) {
    const Operation& operation = kernel.submitted[i];
    if (operation.opcode != IORING_OP_SENDMSG) continue;
    const auto* message = reinterpret_cast<const msghdr*>(operation.addr);
    gathers_[operation.user_data] = {message->msg_iov, message->msg_iov + message->msg_iovlen};
  }
  return static_cast<int>(count);
}

void Machine::settle() {
  for (int quiet = 0; quiet < 2;) {
    std::uint64_t before = ring->counters().submissions;
    unsigned handled = ring->run_once(0);
    quiet = handled == 0 && ring->counters().submissions == before ? quiet + 1 : 0;
  }
}

void Machine::pass_ms(std::uint64_t ms) {
  kernel.monotonic_now_ns += ms * 1'000'000;
  settle();
}

bool Machine::waits(std::uint8_t opcode, int fd) const {
  return std::ranges::any_of(kernel.submitted, [&](const Operation& operation) {
    return operation.opcode == opcode && operation.fd == fd;
  });
}

Operation Machine::look(std::uint8_t opcode, int fd) const {
  for (const Operation& operation : kernel.submitted) {
    if (operation.opcode == opcode && operation.fd == fd) return operation;
  }
  ADD_FAILURE() << "no operation " << int{opcode} << " on " << fd;
  return {};
}

bool Machine::cancelled(const Operation& target) const {
  return std::ranges::any_of(kernel.submitted, [&](const Operation& operation) {
    return operation.opcode == IORING_OP_ASYNC_CANCEL && operation.addr == target.user_data;
  });
}

Operation Machine::cancel_of(const Operation& target) const {
  for (const Operation& operation : kernel.submitted) {
    if (operation.opcode == IORING_OP_ASYNC_CANCEL && operation.addr == target.user_data)
      return operation;
  }
  ADD_FAILURE() << "it was not cancelled";
  return {};
}

bool Machine::forget(const Operation& operation) {
  auto same = [&](const Operation& other) { return other.user_data == operation.user_data; };
  auto found = std::ranges::find_if(kernel.submitted, same);
  if (found == kernel.submitted.end()) {
    ADD_FAILURE() << "it is not in flight";
    return false;
  }
  kernel.submitted.erase(found);
  return true;
}

void Machine::complete(const Operation& operation, int result, unsigned flags) {
  if ((flags & IORING_CQE_F_MORE) == 0 && !forget(operation)) return;
  kernel.complete(operation.user_data, result, flags);
}

ring::Lease Machine::lease(std::string_view bytes) {
  const io_uring_buf* buffer = kernel.pick_buffer(group_id);
  if (buffer == nullptr) {
    ADD_FAILURE() << "no buffer is left";
    return {};
  }
  std::memcpy(reinterpret_cast<void*>(buffer->addr), bytes.data(), bytes.size());
  unsigned flags = IORING_CQE_F_BUFFER | unsigned{buffer->bid} << IORING_CQE_BUFFER_SHIFT;
  return buffers->take({.result = static_cast<int>(bytes.size()), .flags = flags});
}

void Machine::put(int fd, std::string_view bytes, bool last) {
  bool multishot = (look(IORING_OP_RECV, fd).ioprio & IORING_RECV_MULTISHOT) != 0;
  put_with(fd, bytes, multishot && !last ? IORING_CQE_F_MORE : 0);
}

void Machine::put_of_more(int fd, std::string_view bytes) {
  put_with(fd, bytes, IORING_CQE_F_SOCK_NONEMPTY);
}

void Machine::put_with(int fd, std::string_view bytes, unsigned flags) {
  Operation receive = look(IORING_OP_RECV, fd);
  const ring::BufferGroup& group = receive.buf_index == large_group_id ? *large : *buffers;
  bool first = true;
  for (std::size_t at = 0; at < bytes.size(); at += group.buffer_bytes()) {
    const io_uring_buf* buffer = kernel.pick_buffer(group.id());
    ASSERT_NE(buffer, nullptr) << "no buffer is left";
    std::string_view piece = bytes.substr(at, group.buffer_bytes());
    std::memcpy(reinterpret_cast<void*>(buffer->addr), piece.data(), piece.size());
    if (first) flags |= IORING_CQE_F_BUFFER | unsigned{buffer->bid} << IORING_CQE_BUFFER_SHIFT;
    first = false;
  }
  complete(receive, static_cast<int>(bytes.size()), flags);
}

std::string Machine::text(const Operation& send) const {
  if (send.opcode != IORING_OP_SENDMSG) return {reinterpret_cast<const char*>(send.addr), send.len};
  std::string out;
  for (const iovec& piece : gathers_.at(send.user_data))
    out.append(static_cast<const char*>(piece.iov_base), piece.iov_len);
  return out;
}

Operation Machine::look_send(int fd) const {
  return look(waits(IORING_OP_SENDMSG, fd) ? IORING_OP_SENDMSG : IORING_OP_SEND, fd);
}

std::string Machine::take_send(int fd, std::size_t most) {
  if (!sending(fd)) {
    ADD_FAILURE() << "nothing is being sent on " << fd;
    return {};
  }
  Operation send = look_send(fd);
  EXPECT_NE(send.op_flags & MSG_NOSIGNAL, 0U);
  std::string out = text(send).substr(0, most);
  complete(send, static_cast<int>(out.size()));
  return out;
}

std::string Machine::leave_all(int fd) {
  std::string out;
  settle();
  while (sending(fd))
    out += leave(fd);
  return out;
}

void Machine::finish_close(int fd) {
  Operation close = look(IORING_OP_CLOSE, fd);
  sys.close(fd);
  finish(close, 0);
}

bool Machine::tidy_one() {
  for (const Operation& operation : kernel.submitted) {
    if (operation.opcode == IORING_OP_CLOSE) {
      finish_close(operation.fd);
      return true;
    }
    if (operation.opcode == IORING_OP_SEND || operation.opcode == IORING_OP_SENDMSG) {
      if ((operation.op_flags & MSG_DONTWAIT) == 0) continue;
      const Operation send = operation;
      finish(send, static_cast<int>(text(send).size()));
      return true;
    }
    if (operation.opcode != IORING_OP_ASYNC_CANCEL) continue;
    Operation cancel = operation;
    auto target = std::ranges::find_if(
        kernel.submitted, [&](const Operation& other) { return other.user_data == cancel.addr; });
    bool found = target != kernel.submitted.end();
    if (found) complete(Operation(*target), -ECANCELED);
    finish(cancel, found ? 0 : -ENOENT);
    return true;
  }
  return false;
}

void Machine::tidy() {
  settle();
  while (tidy_one()) {
  }
}

}  // namespace ringside::net::test
