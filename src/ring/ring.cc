#include "ringside/ring/ring.h"

#include <sys/mman.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <utility>

#include "batch_wait.h"
#include "wake.h"

namespace ringside::ring {

namespace {

constexpr std::uint32_t no_slot = ~std::uint32_t{0};
// How often a refused submission is tried again, with the completion queue emptied in between.
constexpr unsigned submit_tries_max = 4;
// Bounds on one turn, so that neither a flood of completions nor deferred work that defers itself
// keeps the other half of the loop from running.
constexpr unsigned overflow_rounds_max = 16;
constexpr unsigned deferred_rounds_max = 16;
// Between readings of the real clock it is carried on from the monotonic one; a step of the clock
// is noticed after this time.
constexpr std::uint64_t realtime_reread_ns = 100'000'000;

}  // namespace

Ring::Ring(KernelPort& kernel) : kernel_(kernel), free_slot_(no_slot) {}

base::Result<std::unique_ptr<Ring>> Ring::open(KernelPort& kernel, const RingOptions& options) {
  std::unique_ptr<Ring> ring(new Ring(kernel));
  if (auto result = ring->set_up(options); !result) return std::unexpected(result.error());
  return ring;
}

Ring::~Ring() {
  assert(groups_.empty() && "a buffer group outlived its ring");
  if (open_) kernel_.teardown(ring_);
  if (slots_ != nullptr) ::munmap(slots_, std::size_t{slots_max_} * sizeof(SlotEntry));
}

bool Ring::attach(Completer& owner) {
  assert(!owner.attached());
  std::uint32_t slot = free_slot_;
  if (slot != no_slot) {
    free_slot_ = slots_[slot].next_free;
  } else {
    if (slots_touched_ == slots_max_) return false;
    slot = slots_touched_++;
  }
  slots_[slot].owner = &owner;
  owner.slot_ = slot;
  ++attached_;
  return true;
}

void Ring::detach(Completer& owner) {
  assert(owner.attached() && owner.in_flight() == 0);
  SlotEntry& entry = slots_[owner.slot_];
  entry.owner = nullptr;
  entry.generation = (entry.generation + 1) & 0xffffff;
  entry.next_free = free_slot_;
  free_slot_ = owner.slot_;
  owner.slot_ = Completer::none;
  --attached_;
}

std::uint64_t Ring::in_flight() const {
  std::uint64_t sum = 0;
  for (std::uint32_t slot = 0; slot < slots_touched_; ++slot) {
    if (slots_[slot].owner != nullptr) sum += slots_[slot].owner->in_flight();
  }
  return sum;
}

std::uint64_t Ring::user_data(const Completer& owner, std::uint8_t kind) const {
  return pack_user_data(owner.slot_, slots_[owner.slot_].generation, kind);
}

unsigned Ring::unsubmitted() const {
  return ring_.sq.sqe_tail - io_uring_smp_load_acquire(ring_.sq.khead);
}

io_uring_sqe* Ring::take_sqe(Completer& owner, std::uint8_t kind) {
  assert(owner.attached());
  io_uring_sqe* sqe = ::io_uring_get_sqe(&ring_);
  if (sqe == nullptr) {
    // After this the queue is empty: what the kernel did not take was refused.
    enter(0, 0, nullptr);
    sqe = ::io_uring_get_sqe(&ring_);
  }
  sqe->user_data = user_data(owner, kind);
  ++owner.in_flight_;
  return sqe;
}

void Ring::enter_once(unsigned min_complete, unsigned flags, const __kernel_timespec* timeout) {
  unsigned before = unsubmitted();
  io_uring_smp_store_release(ring_.sq.ktail, ring_.sq.sqe_tail);
  // The result adds nothing to what the queues tell: -ETIME and -EINTR are turns without work, and
  // what was not taken is still in the queue.
  kernel_.enter(ring_, before, min_complete, flags, timeout);
  ++counters_.enters;
  counters_.submissions += before - unsubmitted();
}

void Ring::enter(unsigned min_complete, unsigned flags, const __kernel_timespec* timeout) {
  unsigned before = unsubmitted();
  enter_once(min_complete, flags, timeout);
  // -EBUSY and -EAGAIN: the kernel has no room before completions are taken off. Do that, let it
  // flush, and try again; what it still does not take is refused, so no operation is ever lost.
  for (unsigned tries = 1; unsubmitted() != 0;) {
    unsigned left = unsubmitted();
    tries = left < before ? 1 : tries + 1;
    if (tries > submit_tries_max) {
      refuse_unsubmitted();
      break;
    }
    before = left;
    stop_cut_off_close();
    drain();
    enter_once(0, IORING_ENTER_GETEVENTS, nullptr);
  }
  gathers_used_ = 0;
}

// The kernel took a send without the close that is linked behind it: alone it would run whatever
// became of the send. Aimed at nothing it ends with -EBADF.
void Ring::stop_cut_off_close() {
  unsigned head = io_uring_smp_load_acquire(ring_.sq.khead);
  const io_uring_sqe& taken = ring_.sq.sqes[(head - 1) & ring_.sq.ring_mask];
  if ((taken.flags & IOSQE_IO_LINK) != 0) ring_.sq.sqes[head & ring_.sq.ring_mask].fd = -1;
}

void Ring::refuse_unsubmitted() {
  unsigned head = io_uring_smp_load_acquire(ring_.sq.khead);
  for (unsigned at = head; at != ring_.sq.sqe_tail; ++at) {
    const io_uring_sqe& sqe = ring_.sq.sqes[at & ring_.sq.ring_mask];
    batch_.push_back({sqe.user_data, {.result = -EBUSY, .flags = 0}});
    ++counters_.refused;
  }
  // The kernel looks at the tail only inside enter, so taking entries back is safe.
  ring_.sq.sqe_tail = head;
  io_uring_smp_store_release(ring_.sq.ktail, head);
}

void Ring::drain() {
  unsigned head = *ring_.cq.khead;
  unsigned tail = io_uring_smp_load_acquire(ring_.cq.ktail);
  if (head == tail) return;
  counters_.completions += tail - head;
  for (; head != tail; ++head) {
    const io_uring_cqe& cqe = ring_.cq.cqes[head & ring_.cq.ring_mask];
    batch_.push_back({cqe.user_data, {.result = cqe.res, .flags = cqe.flags}});
  }
  io_uring_smp_store_release(ring_.cq.khead, head);
}

void Ring::flush_overflow() {
  for (unsigned i = 0; i < overflow_rounds_max && ::io_uring_cq_has_overflow(&ring_); ++i) {
    ++counters_.overflows;
    enter_once(0, IORING_ENTER_GETEVENTS, nullptr);
    drain();
  }
}

bool Ring::must_not_wait() const {
  if (!batch_.empty() || !deferred_.empty() || ::io_uring_cq_has_overflow(&ring_)) return true;
  return std::any_of(groups_.begin(), groups_.end(),
                     [](const BufferGroup* group) { return group->can_wake(); });
}

void Ring::wait(base::Millis max_wait_ms) {
  const BatchWait::Wait batch = batch_wait_->next();
  if (max_wait_ms == 0 || must_not_wait()) return enter(0, IORING_ENTER_GETEVENTS, nullptr);
  std::uint64_t limit_ns = ~std::uint64_t{0};
  if (max_wait_ms < ~std::uint64_t{0} / 1'000'000) limit_ns = max_wait_ms * 1'000'000;
  if (base::Millis next = timers_->until_next(); next != base::TimerWheel::none) {
    // The handlers of this turn took time, so ask the clock again.
    std::uint64_t now = kernel_.monotonic_ns();
    std::uint64_t due = (timers_->position_ms() + next) * 1'000'000;
    limit_ns = std::min(limit_ns, due > now ? due - now : 0);
  }
  if (limit_ns == 0) return enter(0, IORING_ENTER_GETEVENTS, nullptr);
  if (batch.completions > 1) limit_ns = std::min(limit_ns, batch.limit_ns);
  if (!turn_work_.empty()) limit_ns = std::min(limit_ns, TurnWork::turn_work_ns);
  if (limit_ns == ~std::uint64_t{0}) return enter(1, IORING_ENTER_GETEVENTS, nullptr);
  __kernel_timespec timeout{.tv_sec = static_cast<std::int64_t>(limit_ns / 1'000'000'000),
                            .tv_nsec = static_cast<long long>(limit_ns % 1'000'000'000)};
  enter(batch.completions, IORING_ENTER_GETEVENTS, &timeout);
}

void Ring::update_clock() {
  std::uint64_t now = std::max(kernel_.monotonic_ns(), now_ns_);
  if (realtime_read_ns_ == 0 || now - realtime_read_ns_ >= realtime_reread_ns) {
    realtime_ns_ = kernel_.realtime_ns();
    realtime_read_ns_ = now;
  } else {
    realtime_ns_ += now - now_ns_;
  }
  now_ns_ = now;
}

unsigned Ring::run_once(base::Millis max_wait_ms) {
  assert(handled_.empty() && "run_once was called from a handler");
  run_deferred();
  wait(max_wait_ms);
  update_clock();
  drain();
  flush_overflow();
  // Delays count from now, though the timers fire only after the handlers: a completion that came
  // in the same turn as its time-out wins.
  timers_->observe(now_ms());
  unsigned handled = dispatch_all();
  if (batch_wait_->completed(handled)) batch_wait_->measured(kernel_.thread_cpu_ns());
  turn_work_.for_each([](TurnWork& work) { work.run_turn(); });
  timers_->advance(now_ms());
  wake_waiters();
  run_deferred();
  return handled;
}

unsigned Ring::dispatch_all() {
  // Handlers may add to `batch_` (a refused operation, a drain in a full queue): next turn's work.
  batch_.swap(handled_);
  for (const Pending& pending : handled_)
    dispatch(pending);
  auto handled = static_cast<unsigned>(handled_.size());
  handled_.clear();
  return handled;
}

void Ring::dispatch(const Pending& pending) {
  auto slot = static_cast<std::uint32_t>((pending.user_data & ~unsolicited) >> 32);
  SlotEntry* entry = slot < slots_touched_ ? &slots_[slot] : nullptr;
  auto generation = static_cast<std::uint32_t>(pending.user_data >> 8) & 0xffffff;
  if (entry == nullptr || entry->owner == nullptr || entry->generation != generation)
    return drop_stale(entry, pending.completion);
  Completer& owner = *entry->owner;
  if (!pending.completion.more() && (pending.user_data & unsolicited) == 0) {
    assert(owner.in_flight_ > 0);
    --owner.in_flight_;
  }
  owner.on_complete(static_cast<std::uint8_t>(pending.user_data), pending.completion);
}

void Ring::drop_stale(const SlotEntry* entry, const Completion& completion) {
  ++counters_.stale_completions;
  // The completion does not say which group the buffer is from; the slot remembers its last one.
  if (!completion.has_buffer() || entry == nullptr || entry->group == nullptr) return;
  Bundle(*entry->group, completion);
}

void Ring::run_deferred() {
  for (unsigned i = 0; i < deferred_rounds_max && !deferred_.empty(); ++i) {
    base::IntrusiveList<Deferred, Deferred> round;
    round.splice_back(deferred_);
    while (Deferred* work = round.pop_front())
      work->run_deferred();
  }
}

void Ring::wake_waiters() {
  for (BufferGroup* group : groups_)
    group->wake_waiters();
}

Ring::Gather& Ring::gather() {
  if (gathers_used_ == gathers_.size() || ::io_uring_sq_space_left(&ring_) == 0)
    enter(0, 0, nullptr);
  Gather& gather = gathers_[gathers_used_++];
  gather.message = {};
  gather.message.msg_iov = gather.pieces;
  return gather;
}

}  // namespace ringside::ring
