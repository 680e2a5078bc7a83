#include "sim_clock.h"

#include <algorithm>
#include <utility>

namespace ringside::sim {

void Clock::at(std::uint64_t time_ns, Action action) {
  events_.push_back({time_ns, planned_++, std::move(action)});
  std::push_heap(events_.begin(), events_.end(), later);
}

void Clock::advance_to(std::uint64_t time_ns) {
  while (!events_.empty() && events_[0].time_ns <= time_ns) {
    std::pop_heap(events_.begin(), events_.end(), later);
    Event event = std::move(events_.back());
    events_.pop_back();
    now_ns_ = std::max(now_ns_, event.time_ns);
    ++events_run_;
    event.action();
  }
  now_ns_ = std::max(now_ns_, time_ns);
}

}  // namespace ringside::sim
