#include "ringside/ring/mailbox.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cerrno>
#include <cstddef>

#include "wake.h"

namespace ringside::ring {

namespace {
enum Kind : std::uint8_t { kind_event, kind_message };
constexpr std::size_t cache_line_bytes = 64;
}  // namespace

// A bounded queue of many senders and one receiver. Every cell has a sequence number: a cell is
// free for the sender whose ticket equals it, and full for the receiver when it is one more.
class Mailbox::Queue {
 public:
  explicit Queue(std::uint32_t capacity)
      : mask_(capacity - 1), cells_(std::make_unique<Cell[]>(capacity)) {
    for (std::uint32_t i = 0; i < capacity; ++i)
      cells_[i].sequence.store(i, std::memory_order_relaxed);
  }

  bool push(const Message& message) {
    std::uint64_t ticket = tail_.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells_[ticket & mask_];
      std::uint64_t sequence = cell.sequence.load(std::memory_order_acquire);
      if (sequence == ticket) {
        if (!tail_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_relaxed)) continue;
        cell.message = message;
        cell.sequence.store(ticket + 1, std::memory_order_release);
        return true;
      }
      // Behind: the receiver has not emptied it since the last round, so the queue is full. Ahead:
      // another sender took this ticket.
      if (static_cast<std::int64_t>(sequence - ticket) < 0) return false;
      ticket = tail_.load(std::memory_order_relaxed);
    }
  }

  bool pop(Message& out) {
    Cell& cell = cells_[head_ & mask_];
    if (cell.sequence.load(std::memory_order_acquire) != head_ + 1) return false;
    out = cell.message;
    cell.sequence.store(head_ + mask_ + 1, std::memory_order_release);
    ++head_;
    return true;
  }

  std::uint32_t capacity() const { return static_cast<std::uint32_t>(mask_ + 1); }

 private:
  struct Cell {
    std::atomic<std::uint64_t> sequence;
    Message message;
  };
  std::uint64_t mask_;
  std::unique_ptr<Cell[]> cells_;
  alignas(cache_line_bytes) std::atomic<std::uint64_t> tail_{0};
  alignas(cache_line_bytes) std::uint64_t head_ = 0;  // the receiver's alone
};

Mailbox::Mailbox(Ring& ring, MessageHandler& handler) : ring_(ring), handler_(handler) {}

base::Result<std::unique_ptr<Mailbox>> Mailbox::create(Ring& ring, MessageHandler& handler,
                                                       std::uint32_t capacity) {
  std::unique_ptr<Mailbox> mailbox(new Mailbox(ring, handler));
  mailbox->queue_ = std::make_unique<Queue>(std::bit_ceil(std::max(capacity, 2U)));
  int event_fd = ring.kernel().open_event();
  if (event_fd < 0) return std::unexpected(base::from_errno(-event_fd));
  mailbox->doorbell_ = new Doorbell(ring.kernel(), event_fd);
  if (!ring.attach(*mailbox))
    return std::unexpected(base::Error{.code = base::ErrorCode::pool_exhausted});
  mailbox->doorbell_->ring_descriptor = ring.descriptor();
  mailbox->doorbell_->user_data = ring.user_data(*mailbox, kind_message);
  mailbox->arm();
  return mailbox;
}

Mailbox::~Mailbox() {
  assert(in_flight() == 0 && "the mailbox was not closed");
  if (attached()) ring_.detach(*this);
  if (doorbell_ != nullptr) doorbell_->release();
}

// Why no wake-up is lost. A sender (1) puts its message into the queue, then (2) exchanges `awake_`
// to true, and wakes the receiver when it was false. The receiver, once woken, (3) exchanges it to
// false, then (4) takes messages until the queue is empty. All exchanges of one atomic have an
// order. If (2) comes after the last (3), it finds false, or finds the true of another sender who
// found false and wakes: either way another wake-up follows. If (2) comes before (3), then (3)
// reads from it or from a later exchange in its release sequence, so (1) happens before (4), and
// (4) takes the message. A sender that has its cell but has not filled it yet hides those behind it
// from (4); its own (2) is still to come, and the wake-up that follows finds them all.
bool Mailbox::post(Ring* from, const Message& message) {
  if (!queue_->push(message)) return false;
  if (awake_.exchange(true, std::memory_order_acq_rel)) return true;
  // A ring cannot message itself (the kernel would need its lock twice).
  bool by_ring = from != nullptr && from != &ring_ && from->wakers_ != nullptr;
  if (!by_ring || !from->wakers_->wake(*doorbell_)) doorbell_->signal();
  return true;
}

void Mailbox::close() {
  if (closing_) return;
  closing_ = true;
  // A cancel may be refused, or come too late for a read that a kernel worker runs; a signal ends
  // it always.
  if (in_flight() != 0) doorbell_->signal();
}

void Mailbox::arm() {
  ring_.read(*this, kind_event, doorbell_->event_fd(), &event_count_, sizeof(event_count_));
}

void Mailbox::on_complete(std::uint8_t kind, const Completion&) {
  // Whatever the read came to (-EINTR, -EBUSY), it is over and must be armed again.
  if (kind == kind_event && !closing_) arm();
  drain();
}

void Mailbox::drain() {
  awake_.exchange(false, std::memory_order_acq_rel);
  Message message;
  // One turn takes no more than a queue's worth, so that busy senders cannot hold up the ring. What
  // is left then was posted after the exchange, so its sender wakes us again.
  for (std::uint32_t left = queue_->capacity(); left != 0 && queue_->pop(message); --left)
    handler_.on_message(message);
}

}  // namespace ringside::ring
