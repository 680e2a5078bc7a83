#include "event_queue.h"

#include <algorithm>
#include <bit>

namespace ringside::control {

EventQueue::EventQueue(std::size_t capacity)
    : mask_(std::bit_ceil(std::max<std::size_t>(capacity, 2)) - 1),
      places_(std::make_unique<Place[]>(mask_ + 1)) {
  for (std::size_t i = 0; i <= mask_; ++i)
    places_[i].turn.store(i, std::memory_order_relaxed);
}

bool EventQueue::push(const Event& event) {
  std::size_t position = tail_.load(std::memory_order_relaxed);
  Place* place;
  for (;;) {
    place = &places_[position & mask_];
    const std::size_t turn = place->turn.load(std::memory_order_acquire);
    if (turn == position) {
      if (tail_.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) break;
    } else if (turn + mask_ + 1 == position + 1) {
      return false;  // still holds the event of the lap before
    } else {
      position = tail_.load(std::memory_order_relaxed);
    }
  }
  place->realtime_ns = event.realtime_ns;
  place->left_out = event.left_out;
  place->level = event.level;
  place->event_length = static_cast<std::uint8_t>(std::min(event.event.size(), event_bytes_max));
  std::copy_n(event.event.data(), place->event_length, place->event.data());
  place->text_length = static_cast<std::uint16_t>(std::min(event.text.size(), text_bytes_max));
  std::copy_n(event.text.data(), place->text_length, place->text.data());
  if (event.text.size() > text_bytes_max) std::fill_n(place->text.end() - 3, 3, '.');
  place->turn.store(position + 1, std::memory_order_release);
  return true;
}

bool EventQueue::front(Event& out) const {
  const Place& place = places_[head_ & mask_];
  if (place.turn.load(std::memory_order_acquire) != head_ + 1) return false;
  out = {place.realtime_ns,
         place.left_out,
         place.level,
         {place.event.data(), place.event_length},
         {place.text.data(), place.text_length}};
  return true;
}

void EventQueue::pop() {
  places_[head_ & mask_].turn.store(head_ + mask_ + 1, std::memory_order_release);
  ++head_;
}

}  // namespace ringside::control
