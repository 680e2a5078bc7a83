// Somebody who waits for buffers, and notes when it was woken.
#pragma once

#include <functional>
#include <vector>

#include "ringside/ring/buffer_group.h"

namespace ringside::ring::test {

struct RecordingWaiter final : BufferWaiter {
  explicit RecordingWaiter(std::vector<int>& order, int number) : order_(order), number_(number) {}
  void on_buffers_available() override {
    order_.push_back(number_);
    if (action) action();
  }
  std::function<void()> action;
  std::vector<int>& order_;
  int number_;
};

}  // namespace ringside::ring::test
