// What is to be done again and again.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

namespace ringside::app {

struct Chore {
  unsigned interval_ms = 1'000;
  std::function<void()> run;
};

// Owner and thread: the control thread. It reads no clock: `now` is of a steady one, and never goes
// back.
class Chores {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Each is due for the first time one interval after `now`.
  Chores(std::vector<Chore> chores, Time now);

  // Runs what is due. One that was late is due again an interval after `now`, not sooner.
  void run(Time now);
  // Until the next is due; nothing: there are none.
  std::optional<std::chrono::milliseconds> wait(Time now) const;

 private:
  struct Due {
    Chore chore;
    Time at;
  };
  std::vector<Due> chores_;
};

}  // namespace ringside::app
