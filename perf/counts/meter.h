// Counts what the proxy does, and nothing of the simulator around it.
#pragma once

#include <cstdint>
#include <utility>

namespace ringside::budget {

// One thread. Instructions are counted by callgrind, which must have been started with
// --collect-atstart=no; without callgrind only allocations are counted.
class Meter {
 public:
  // Counting happens between these two, and only inside of the proxy.
  void start() { measuring_ = true; }
  void stop() { measuring_ = false; }

  // Runs the proxy's code.
  template <class Work>
  void inside(Work&& work) {
    enter();
    std::forward<Work>(work)();
    leave();
  }
  // Runs what the proxy calls and what is not its own.
  template <class Work>
  auto outside(Work&& work) {
    const Pause pause(*this);
    return std::forward<Work>(work)();
  }

  std::uint64_t allocations() const { return allocations_; }

 private:
  class Pause {
   public:
    explicit Pause(Meter& meter) : meter_(meter), paused_(meter.entered_) {
      if (paused_) meter_.leave();
    }
    ~Pause() {
      if (paused_) meter_.enter();
    }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    Meter& meter_;
    bool paused_;
  };

  void enter();
  void leave();

  bool measuring_ = false;
  bool entered_ = false;
  std::uint64_t allocations_ = 0;
  std::uint64_t allocations_before_ = 0;
};

}  // namespace ringside::budget
