// How many completions a turn of the loop waits for, and how long for more than one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace ringside::ring {

// Owner: a Ring; its thread.
//
// Waking for one completion at a time costs more than what is then done with it: a wake-up, a
// system call, a sleep, and one more wake-up of each peer that is answered by itself. So a ring
// that had several completions in its last turn lets as many come together again. It waits for that
// only in proportion to what it just did, so a request is late by a part of what serving its
// neighbours took; a ring that had one completion, or none, waits for no second one.
// src/decisions/0007-waiting-for-a-batch.md has the figures.
class BatchWait {
 public:
  explicit BatchWait(bool enabled) : enabled_(enabled) {}

  static constexpr std::uint64_t ns_per_completion = 15'000;
  static constexpr std::uint64_t ns_max = 250'000;
  // A send up to this size fits into the socket as a rule: it completes as it is submitted, tells
  // nothing new, and must not pass for what is waited for.
  static constexpr std::size_t prompt_bytes_max = 16 * 1024;

  struct Wait {
    unsigned completions;
    std::uint64_t limit_ns;  // for these; meaningless for one completion
  };

  void sending(std::size_t bytes) { prompt_ += bytes <= prompt_bytes_max ? 1 : 0; }

  // For the enter that submits what was announced by sending().
  Wait next() {
    awaited_ = std::exchange(prompt_, 0);
    if (!enabled_ || news_ < 2) return {1, 0};
    return {news_ + awaited_, std::min(ns_max, news_ * ns_per_completion)};
  }

  // What that enter brought.
  void completed(unsigned completions) {
    news_ = completions > awaited_ ? completions - awaited_ : 0;
    awaited_ = 0;
  }

 private:
  bool enabled_;
  unsigned prompt_ = 0;   // sends since the last enter
  unsigned awaited_ = 0;  // of the last enter
  unsigned news_ = 0;     // other completions of the last turn
};

}  // namespace ringside::ring
