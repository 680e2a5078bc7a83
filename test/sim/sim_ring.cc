#include "sim_ring.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "operations.h"

namespace ringside::sim {

namespace {

constexpr std::int32_t cancelled(const Op& op) {
  return op.done_bytes != 0 ? static_cast<std::int32_t>(op.done_bytes) : -ECANCELED;
}

// For what is linked behind it.
bool succeeds(const Op& op, std::int32_t result) {
  if (result < 0) return false;
  if ((op.sqe.opcode != IORING_OP_SEND && op.sqe.opcode != IORING_OP_SENDMSG) ||
      (op.sqe.msg_flags & MSG_WAITALL) == 0)
    return true;
  std::size_t all = 0;
  for (const iovec& piece : op.pieces)
    all += piece.iov_len;
  return static_cast<std::size_t>(result) == all;
}

bool zero_copy(const Op& op) {
  return op.sqe.opcode == IORING_OP_SEND_ZC;
}

}  // namespace

SimRing::SimRing(Core& core, unsigned sq_entries, unsigned cq_entries)
    : core_(core),
      sqes_(sq_entries),
      sq_array_(sq_entries),
      cqes_(cq_entries),
      sq_mask_(sq_entries - 1),
      sq_entries_(sq_entries),
      cq_mask_(cq_entries - 1),
      cq_entries_(cq_entries) {
  for (unsigned i = 0; i < sq_entries; ++i)
    sq_array_[i] = i;
}

SimRing::~SimRing() {
  for (auto& op : ops_) {
    stop_waiting(*op);
    op->over = true;
    op->next = nullptr;
    op->file = nullptr;
    op->hold = nullptr;
  }
}

void SimRing::describe(io_uring& ring) {
  ring = {};
  io_uring_sq& sq = ring.sq;
  sq.khead = &sq_head_;
  sq.ktail = &sq_tail_;
  sq.kring_mask = &sq_mask_;
  sq.kring_entries = &sq_entries_;
  sq.kflags = &sq_flags_;
  sq.kdropped = &sq_dropped_;
  sq.array = sq_array_.data();
  sq.sqes = sqes_.data();
  sq.ring_mask = sq_mask_;
  sq.ring_entries = sq_entries_;
  io_uring_cq& cq = ring.cq;
  cq.khead = &cq_head_;
  cq.ktail = &cq_tail_;
  cq.kring_mask = &cq_mask_;
  cq.kring_entries = &cq_entries_;
  cq.kflags = &cq_flags_;
  cq.koverflow = &cq_overflow_;
  cq.cqes = cqes_.data();
  cq.ring_mask = cq_mask_;
  cq.ring_entries = cq_entries_;
  ring.ring_fd = ring.enter_ring_fd = fd;
}

unsigned SimRing::submit(unsigned count) {
  unsigned done = 0;
  std::vector<OpRef> chain;
  for (; done < count && sq_head_ != sq_tail_; ++done) {
    const io_uring_sqe sqe = sqes_[sq_array_[sq_head_ & sq_mask_] & sq_mask_];
    ++sq_head_;
    chain.push_back(make(sqe));
    if ((sqe.flags & IOSQE_IO_LINK) == 0) start(std::exchange(chain, {}));
  }
  // A link does not outlast the call.
  if (!chain.empty()) start(std::move(chain));
  return done;
}

SimRing::OpRef SimRing::make(const io_uring_sqe& sqe) {
  ops_.push_back(std::make_shared<Op>());
  Op& op = *ops_.back();
  op.ring = this;
  op.sqe = sqe;
  op.place = ops_.size() - 1;
  return ops_.back();
}

void SimRing::start(std::vector<OpRef> chain) {
  for (std::size_t i = 0; i < chain.size(); ++i) {
    chain[i]->linked = i != 0;
    if (i + 1 != chain.size()) chain[i]->next = chain[i + 1];
  }
  // One entry that is wrong fails all.
  std::vector<int> errors;
  for (const OpRef& op : chain)
    errors.push_back(prepare(*this, *op));
  if (std::ranges::any_of(errors, [](int error) { return error < 0; })) {
    for (std::size_t i = 0; i < chain.size(); ++i) {
      chain[i]->next = nullptr;
      complete(*chain[i], errors[i] < 0 ? errors[i] : -ECANCELED);
    }
    return;
  }
  Op& first = *chain.front();
  if (!put_off(first)) attempt(*this, first);
}

// What is linked behind an operation that is over: it starts as task work, or is cancelled.
void SimRing::go_on(const OpRef& next, bool succeeded) {
  if (next == nullptr) return;
  next->linked = false;
  if (!succeeded) return complete(*next, -ECANCELED);
  mark_ready(*next);
}

// As if a worker thread had taken it: it cannot be cancelled, and it runs when it runs.
void SimRing::run_aside(Op& op, std::uint64_t delay_ns) {
  op.late = op.queued = true;
  core_.clock.after(delay_ns, [weak = weak_from_this(), op_ref = reference(op)] {
    auto self = weak.lock();
    if (self == nullptr || op_ref->over) return;
    self->ready_.push_back(op_ref);
    self->idle = false;
  });
}

bool SimRing::put_off(Op& op) {
  const bool asked = (op.sqe.flags & IOSQE_ASYNC) != 0;
  if (!asked && !core_.faults.hit(Fault::late_execution)) return false;
  run_aside(op, core_.random.between(1, 5 * millisecond_ns));
  return true;
}

void SimRing::flush_overflow() {
  room_left_ = no_limit;
  while (!overflow_.empty() && completions_ready() < cq_entries_) {
    write_cqe(overflow_.front());
    overflow_.pop_front();
  }
  if (overflow_.empty()) sq_flags_ &= ~unsigned{IORING_SQ_CQ_OVERFLOW};
}

void SimRing::run_ready() {
  buffers_.watch();
  for (const Posted& posted : std::exchange(posted_, {}))
    post(posted.user_data, posted.result, posted.flags);
  while (!ready_.empty()) {
    auto batch = std::exchange(ready_, {});
    if (batch.size() > 1 && core_.faults.hit(Fault::reordered_completions)) {
      for (std::size_t i = batch.size() - 1; i > 0; --i)
        std::swap(batch[i], batch[core_.random.below(i + 1)]);
    }
    for (auto& op : batch) {
      op->queued = false;
      if (!op->over) run_one(*op);
    }
  }
}

void SimRing::run_one(Op& op) {
  if (op.ending == Op::Ending::cancel) return complete(op, cancelled(op));
  if (op.late || op.ending != Op::Ending::none) {
    op.late = false;
  } else if (put_off(op)) {
    return;
  }
  attempt(*this, op);
  if (!op.over && op.ending != Op::Ending::none) complete(op, cancelled(op));
}

bool SimRing::has_room() const {
  return overflow_.empty() && completions_ready() < cq_entries_ && room_left_ != 0;
}

void SimRing::post(std::uint64_t user_data, std::int32_t result, std::uint32_t flags) {
  if (!has_room()) {
    overflow_.push_back({user_data, result, flags});
    sq_flags_ |= IORING_SQ_CQ_OVERFLOW;
    return;
  }
  if (room_left_ != no_limit) --room_left_;
  write_cqe({user_data, result, flags});
}

void SimRing::write_cqe(const Posted& posted) {
  io_uring_cqe& cqe = cqes_[cq_tail_ & cq_mask_];
  cqe.user_data = posted.user_data;
  cqe.res = posted.result;
  cqe.flags = posted.flags;
  ++cq_tail_;
}

void SimRing::post_later(std::uint64_t user_data, std::int32_t result, std::uint32_t flags) {
  posted_.push_back({user_data, result, flags});
  idle = false;
}

void SimRing::notify(std::uint64_t user_data, std::int32_t result) {
  std::uint64_t delay = 0;
  if (core_.faults.hit(Fault::late_notification)) {
    delay = core_.random.between(millisecond_ns, 3 * second_ns);
  }
  if (delay == 0) return post_later(user_data, result, IORING_CQE_F_NOTIF);
  core_.clock.after(delay, [weak = weak_from_this(), user_data, result] {
    if (auto self = weak.lock()) self->post_later(user_data, result, IORING_CQE_F_NOTIF);
  });
}

void SimRing::complete(Op& op, std::int32_t result, std::uint32_t flags) {
  op.over = true;
  stop_waiting(op);
  if (zero_copy(op) && op.hold != nullptr) flags |= IORING_CQE_F_MORE;
  const std::uint64_t user_data = op.sqe.user_data;
  const OpRef next = std::exchange(op.next, nullptr);
  const bool succeeded = succeeds(op, result);
  if (result >= 0 && (op.sqe.flags & IOSQE_CQE_SKIP_SUCCESS) != 0) {
    remove(op);
    return go_on(next, succeeded);
  }
  if (core_.faults.hit(Fault::late_completion)) {
    core_.clock.after(
        core_.random.between(1, 10 * millisecond_ns),
        [weak = weak_from_this(), ref = reference(op), result, flags, next, succeeded] {
          auto self = weak.lock();
          if (self == nullptr) return;
          self->post_later(ref->sqe.user_data, result, flags);
          self->remove(*ref);
          self->go_on(next, succeeded);
        });
    return;
  }
  post(user_data, result, flags);
  remove(op);
  go_on(next, succeeded);
}

void SimRing::remove(Op& op) {
  // Kept until the end: letting go of the file may run much code.
  auto keep = std::move(ops_[op.place]);
  if (op.place + 1 != ops_.size()) {
    ops_[op.place] = std::move(ops_.back());
    ops_[op.place]->place = op.place;
  }
  ops_.pop_back();
  // Those who still have a reference to the operation shall not hold its file open.
  auto file = std::exchange(keep->file, nullptr);
  auto hold = std::exchange(keep->hold, nullptr);
}

std::string SimRing::describe_operations() const {
  std::string out;
  for (const auto& op : ops_) {
    out += out.empty() ? "op " : ", op ";
    out += std::to_string(op->sqe.opcode) + " on " + std::to_string(op->sqe.fd);
    if (op->file != nullptr) out += " (" + op->file->describe() + ")";
    out += op->linked    ? " linked"
           : op->late    ? " late"
           : op->queued  ? " queued"
           : op->waiting ? " waiting"
                         : " lost";
  }
  return out;
}

std::vector<std::uint64_t> SimRing::user_data_of(std::uint8_t opcode) const {
  std::vector<std::uint64_t> out;
  for (const auto& op : ops_) {
    if (op->sqe.opcode == opcode) out.push_back(op->sqe.user_data);
  }
  return out;
}

void SimRing::wait_for(Op& op) {
  if (op.waiting) return;
  op.waiting = true;
  op.file->add_waiter(op);
}

void SimRing::stop_waiting(Op& op) {
  if (!op.waiting) return;
  op.waiting = false;
  op.file->remove_waiter(op);
}

void SimRing::mark_ready(Op& op) {
  if (op.over || op.queued) return;
  op.queued = true;
  ready_.push_back(reference(op));
  idle = false;
}

bool SimRing::matches(const Op& op, const Op& canceller) const {
  if (&op == &canceller) return false;
  const unsigned flags = canceller.sqe.cancel_flags;
  if ((flags & IORING_ASYNC_CANCEL_ANY) != 0) return true;
  if ((flags & IORING_ASYNC_CANCEL_FD) != 0) {
    return op.file != nullptr && op.file == core_.files.get(canceller.sqe.fd);
  }
  return op.sqe.user_data == canceller.sqe.addr;
}

int SimRing::cancel(const Op& canceller) {
  const unsigned flags = canceller.sqe.cancel_flags;
  const bool all = (flags & (IORING_ASYNC_CANCEL_ALL | IORING_ASYNC_CANCEL_ANY)) != 0;
  if ((flags & IORING_ASYNC_CANCEL_FD) != 0 && core_.files.get(canceller.sqe.fd) == nullptr) {
    return -EBADF;
  }
  int count = 0;
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    if (!matches(*ops_[i], canceller) || ops_[i]->over || ops_[i]->linked) continue;
    const int result = cancel_one(*ops_[i]);
    if (!all) return result;
    if (result != -ENOENT) ++count;
  }
  return all ? count : -ENOENT;
}

int SimRing::cancel_one(Op& target) {
  if (target.late) {
    // A worker that runs it is told to stop: the operation ends, one way or the other.
    if (target.ending == Op::Ending::none) target.ending = Op::Ending::cancel_unless_done;
    return -EALREADY;
  }
  if (target.ending != Op::Ending::none) return -ENOENT;
  if (core_.faults.hit(Fault::cancel_race)) {
    target.ending = Op::Ending::cancel_unless_done;
  } else if (core_.faults.hit(Fault::cancel_already)) {
    target.ending = Op::Ending::cancel;
  } else {
    // Ends as task work: after the completion of the cancel itself.
    target.ending = Op::Ending::cancel;
    mark_ready(target);
    return 0;
  }
  stop_waiting(target);
  const bool was_queued = target.queued;
  if (was_queued) std::erase(ready_, reference(target));
  run_aside(target, core_.random.between(1, 3 * millisecond_ns));
  return -EALREADY;
}

}  // namespace ringside::sim
