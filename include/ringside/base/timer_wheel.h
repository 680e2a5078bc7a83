// Timers in user space: arming and disarming cost a few instructions and no system call.
#pragma once

#include <array>
#include <cstdint>

#include "ringside/base/intrusive_list.h"

namespace ringside::base {

using Millis = std::uint64_t;

// Owner: the object whose deadline it is; it may be destroyed while armed (it disarms itself).
// The callback may arm, disarm or destroy any timer, its own included.
class Timer : public ListHook<Timer> {
 public:
  using Callback = void (*)(void* context);
  Timer(Callback callback, void* context) : callback_(callback), context_(context) {}
  bool armed() const { return linked() && deadline_ms_ != never; }
  // When it fires, on the wheel's clock. Meaningful only while armed.
  Millis deadline_ms() const { return deadline_ms_; }

 private:
  friend class TimerWheel;
  static constexpr Millis never = ~Millis{0};
  Callback callback_;
  void* context_;
  Millis deadline_ms_ = 0;
  // The slot it sits in may be earlier than its deadline: pushing a deadline back only writes
  // `deadline_ms_`, and the wheel moves the timer when it gets there. Disarming is pushing back for
  // good: the wheel drops the timer then, unless it was armed again.
  Millis slot_ms_ = 0;
};

// Owner: one ring thread; not thread-safe. Resolution 1 ms, range about 49 days (longer delays are
// cut to that), for a clock below 2^42 ms (139 years). A timer never fires early; it fires in the
// first `advance` at or after its deadline.
class TimerWheel {
 public:
  explicit TimerWheel(Millis now_ms) : clock_ms_(now_ms), position_ms_(now_ms) {}

  // Re-arming moves the deadline. Moving it later is a single store. The delay counts from now_ms()
  // and is at least 1.
  void arm(Timer& timer, Millis delay_ms);
  // A single store too.
  void disarm(Timer& timer) { timer.deadline_ms_ = Timer::never; }

  // Sets the clock that delays count from, without firing anything. A loop calls it when it wakes,
  // before the handlers that arm timers; else their delays would count from before its sleep.
  void observe(Millis now_ms) {
    if (now_ms > clock_ms_) clock_ms_ = now_ms;
  }

  // Fires what is due, in deadline order to the resolution of a slot. Time never goes back: an
  // earlier `now_ms` is taken as no time passed. Returns how many fired.
  unsigned advance(Millis now_ms);

  // Milliseconds from position_ms() to the next slot that holds a timer; `none` when there is none.
  // It may be early for a timer that was disarmed or whose deadline was pushed back, never late.
  static constexpr Millis none = ~Millis{0};
  Millis until_next() const;

  Millis now_ms() const { return clock_ms_; }
  // Up to where timers have fired: the `now_ms` of the last `advance`.
  Millis position_ms() const { return position_ms_; }

 private:
  static constexpr unsigned slot_bits = 6;
  static constexpr unsigned slots = 1U << slot_bits;
  static constexpr unsigned levels = 7;
  using List = IntrusiveList<Timer, Timer>;

  void place(Timer& timer);
  void insert(Timer& timer);
  void fire_slot(List& slot, unsigned* fired);
  void cascade(unsigned level);

  Millis clock_ms_;
  Millis position_ms_;
  std::array<std::array<List, slots>, levels> wheel_;
  // One bit a slot that may hold a timer; a bit whose slot turns out empty is cleared on sight.
  mutable std::array<std::uint64_t, levels> occupied_{};
};

}  // namespace ringside::base
