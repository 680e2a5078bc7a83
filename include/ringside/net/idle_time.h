// How long a connection may be idle, in two parts: after the first it gives memory back.
#pragma once

#include <utility>

#include "ringside/base/timer_wheel.h"

namespace ringside::net {

// Beside a session and its timer; thread: its ring's.
class IdleTime {
 public:
  // A connection that has not been used for so long gives back what is easily made again.
  static constexpr base::Millis rest_after_ms = 1'000;

  // How long to wait first, of `limit_ms` in all. `rests`: there is something to give back.
  base::Millis begin(base::Millis limit_ms, bool rests) {
    const bool split = rests && limit_ms > rest_after_ms;
    left_ms_ = split ? limit_ms - rest_after_ms : 0;
    return split ? rest_after_ms : limit_ms;
  }
  // That is over: how long to wait still, once it has rested; 0: no longer.
  base::Millis go_on() { return std::exchange(left_ms_, 0); }
  // Another limit counts from now on.
  void forget() { left_ms_ = 0; }

 private:
  base::Millis left_ms_ = 0;
};

}  // namespace ringside::net
