// Virtual time and what is going to happen in it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace ringside::sim {

inline constexpr std::uint64_t never_ns = ~std::uint64_t{0};
inline constexpr std::uint64_t microsecond_ns = 1'000;
inline constexpr std::uint64_t millisecond_ns = 1'000'000;
inline constexpr std::uint64_t second_ns = 1'000'000'000;

// Events run in the order of (time, order of being planned). One thread.
class Clock {
 public:
  using Action = std::function<void()>;

  std::uint64_t now_ns() const { return now_ns_; }
  std::uint64_t realtime_ns() const { return realtime_base_ns_ + now_ns_; }

  void after(std::uint64_t delay_ns, Action action) { at(now_ns_ + delay_ns, std::move(action)); }
  void at(std::uint64_t time_ns, Action action);

  std::uint64_t next_event_ns() const { return events_.empty() ? never_ns : events_[0].time_ns; }
  std::uint64_t events_run() const { return events_run_; }

  // Moves to `time_ns`, running what is due on the way.
  void advance_to(std::uint64_t time_ns);
  // The clock alone leaps (a machine that was suspended): what was due meanwhile is late.
  void leap(std::uint64_t delta_ns) { now_ns_ += delta_ns; }
  void move_realtime(std::int64_t delta_ns) {
    realtime_base_ns_ += static_cast<std::uint64_t>(delta_ns);
  }
  // Forgets what was planned.
  void clear() { events_.clear(); }

 private:
  struct Event {
    std::uint64_t time_ns;
    std::uint64_t order;
    Action action;
  };
  static bool later(const Event& a, const Event& b) {
    return a.time_ns != b.time_ns ? a.time_ns > b.time_ns : a.order > b.order;
  }

  std::uint64_t now_ns_ = 1'000 * second_ns;
  std::uint64_t realtime_base_ns_ = 1'700'000'000 * second_ns;
  std::uint64_t planned_ = 0;
  std::uint64_t events_run_ = 0;
  std::vector<Event> events_;  // a heap
};

}  // namespace ringside::sim
