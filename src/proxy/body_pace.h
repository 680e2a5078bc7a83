// The rule of limits.body_rate and timeouts.body_grace. Pure: time and bytes are told.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ringside/base/timer_wheel.h"

namespace ringside::proxy {

// One body that a peer must send, or read, at a least rate, as far as the peer is what we wait for.
//
// The peer has an allowance of time, the grace. Waiting for it uses the allowance up; bytes give it
// back, at the rate, up to the whole grace again. So a peer that keeps the rate can go on for ever,
// one that falls below it can do so for as long as the grace, and what went quickly long ago does
// not count for ever.
//
// Bytes are told only now and then (check), so a caller may find their number out at a cost. Until
// the allowance could be used up nothing needs to be known of them.
class BodyPace {
 public:
  // `rate`: bytes a second, 1 to 2^30. `grace_ms`: 1 to 2^32. `bytes`: what the counter that is
  // told later begins at.
  void begin(std::uint64_t rate, base::Millis grace_ms, std::uint64_t bytes) {
    rate_ = rate;
    allowance_max_ = allowance_ = rate * grace_ms;
    bytes_ = bytes;
  }
  // Before begin() there is no rule, and nothing else may be called.
  bool on() const { return rate_ != 0; }

  // Says from when on the peer is waited for, and from when on it is not. Any number of times.
  void wait(bool waiting, base::Millis now_ms) {
    if (waiting_) waited_ms_ += now_ms - since_ms_;
    since_ms_ = now_ms;
    waiting_ = waiting;
  }
  bool waiting() const { return waiting_; }

  // Weighs the time since the last check against the bytes since then, of which there are now
  // `bytes` in all. False: the peer is too slow.
  bool check(base::Millis now_ms, std::uint64_t bytes) {
    wait(waiting_, now_ms);
    const std::uint64_t moved = bytes > bytes_ ? bytes - bytes_ : 0;
    bytes_ = std::max(bytes, bytes_);
    const std::uint64_t used = saturated(waited_ms_, rate_);
    waited_ms_ = 0;
    const std::uint64_t given = saturated(moved, 1000);
    if (given >= used) {
      allowance_ = std::min(allowance_max_, allowance_ + std::min(given - used, allowance_max_));
    } else {
      allowance_ -= std::min(allowance_, used - given);
    }
    return allowance_ != 0;
  }

  // The time since the last check, and what it came to, says nothing about the peer.
  void forgive() { allowance_ = allowance_max_; }

  // How much longer the peer can be waited for until a check is due; at least 1.
  base::Millis left_ms() const {
    const base::Millis whole = (allowance_ + rate_ - 1) / rate_;
    return whole > waited_ms_ ? whole - waited_ms_ : 1;
  }

 private:
  static std::uint64_t saturated(std::uint64_t a, std::uint64_t b) {
    std::uint64_t out = 0;
    return __builtin_mul_overflow(a, b, &out) ? ~std::uint64_t{0} : out;
  }

  std::uint64_t rate_ = 0;
  // In bytes times milliseconds a second: so neither bytes nor milliseconds are rounded.
  std::uint64_t allowance_ = 0;
  std::uint64_t allowance_max_ = 0;
  std::uint64_t bytes_ = 0;
  base::Millis waited_ms_ = 0;
  base::Millis since_ms_ = 0;
  bool waiting_ = false;
};

}  // namespace ringside::proxy
