#include "try_features.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <thread>

#include "kernel_numbers.h"

namespace ringside::ring {

namespace {

// What all trials share. A lack of memory or descriptors is noted, so that it is not taken for a
// lack of features. (The kernel frees a ring's memory some time after it was closed, so having
// enough for one trial says nothing about the next.)
struct Trial {
  KernelPort& kernel;
  unsigned setup_flags;
  int error = 0;

  void note(int result) {
    if (result == -ENOMEM || result == -EMFILE || result == -ENFILE) error = -result;
  }
};

// A throw-away ring.
class TryRing {
 public:
  explicit TryRing(Trial& trial) : trial_(trial), kernel_(trial.kernel) {
    io_uring_params params{};
    params.flags = trial.setup_flags;
    params.cq_entries = 16;
    result_ = kernel_.setup(8, params, ring_);
    trial.note(result_);
  }
  ~TryRing() {
    if (ready()) kernel_.teardown(ring_);
  }
  TryRing(const TryRing&) = delete;
  TryRing& operator=(const TryRing&) = delete;

  bool ready() const { return result_ == 0; }
  Trial& trial() { return trial_; }
  int descriptor() const { return ring_.ring_fd; }
  io_uring_sqe* sqe() { return ::io_uring_get_sqe(&ring_); }
  int register_resource(unsigned opcode, void* arg, unsigned count) {
    return kernel_.register_resource(ring_, opcode, arg, count);
  }

  // Submits what was prepared. True when a completion is there within `wait_ms`; the next one then.
  bool next(io_uring_cqe& out, unsigned wait_ms) {
    if (pop(out)) return true;
    __kernel_timespec limit{.tv_sec = 0, .tv_nsec = static_cast<long long>(wait_ms) * 1'000'000};
    unsigned count = ring_.sq.sqe_tail - io_uring_smp_load_acquire(ring_.sq.khead);
    io_uring_smp_store_release(ring_.sq.ktail, ring_.sq.sqe_tail);
    kernel_.enter(ring_, count, wait_ms == 0 ? 0 : 1, IORING_ENTER_GETEVENTS, &limit);
    return pop(out);
  }

 private:
  bool pop(io_uring_cqe& out) {
    unsigned head = *ring_.cq.khead;
    if (head == io_uring_smp_load_acquire(ring_.cq.ktail)) return false;
    const io_uring_cqe& cqe = ring_.cq.cqes[head & ring_.cq.ring_mask];
    out.user_data = cqe.user_data;
    out.res = cqe.res;
    out.flags = cqe.flags;
    io_uring_smp_store_release(ring_.cq.khead, head + 1);
    return true;
  }

  Trial& trial_;
  KernelPort& kernel_;
  io_uring ring_{};
  int result_ = 0;
};

// Eight buffers of 16 bytes, registered as group 0.
class TryBuffers {
 public:
  static constexpr unsigned count = 8;
  static constexpr unsigned bytes = 16;

  TryBuffers(TryRing& ring, std::uint16_t flags) : ring_(ring) {
    void* at =
        ::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
      ring_.trial().note(-ENOMEM);
      return;
    }
    page_ = static_cast<char*>(at);
    io_uring_buf_reg request{};
    request.ring_addr = reinterpret_cast<std::uint64_t>(page_);
    request.ring_entries = count;
    request.pad = flags;
    result_ = ring_.register_resource(IORING_REGISTER_PBUF_RING, &request, 1);
    ring_.trial().note(result_);
    if (ready()) publish();
  }
  ~TryBuffers() {
    io_uring_buf_reg request{};
    if (ready()) ring_.register_resource(IORING_UNREGISTER_PBUF_RING, &request, 1);
    if (page_ != nullptr) ::munmap(page_, page_bytes);
  }
  TryBuffers(const TryBuffers&) = delete;
  TryBuffers& operator=(const TryBuffers&) = delete;

  bool ready() const { return result_ == 0; }
  const char* data(unsigned id) const { return page_ + data_offset + std::size_t{id} * bytes; }

 private:
  static constexpr std::size_t page_bytes = 4096;
  static constexpr std::size_t data_offset = 2048;

  void publish() {
    auto* entries = reinterpret_cast<io_uring_buf*>(page_);
    for (unsigned id = 0; id < count; ++id) {
      entries[id].addr = reinterpret_cast<std::uint64_t>(data(id));
      entries[id].len = bytes;
      entries[id].bid = static_cast<std::uint16_t>(id);
    }
    std::uint16_t tail = count;
    io_uring_smp_store_release(&reinterpret_cast<io_uring_buf_ring*>(page_)->tail, tail);
  }

  TryRing& ring_;
  char* page_ = nullptr;
  int result_ = -ENOMEM;
};

struct SocketPair {
  std::array<int, 2> fd{-1, -1};
  explicit SocketPair(Trial& trial) {
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd.data()) == 0) return;
    trial.note(-errno);
    fd = {-1, -1};
  }
  ~SocketPair() {
    for (int one : fd) {
      if (one >= 0) ::close(one);
    }
  }
  SocketPair(const SocketPair&) = delete;
  SocketPair& operator=(const SocketPair&) = delete;
  bool send(std::string_view text) const {
    return ::send(fd[1], text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }
};

void prepare_receive(io_uring_sqe* sqe, int fd, unsigned io_priority) {
  ::io_uring_prep_recv(sqe, fd, nullptr, 0, 0);
  sqe->flags |= IOSQE_BUFFER_SELECT;
  sqe->buf_group = 0;
  sqe->ioprio = static_cast<std::uint16_t>(io_priority);
}

unsigned buffer_of(const io_uring_cqe& cqe) {
  return cqe.flags >> IORING_CQE_BUFFER_SHIFT;
}

// Two messages must come as two completions of one operation, each in a buffer.
bool try_multishot_receive(Trial& trial) {
  TryRing ring(trial);
  SocketPair pair(trial);
  if (!ring.ready() || pair.fd[0] < 0) return false;
  TryBuffers buffers(ring, 0);
  if (!buffers.ready()) return false;
  prepare_receive(ring.sqe(), pair.fd[0], IORING_RECV_MULTISHOT);
  for (std::string_view text : {"one", "two"}) {
    io_uring_cqe cqe{};
    if (!pair.send(text) || !ring.next(cqe, 100)) return false;
    constexpr unsigned needed = IORING_CQE_F_BUFFER | IORING_CQE_F_MORE;
    if (cqe.res != 3 || (cqe.flags & needed) != needed || buffer_of(cqe) >= TryBuffers::count)
      return false;
    if (std::string_view(buffers.data(buffer_of(cqe)), 3) != text) return false;
  }
  return true;
}

constexpr std::string_view trial_text = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQ";

// One receive of at most `length` bytes (0: no limit). The bytes that came, when they are in the
// buffers from `*next_buffer` on, in order, as `text` has them; 0 otherwise.
std::size_t try_one_bundle(TryRing& ring, TryBuffers& buffers, int fd, unsigned length,
                           std::string_view text, unsigned* next_buffer) {
  io_uring_sqe* sqe = ring.sqe();
  prepare_receive(sqe, fd, kernel::receive_send_bundle);
  sqe->len = length;
  io_uring_cqe cqe{};
  if (!ring.next(cqe, 100) || cqe.res <= 0 || (cqe.flags & IORING_CQE_F_BUFFER) == 0) return 0;
  auto bytes = static_cast<std::size_t>(cqe.res);
  if (bytes > text.size() || buffer_of(cqe) != *next_buffer) return 0;
  for (std::size_t at = 0; at < bytes; at += TryBuffers::bytes) {
    std::size_t piece = std::min<std::size_t>(TryBuffers::bytes, bytes - at);
    if (std::string_view(buffers.data((*next_buffer)++), piece) != text.substr(at, piece)) return 0;
  }
  return bytes;
}

// 5 bytes more than three buffers hold, received as bundles. Some kernels (6.13.11 to 6.14) had the
// buffers of a bundle out of order; others do not keep to a limit, or shorten the buffer at it.
bool try_bundles(Trial& trial) {
  TryRing ring(trial);
  SocketPair pair(trial);
  if (!ring.ready() || pair.fd[0] < 0) return false;
  TryBuffers buffers(ring, 0);
  constexpr std::size_t whole = TryBuffers::bytes;
  static_assert(trial_text.size() == 3 * whole + 5);
  if (!buffers.ready() || !pair.send(trial_text)) return false;
  unsigned next_buffer = 0;
  if (try_one_bundle(ring, buffers, pair.fd[0], 2 * whole + 1, trial_text, &next_buffer) !=
      2 * whole) {
    return false;
  }
  return try_one_bundle(ring, buffers, pair.fd[0], 0, trial_text.substr(2 * whole), &next_buffer) ==
         whole + 5;
}

bool try_incremental(Trial& trial) {
  TryRing ring(trial);
  return ring.ready() && TryBuffers(ring, kernel::buffer_ring_incremental).ready();
}

// Flags are checked before the descriptor is: -EINVAL means unknown flag.
bool try_zero_copy_report(Trial& trial) {
  TryRing ring(trial);
  if (!ring.ready()) return false;
  char byte = 0;
  ::io_uring_prep_send_zc(ring.sqe(), -1, &byte, 1, 0, kernel::send_zero_copy_report);
  io_uring_cqe cqe{};
  return ring.next(cqe, 100) && cqe.res == -EBADF;
}

// A message must arrive, and wake a ring that sleeps in another thread.
bool try_message_ring(Trial& trial) {
  constexpr std::uint64_t mark = 0x72696e67;
  TryRing sender(trial);
  if (!sender.ready()) return false;
  std::atomic<int> descriptor{-2};
  bool woken = false;
  std::thread receiver([&] {
    TryRing ring(trial);
    descriptor = ring.ready() ? ring.descriptor() : -1;
    descriptor.notify_one();
    io_uring_cqe cqe{};
    // Without the wake-up the time is up first, though the message may be there by then.
    std::uint64_t before = trial.kernel.monotonic_ns();
    woken = ring.ready() && ring.next(cqe, 250) && cqe.user_data == mark && cqe.res == 7 &&
            trial.kernel.monotonic_ns() - before < 200'000'000;
  });
  descriptor.wait(-2);
  bool sent = false;
  if (descriptor >= 0) {
    ::io_uring_prep_msg_ring(sender.sqe(), descriptor, 7, mark, 0);
    io_uring_cqe cqe{};
    sent = sender.next(cqe, 100) && cqe.res >= 0;
  }
  receiver.join();
  return sent && woken;
}

std::string kernel_release() {
  utsname name{};
  if (::uname(&name) != 0) return {};
  // "6.1.0-31-amd64" becomes "6.1".
  std::string_view release = name.release;
  std::size_t end = release.find('.');
  if (end != std::string_view::npos) end = release.find_first_not_of("0123456789", end + 1);
  return std::string(release.substr(0, end));
}

}  // namespace

TriedFeatures try_real_kernel(KernelPort& kernel, unsigned setup_flags) {
  TriedFeatures found;
  found.kernel = kernel_release();
  Trial trial{.kernel = kernel, .setup_flags = setup_flags};
  found.multishot_receive = try_multishot_receive(trial);
  found.bundles = try_bundles(trial);
  found.incremental = try_incremental(trial);
  found.zero_copy_report = try_zero_copy_report(trial);
  found.message_ring = try_message_ring(trial);
  found.error = trial.error;
  return found;
}

}  // namespace ringside::ring
