#include "chores.h"

#include <algorithm>
#include <utility>

namespace ringside::app {

using std::chrono::milliseconds;

Chores::Chores(std::vector<Chore> chores, Time now) {
  for (Chore& chore : chores) {
    const milliseconds interval(chore.interval_ms);
    chores_.push_back({std::move(chore), now + interval});
  }
}

void Chores::run(Time now) {
  for (Due& due : chores_) {
    if (now < due.at) continue;
    due.chore.run();
    due.at = now + milliseconds(due.chore.interval_ms);
  }
}

std::optional<milliseconds> Chores::wait(Time now) const {
  std::optional<milliseconds> wait;
  for (const Due& due : chores_) {
    // Rounded up, or the last millisecond would be spent on waking up again and again.
    const milliseconds left = std::max(std::chrono::ceil<milliseconds>(due.at - now), {});
    wait = wait ? std::min(*wait, left) : left;
  }
  return wait;
}

}  // namespace ringside::app
