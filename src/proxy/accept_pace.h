// Whether connections come so fast that it is cheaper to look for them once a turn.
#pragma once

#include "ringside/base/timer_wheel.h"

namespace ringside::proxy {

// Owner: an Acceptor; its thread.
class AcceptPace {
 public:
  static constexpr base::Millis window_ms = 10;
  // `fast`: so many in a window, and it is worth while until there are fewer than half of that.
  // 0: never.
  explicit AcceptPace(unsigned fast) : fast_(fast) {}

  // `accepted` have come, which may be none.
  void note(base::Millis now_ms, unsigned accepted) {
    if (now_ms >= window_end_ms_) {
      if (2 * in_window_ < fast_ || in_window_ == 0) in_turns_ = false;
      in_window_ = 0;
      window_end_ms_ = now_ms + window_ms;
    }
    in_window_ += accepted;
    if (fast_ != 0 && in_window_ >= fast_) in_turns_ = true;
  }
  bool in_turns() const { return in_turns_; }
  // Begins again.
  void reset() {
    in_turns_ = false;
    in_window_ = 0;
  }

 private:
  unsigned fast_;
  unsigned in_window_ = 0;
  base::Millis window_end_ms_ = 0;
  bool in_turns_ = false;
};

}  // namespace ringside::proxy
