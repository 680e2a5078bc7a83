// Log events from many threads to the one that writes them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "ringside/base/logger.h"

namespace ringside::control {

// Bounded; push from any thread, front and pop from one. Lock-free: a place carries a sequence
// number that says whose turn it is (the writer of lap n, then its reader, then lap n + 1).
class EventQueue {
 public:
  static constexpr std::size_t text_bytes_max = 960;
  static constexpr std::size_t event_bytes_max = 24;

  struct Event {
    std::uint64_t realtime_ns;
    std::uint32_t left_out;
    base::LogLevel level;
    std::string_view event;
    std::string_view text;  // ends in "..." when it was cut to text_bytes_max
  };

  // `capacity` is rounded up to a power of two.
  explicit EventQueue(std::size_t capacity);

  // Copies the event. False when the queue is full.
  bool push(const Event& event);
  // The oldest event, if any: true, and `out` is valid until pop().
  bool front(Event& out) const;
  void pop();

 private:
  struct Place {
    std::atomic<std::size_t> turn;
    std::uint64_t realtime_ns;
    std::uint32_t left_out;
    base::LogLevel level;
    std::uint8_t event_length;
    std::uint16_t text_length;
    std::array<char, event_bytes_max> event;
    std::array<char, text_bytes_max> text;
  };

  std::size_t mask_;
  std::unique_ptr<Place[]> places_;
  alignas(64) std::atomic<std::size_t> tail_{0};
  alignas(64) std::size_t head_ = 0;
};

}  // namespace ringside::control
