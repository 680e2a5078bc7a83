#include "wake.h"

#include "ringside/ring/ring.h"

namespace ringside::ring {

void Waker::on_complete(std::uint8_t, const Completion& completion) {
  pool_->finished(*this, completion.failed());
}

WakerPool::WakerPool(Ring& ring) : ring_(ring) {
  for (Waker& waker : wakers_) {
    waker.pool_ = this;
    waker.next_ = free_;
    free_ = &waker;
  }
}

WakerPool::~WakerPool() {
  for (Waker& waker : wakers_) {
    if (waker.doorbell_ != nullptr) waker.doorbell_->release();
  }
}

bool WakerPool::wake(Doorbell& doorbell) {
  Waker* waker = free_;
  if (waker == nullptr || !ring_.attach(*waker)) return false;
  free_ = waker->next_;
  doorbell.retain();
  waker->doorbell_ = &doorbell;
  ring_.message(*waker, 0, doorbell.ring_descriptor, doorbell.user_data, 0);
  return true;
}

void WakerPool::finished(Waker& waker, bool failed) {
  Doorbell* doorbell = waker.doorbell_;
  waker.doorbell_ = nullptr;
  ring_.detach(waker);
  waker.next_ = free_;
  free_ = &waker;
  // The receiver's completion queue was full, or the like: the event always gets through.
  if (failed) doorbell->signal();
  doorbell->release();
}

}  // namespace ringside::ring
