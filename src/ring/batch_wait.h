// How many completions a turn of the loop waits for, and how long for more than one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace ringside::ring {

// Owner: a Ring; its thread.
//
// Waking for one completion at a time may cost more than what is then done with it: a wake-up, a
// system call, a sleep, and one more wake-up of each peer that is answered by itself. So a ring
// that had several completions in its last turn lets as many come together again, for a moment. How
// much that saves depends on what a wake-up costs, and so on the machine: between a third of the
// CPU time and less than nothing. So the ring tries it both ways and does what was cheaper.
// src/decisions/0007-waiting-for-a-batch.md has the figures.
class BatchWait {
 public:
  explicit BatchWait(bool enabled) : enabled_(enabled), waits_(enabled) {}

  static constexpr unsigned completions_max = 8;
  static constexpr std::uint64_t ns_per_completion = 15'000;
  // A send up to this size fits into the socket as a rule: it completes as it is submitted, tells
  // nothing new, and must not pass for what is waited for.
  static constexpr std::size_t prompt_bytes_max = 16 * 1024;
  // An epoch is that many completions, all with waiting or all without: some thousand requests.
  static constexpr unsigned epoch_completions = 8192;
  // A trial is an epoch of the other way. At first every second epoch is one, later one of these.
  static constexpr unsigned first_trials = 32;
  static constexpr unsigned epochs_between_trials = 15;
  // Waiting makes requests later, so it must save this much (thousandths) to be taken up, and to
  // be kept.
  static constexpr int saving_to_start = 40;
  static constexpr int saving_to_stay = 20;

  struct Wait {
    unsigned completions;
    std::uint64_t limit_ns;  // for these; meaningless for one completion
  };

  void sending(std::size_t bytes) { prompt_ += bytes <= prompt_bytes_max ? 1 : 0; }

  // For the enter that submits what was announced by sending().
  Wait next() {
    awaited_ = std::exchange(prompt_, 0);
    const unsigned news = std::min(news_, completions_max);
    if (!waits_ || news < 2) return {1, 0};
    return {news + awaited_, news * ns_per_completion};
  }

  // What that enter brought. True at the end of an epoch: measured() is due.
  bool completed(unsigned completions) {
    news_ = completions > awaited_ ? completions - awaited_ : 0;
    awaited_ = 0;
    epoch_ += completions;
    return enabled_ && epoch_ >= epoch_completions;
  }

  // An epoch is over; `cpu_ns` is the CPU time of the thread so far.
  void measured(std::uint64_t cpu_ns) {
    const std::uint64_t cost =
        std::max<std::uint64_t>(1, (cpu_ns - cpu_before_ns_) * 1024 / epoch_);
    epoch_ = 0;
    cpu_before_ns_ = cpu_ns;
    if (trying_)
      compare(cost);
    else
      trying_ = epochs_ != 0 && --until_trial_ == 0;
    ++epochs_;
    cost_before_ = cost;
    waits_ = prefers_waiting_ != trying_;
  }

  bool waits() const { return waits_; }

 private:
  // The cost of a trial with that of the epoch before it, so that whatever changes slowly is in
  // both.
  void compare(std::uint64_t cost) {
    const auto ratio =
        static_cast<int>(std::clamp<std::uint64_t>(cost * 1000 / cost_before_, 500, 2000));
    const int waiting_saves = prefers_waiting_ ? ratio - 1000 : 1000 - ratio;
    saving_ += (waiting_saves * precision - saving_) / weight;
    prefers_waiting_ = saving_ >= (prefers_waiting_ ? saving_to_stay : saving_to_start) * precision;
    trying_ = false;
    if (trials_ < first_trials) ++trials_;
    until_trial_ = trials_ < first_trials ? 1 : epochs_between_trials;
  }

  static constexpr int precision = 64;  // of the average, below a thousandth
  static constexpr int weight = 16;     // an epoch is noisy: one in so many counts

  bool enabled_;
  bool waits_;
  bool prefers_waiting_ = true;
  bool trying_ = false;
  unsigned prompt_ = 0;   // sends since the last enter
  unsigned awaited_ = 0;  // of the last enter
  unsigned news_ = 0;     // other completions of the last turn
  unsigned epoch_ = 0;    // completions in it
  unsigned epochs_ = 0;
  unsigned trials_ = 0;
  unsigned until_trial_ = 1;
  int saving_ = 0;  // of waiting: an average, in thousandths of a completion's cost
  std::uint64_t cpu_before_ns_ = 0;
  std::uint64_t cost_before_ = 1;
};

}  // namespace ringside::ring
