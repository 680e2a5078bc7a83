// Wakes the control thread out of poll(2).
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace ringside::control {

// `signal` from any thread; never blocks, and makes a system call only when none is pending.
class WakeUp {
 public:
  WakeUp() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~WakeUp() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  WakeUp(const WakeUp&) = delete;
  WakeUp& operator=(const WakeUp&) = delete;

  // -1 when the process has no descriptor left; then nobody is woken, and timed waits must do.
  int descriptor() const { return descriptor_; }

  void signal() {
    if (pending_.load(std::memory_order_relaxed)) return;
    if (pending_.exchange(true, std::memory_order_acq_rel)) return;
    const std::uint64_t one = 1;
    // A counter that is too full to add to wakes its reader all the same.
    [[maybe_unused]] const auto written = ::write(descriptor_, &one, sizeof one);
  }

  // By the thread that waits, before it looks for work.
  void clear() {
    if (!pending_.load(std::memory_order_relaxed)) return;
    std::uint64_t count;
    [[maybe_unused]] const auto taken = ::read(descriptor_, &count, sizeof count);
    pending_.store(false, std::memory_order_release);
  }

 private:
  int descriptor_;
  std::atomic<bool> pending_{false};
};

}  // namespace ringside::control
