// Waking another ring by a message: the sender's half of a mailbox.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "ringside/ring/completion.h"
#include "ringside/ring/kernel_port.h"

namespace ringside::ring {

class Ring;
class WakerPool;

// How to wake a mailbox's ring. Shared by the mailbox and by every message that is under way, so
// the event's descriptor stays open as long as a message that failed may still need it.
class Doorbell {
 public:
  Doorbell(KernelPort& kernel, int event_fd) : kernel_(kernel), event_fd_(event_fd) {}
  Doorbell(const Doorbell&) = delete;
  Doorbell& operator=(const Doorbell&) = delete;

  void retain() { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  void signal() { kernel_.signal_event(event_fd_); }
  int event_fd() const { return event_fd_; }

  // Of the receiving ring; written once, before the mailbox is shared.
  int ring_descriptor = -1;
  std::uint64_t user_data = 0;

 private:
  ~Doorbell() { kernel_.close_event(event_fd_); }

  KernelPort& kernel_;
  int event_fd_;
  std::atomic<std::uint32_t> references_{1};
};

// One MSG_RING operation under way on the sender's ring. It is attached only for that time.
class Waker final : public Completer {
 public:
  void on_complete(std::uint8_t kind, const Completion& completion) override;

 private:
  friend class WakerPool;
  WakerPool* pool_ = nullptr;
  Doorbell* doorbell_ = nullptr;
  Waker* next_ = nullptr;
};

// Owner: the sending ring.
class WakerPool {
 public:
  explicit WakerPool(Ring& ring);
  ~WakerPool();
  WakerPool(const WakerPool&) = delete;
  WakerPool& operator=(const WakerPool&) = delete;

  // False when all are under way (the caller rings the bell itself).
  bool wake(Doorbell& doorbell);

 private:
  friend class Waker;
  void finished(Waker& waker, bool failed);

  // One turn wakes each other ring at most once, so this is enough for 64 rings.
  static constexpr std::size_t wakers_max = 64;
  Ring& ring_;
  std::array<Waker, wakers_max> wakers_;
  Waker* free_ = nullptr;
};

}  // namespace ringside::ring
