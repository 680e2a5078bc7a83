#include "ringside/base/timer_wheel.h"

#include <algorithm>
#include <bit>

namespace ringside::base {

namespace {
constexpr Millis range_ms = (Millis{1} << 32) - 1;
}

void TimerWheel::arm(Timer& timer, Millis delay_ms) {
  Millis deadline = clock_ms_ + std::clamp<Millis>(delay_ms, 1, range_ms);
  bool in_place = timer.linked() && deadline >= timer.slot_ms_;
  timer.deadline_ms_ = deadline;
  if (!in_place) place(timer);
}

void TimerWheel::place(Timer& timer) {
  timer.slot_ms_ = timer.deadline_ms_;  // always ahead of the position
  insert(timer);
}

void TimerWheel::insert(Timer& timer) {
  // The level is the highest group of bits in which the slot differs from the position: all slots
  // of a level lie ahead of the position, before the end of the next level's current slot.
  Millis differ = timer.slot_ms_ ^ position_ms_;
  unsigned level =
      differ == 0 ? 0 : (static_cast<unsigned>(std::bit_width(differ)) - 1) / slot_bits;
  unsigned index = (timer.slot_ms_ >> (slot_bits * level)) & (slots - 1);
  wheel_[level][index].push_back(timer);
  occupied_[level] |= std::uint64_t{1} << index;
}

void TimerWheel::fire_slot(List& slot, unsigned* fired) {
  // Taken off the wheel first: a callback may arm timers into this very list, or destroy others.
  List due;
  due.splice_back(slot);
  while (Timer* timer = due.pop_front()) {
    if (timer->deadline_ms_ == Timer::never) continue;
    if (timer->deadline_ms_ > position_ms_) {
      place(*timer);
      continue;
    }
    ++*fired;
    timer->callback_(timer->context_);
  }
}

void TimerWheel::cascade(unsigned level) {
  List moved;
  moved.splice_back(wheel_[level][(position_ms_ >> (slot_bits * level)) & (slots - 1)]);
  // A slot time of exactly now lands in the level-0 slot that is about to fire.
  while (Timer* timer = moved.pop_front()) {
    if (timer->deadline_ms_ != Timer::never) insert(*timer);
  }
}

unsigned TimerWheel::advance(Millis now_ms) {
  unsigned fired = 0;
  observe(now_ms);
  while (position_ms_ < now_ms) {
    Millis next = until_next();
    if (next == none || next > now_ms - position_ms_) {
      // No slot begins in between that holds a timer, so nothing needs to cascade either.
      position_ms_ = now_ms;
      break;
    }
    position_ms_ += next;
    for (unsigned level = levels - 1; level > 0; --level) {
      if ((position_ms_ & ((Millis{1} << (slot_bits * level)) - 1)) == 0) cascade(level);
    }
    fire_slot(wheel_[0][position_ms_ & (slots - 1)], &fired);
  }
  return fired;
}

Millis TimerWheel::until_next() const {
  for (unsigned level = 0; level < levels; ++level) {
    unsigned shift = slot_bits * level;
    Millis unit = position_ms_ >> shift;
    // The current slot of a level was emptied when it began, so look strictly ahead.
    unsigned first = (unit + 1) & (slots - 1);
    while (occupied_[level] != 0) {
      auto step = static_cast<unsigned>(
          std::countr_zero(std::rotr(occupied_[level], static_cast<int>(first))));
      unsigned index = (first + step) & (slots - 1);
      if (wheel_[level][index].empty()) {
        occupied_[level] &= ~(std::uint64_t{1} << index);
        continue;
      }
      // A lower level's slots all come before a higher one's, so the first is the next.
      return ((unit + 1 + step) << shift) - position_ms_;
    }
  }
  return none;
}

}  // namespace ringside::base
