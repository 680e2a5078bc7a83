// The real kernel behind KernelPort.
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <optional>

#include "ringside/ring/kernel_port.h"

#include "kernel_numbers.h"
#include "try_features.h"

namespace ringside::ring {

namespace {

std::uint64_t read_clock(clockid_t clock) {
  timespec now;
  ::clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

class RealKernel final : public KernelPort {
 public:
  int setup(unsigned entries, io_uring_params& params, io_uring& ring) override {
    int result = ::io_uring_queue_init_params(entries, &ring, &params);
    if (result < 0) return result;
    for (unsigned i = 0; i < ring.sq.ring_entries; ++i)
      ring.sq.array[i] = i;
    // Saves a look-up of the descriptor in every enter; a ring works without it too.
    ::io_uring_register_ring_fd(&ring);
    return 0;
  }

  int enter(io_uring& ring, unsigned to_submit, unsigned min_complete, unsigned flags,
            const __kernel_timespec* timeout) override {
    if ((ring.int_flags & kernel::ring_registered) != 0) flags |= IORING_ENTER_REGISTERED_RING;
    if (timeout == nullptr) {
      return ::io_uring_enter(static_cast<unsigned>(ring.enter_ring_fd), to_submit, min_complete,
                              flags, nullptr);
    }
    io_uring_getevents_arg wait{};
    wait.ts = reinterpret_cast<std::uint64_t>(timeout);
    return ::io_uring_enter2(static_cast<unsigned>(ring.enter_ring_fd), to_submit, min_complete,
                             flags | IORING_ENTER_EXT_ARG, reinterpret_cast<sigset_t*>(&wait),
                             sizeof(wait));
  }

  int register_resource(io_uring& ring, unsigned opcode, void* arg, unsigned count) override {
    return ::io_uring_register(static_cast<unsigned>(ring.ring_fd), opcode, arg, count);
  }

  void teardown(io_uring& ring) override { ::io_uring_queue_exit(&ring); }

  void try_features(unsigned setup_flags, Features& features) override {
    std::lock_guard guard(trial_);
    // A trial that lacked memory or descriptors is made again by the next ring.
    if (!tried_ || tried_->error != 0) tried_ = try_real_kernel(*this, setup_flags);
    const TriedFeatures& tried = *tried_;
    features.trial_errno = tried.error;
    features.kernel = tried.kernel;
    features.multishot_receive = tried.multishot_receive;
    features.bundles = tried.bundles;
    features.incremental = tried.incremental;
    features.zero_copy_report = tried.zero_copy_report;
    features.message_ring = tried.message_ring;
  }

  int open_event() override {
    int fd = ::eventfd(0, EFD_CLOEXEC);
    return fd < 0 ? -errno : fd;
  }
  void signal_event(int fd) override {
    std::uint64_t one = 1;
    while (::write(fd, &one, sizeof(one)) < 0 && errno == EINTR) {
    }
  }
  void close_event(int fd) override { ::close(fd); }

  std::uint64_t monotonic_ns() override { return read_clock(CLOCK_MONOTONIC); }
  std::uint64_t realtime_ns() override { return read_clock(CLOCK_REALTIME); }
  std::uint64_t thread_cpu_ns() override { return read_clock(CLOCK_THREAD_CPUTIME_ID); }

 private:
  std::mutex trial_;
  std::optional<TriedFeatures> tried_;
};

}  // namespace

KernelPort& real_kernel() {
  static RealKernel kernel;
  return kernel;
}

}  // namespace ringside::ring
