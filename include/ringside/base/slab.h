// Fixed places for objects of one type, sized once at start.
#pragma once

#include <sys/mman.h>

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "ringside/base/poison.h"

namespace ringside::base {

// Owner: one ring thread; not thread-safe. Address space for `capacity` objects is reserved at
// construction, and a page is touched only when a place on it is first used, so a generous capacity
// costs nothing. Places are reused last in, first out, which keeps them warm in the cache.
// Objects never move, so after a peak those that are left lie scattered over all its pages: hardly
// a page is free as a whole, and the next peak would fault each in again. Hence it does not shrink.
template <typename T>
class Slab {
 public:
  explicit Slab(std::size_t capacity) : capacity_(capacity) {
    void* at = ::mmap(nullptr, bytes(), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    places_ = at == MAP_FAILED ? nullptr : static_cast<Place*>(at);
    if (places_ == nullptr) capacity_ = 0;
  }
  ~Slab() {
    assert(in_use_ == 0 && "an object outlived its slab");
    if (places_ == nullptr) return;
    base::unpoison(places_, touched_ * sizeof(Place));  // the address space may be mapped again
    ::munmap(places_, bytes());
  }
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  // nullptr when all places are taken: the caller sheds load.
  template <typename... Args>
  T* create(Args&&... args) {
    Place* place = free_;
    if (place != nullptr) {
      base::unpoison(place, sizeof(Place));
      free_ = place->next;
    } else {
      if (touched_ == capacity_) return nullptr;
      place = &places_[touched_++];
    }
    ++in_use_;
    return new (place->bytes) T(std::forward<Args>(args)...);
  }

  // `object` was made by this slab.
  void destroy(T* object) {
    auto* place = reinterpret_cast<Place*>(object);
    assert(place >= places_ && place < places_ + touched_);
    object->~T();
    place->next = free_;
    free_ = place;
    base::poison(place, sizeof(Place));
    --in_use_;
  }

  std::size_t in_use() const { return in_use_; }
  std::size_t capacity() const { return capacity_; }
  // The most objects that ever lived at once.
  std::size_t peak() const { return touched_; }

 private:
  union Place {
    Place* next;
    alignas(T) std::byte bytes[sizeof(T)];
  };
  std::size_t bytes() const { return (capacity_ == 0 ? 1 : capacity_) * sizeof(Place); }

  Place* places_ = nullptr;
  Place* free_ = nullptr;
  std::size_t capacity_;
  std::size_t touched_ = 0;
  std::size_t in_use_ = 0;
};

}  // namespace ringside::base
