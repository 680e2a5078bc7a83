#include "meter.h"

#include "counting_allocator.h"

#ifdef RINGSIDE_CALLGRIND
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_TOGGLE_COLLECT static_cast<void>(0)
#endif

namespace ringside::budget {

// start() and stop() are called outside only, so each toggle has its counterpart.
void Meter::enter() {
  entered_ = true;
  if (!measuring_) return;
  allocations_before_ = test::AllocationCount::total();
  CALLGRIND_TOGGLE_COLLECT;
}

void Meter::leave() {
  entered_ = false;
  if (!measuring_) return;
  CALLGRIND_TOGGLE_COLLECT;
  allocations_ += test::AllocationCount::total() - allocations_before_;
}

}  // namespace ringside::budget
