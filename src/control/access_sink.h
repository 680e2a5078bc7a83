// From a ring thread to the access log.
#pragma once

#include <atomic>
#include <cstdint>

#include "ringside/proxy/access_record.h"

#include "byte_queue.h"
#include "wake_up.h"

namespace ringside::control {

// record() by the ring's thread; front, pop and take_dropped by the control thread. Copies the
// record into a queue; when that is full the record is dropped and counted, so a slow disk never
// slows an exchange.
class RingAccessSink : public proxy::AccessSink {
 public:
  // Longer texts are cut, with "..." as the last bytes, so that no record can fill the queue.
  static constexpr std::size_t text_bytes_max = 16'384;

  RingAccessSink(std::size_t queue_bytes, WakeUp& wake_up)
      : queue_(queue_bytes), wake_up_(wake_up) {}

  void record(const proxy::AccessRecord& record) override;

  // The oldest record; its views point into the queue until pop(). nullptr: none.
  const proxy::AccessRecord* front();
  void pop() { queue_.pop(); }

  // How many were dropped since the last call.
  std::uint64_t take_dropped();

  // While true, the next record wakes the control thread at once.
  void set_reader_idle(bool idle) { reader_idle_.store(idle, std::memory_order_relaxed); }

 private:
  ByteQueue queue_;
  WakeUp& wake_up_;
  std::atomic<bool> reader_idle_{false};
  std::atomic<std::uint64_t> dropped_{0};
  std::uint64_t dropped_taken_ = 0;
};

}  // namespace ringside::control
