#include "sim_kernel.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ringside::sim {

namespace {

constexpr unsigned entries_max = 32768;
// From kernel headers newer than those of Debian 12.
constexpr unsigned feature_bundles = 1U << 14;

bool supported(unsigned opcode, const KernelAbilities& abilities) {
  switch (opcode) {
    case IORING_OP_NOP:
    case IORING_OP_ACCEPT:
    case IORING_OP_RECV:
    case IORING_OP_SEND:
    case IORING_OP_SENDMSG:
    case IORING_OP_RECVMSG:
    case IORING_OP_CONNECT:
    case IORING_OP_CLOSE:
    case IORING_OP_POLL_ADD:
    case IORING_OP_READ:
    case IORING_OP_WRITE:
    case IORING_OP_ASYNC_CANCEL:
    case IORING_OP_SOCKET:
    case IORING_OP_SEND_ZC:
      return true;
    case IORING_OP_MSG_RING:
      return abilities.message_ring;
    default:
      return false;
  }
}

int fill_probe(io_uring_probe& probe, unsigned count, const KernelAbilities& abilities) {
  const unsigned known = std::min(count, unsigned{IORING_OP_LAST});
  probe.last_op = IORING_OP_LAST - 1;
  probe.ops_len = static_cast<__u8>(known);
  for (unsigned op = 0; op < known; ++op) {
    probe.ops[op].op = static_cast<__u8>(op);
    probe.ops[op].flags = supported(op, abilities) ? IO_URING_OP_SUPPORTED : 0;
  }
  return 0;
}

int update_buffers(BufferGroups& buffers, const io_uring_rsrc_update2& update) {
  return buffers.update_table(
      update.offset, reinterpret_cast<const iovec*>(static_cast<std::uintptr_t>(update.data)),
      update.nr);
}

int register_buffers2(BufferGroups& buffers, const io_uring_rsrc_register& request) {
  if ((request.flags & IORING_RSRC_REGISTER_SPARSE) != 0)
    return buffers.register_sparse(request.nr);
  return buffers.register_table(
      reinterpret_cast<const iovec*>(static_cast<std::uintptr_t>(request.data)), request.nr);
}

}  // namespace

SimRing* SimKernel::find(const io_uring& ring) {
  for (auto& candidate : rings_) {
    if (candidate->fd == ring.ring_fd) return candidate.get();
  }
  return nullptr;
}

int SimKernel::setup(unsigned entries, io_uring_params& params, io_uring& ring) {
  constexpr unsigned known = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP | IORING_SETUP_SUBMIT_ALL |
                             IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG;
  const unsigned flags = params.flags;
  unsigned allowed = known;
  if (abilities_.single_issuer) allowed |= IORING_SETUP_SINGLE_ISSUER;
  if (abilities_.defer_taskrun) allowed |= IORING_SETUP_DEFER_TASKRUN;
  if ((flags & ~allowed) != 0) return -EINVAL;
  const bool defer = (flags & IORING_SETUP_DEFER_TASKRUN) != 0;
  if (defer && (flags & IORING_SETUP_SINGLE_ISSUER) == 0) return -EINVAL;
  if (entries == 0 || entries > entries_max) return -EINVAL;
  const unsigned sq = std::bit_ceil(entries);
  unsigned cq = 2 * sq;
  if ((flags & IORING_SETUP_CQSIZE) != 0) {
    if (params.cq_entries < sq || params.cq_entries > 2 * entries_max) return -EINVAL;
    cq = std::bit_ceil(params.cq_entries);
  }
  auto made = std::make_shared<SimRing>(core_, sq, cq);
  made->fd = core_.files.open(std::make_shared<RingFile>(made));
  made->describe(ring);
  params.sq_entries = sq;
  params.cq_entries = cq;
  params.features = IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_SUBMIT_STABLE |
                    IORING_FEAT_RW_CUR_POS | IORING_FEAT_FAST_POLL | IORING_FEAT_POLL_32BITS |
                    IORING_FEAT_EXT_ARG | IORING_FEAT_NATIVE_WORKERS | IORING_FEAT_RSRC_TAGS |
                    IORING_FEAT_CQE_SKIP | IORING_FEAT_LINKED_FILE |
                    (abilities_.bundles ? feature_bundles : 0);
  ring.flags = flags;
  ring.features = params.features;
  rings_.push_back(std::move(made));
  return 0;
}

void SimKernel::teardown(io_uring& ring) {
  const int fd = ring.ring_fd;
  std::erase_if(rings_, [fd](const auto& candidate) { return candidate->fd == fd; });
  core_.files.close(fd);
}

// A submission that the kernel does not take, or not whole. 0, or the error for `enter`.
int SimKernel::refuse(SimRing& ring, unsigned to_submit, unsigned* allowed) {
  *allowed = to_submit;
  if (to_submit == 0) return 0;
  if (ring.refusals_left != 0 && --ring.refusals_left != 0) {
    core_.faults.note(Fault::persistent_refusal);
    return -EAGAIN;
  }
  if (core_.faults.hit(Fault::persistent_refusal)) {
    // More often than anybody would try.
    ring.refusals_left = 20;
    return -EAGAIN;
  }
  const bool twice = std::exchange(ring.refused_last, false);
  if (twice || !core_.faults.hit(Fault::refused_submission)) return 0;
  ring.refused_last = true;
  static constexpr int errors[] = {-EAGAIN, -EBUSY, -EINTR, 0};
  const int error = core_.random.pick(errors);
  if (error == 0) *allowed = static_cast<unsigned>(core_.random.between(1, to_submit));
  return error;
}

int SimKernel::enter(io_uring& ring, unsigned to_submit, unsigned min_complete, unsigned flags,
                     const __kernel_timespec* timeout) {
  SimRing* found = find(ring);
  if (found == nullptr) return -EBADF;
  auto keep = found->shared_from_this();
  SimRing& at = *found;
  at.idle = false;
  spend_processor_time();
  at.buffers().watch();
  unsigned allowed = 0;
  if (const int error = refuse(at, to_submit, &allowed); error != 0) return error;
  const bool gets_events = (flags & IORING_ENTER_GETEVENTS) != 0;
  if (gets_events) {
    at.flush_overflow();
    if (core_.faults.hit(Fault::full_completion_queue)) {
      at.pretend_full(static_cast<unsigned>(core_.random.below(4)));
    }
  }
  const unsigned submitted = at.submit(allowed);
  if (!gets_events || submitted < to_submit) return static_cast<int>(submitted);
  const int waited = wait(at, std::min(min_complete, at.completion_entries()), timeout);
  return submitted != 0 ? static_cast<int>(submitted) : waited;
}

int SimKernel::wait(SimRing& ring, unsigned min_complete, const __kernel_timespec* timeout) {
  ring.deadline_ns = never_ns;
  if (timeout != nullptr) {
    ring.deadline_ns = core_.clock.now_ns() +
                       static_cast<std::uint64_t>(timeout->tv_sec) * second_ns +
                       static_cast<std::uint64_t>(timeout->tv_nsec);
  }
  for (;;) {
    ring.run_ready();
    const bool enough = ring.completions_ready() >= min_complete || ring.overflown();
    if (enough) return 0;
    // What is there is delivered even when the wait ends early.
    const int if_empty = ring.completions_ready() != 0 ? 0 : 1;
    if (core_.clock.now_ns() >= ring.deadline_ns) return if_empty * -ETIME;
    const bool disturbed = interrupted_ || core_.faults.hit(Fault::interrupted_enter);
    interrupted_ = false;
    if (disturbed || !let_time_pass(ring)) return if_empty * -EINTR;
  }
}

// True when time has moved and the ring may look again.
bool SimKernel::let_time_pass(SimRing& ring) {
  ring.idle = true;
  std::uint64_t until = core_.clock.next_event_ns();
  for (auto& other : rings_) {
    const bool busy = other->in_flight() != 0 || other->has_work();
    if (!other->idle && !other->attended && !busy) continue;
    if (!other->idle || other->has_work()) return false;
    until = std::min(until, other->deadline_ns);
  }
  if (until == never_ns) {
    stuck_ = true;
    return false;
  }
  core_.clock.advance_to(until);
  for (auto& other : rings_) {
    if (other->deadline_ns <= core_.clock.now_ns()) other->idle = false;
  }
  return true;
}

void SimKernel::attend(int ring_descriptor, bool attended) {
  for (auto& ring : rings_) {
    if (ring->fd == ring_descriptor) ring->attended = attended;
  }
}

// Time never stands still while a program runs; events that become due meanwhile happen.
void SimKernel::spend_processor_time() {
  core_.clock.advance_to(core_.clock.now_ns() + core_.random.between(200, 20 * microsecond_ns));
}

int SimKernel::register_resource(io_uring& ring, unsigned opcode, void* arg, unsigned count) {
  SimRing* at = find(ring);
  if (at == nullptr) return -EBADF;
  BufferGroups& buffers = at->buffers();
  switch (opcode) {
    case IORING_REGISTER_PROBE:
      return fill_probe(*static_cast<io_uring_probe*>(arg), count, abilities_);
    case IORING_REGISTER_PBUF_RING:
      return buffers.add(*static_cast<io_uring_buf_reg*>(arg));
    case IORING_UNREGISTER_PBUF_RING:
      return buffers.remove(static_cast<io_uring_buf_reg*>(arg)->bgid);
    case IORING_REGISTER_BUFFERS:
      return buffers.register_table(static_cast<iovec*>(arg), count);
    case IORING_REGISTER_BUFFERS2:
      return register_buffers2(buffers, *static_cast<io_uring_rsrc_register*>(arg));
    case IORING_REGISTER_BUFFERS_UPDATE:
      return update_buffers(buffers, *static_cast<io_uring_rsrc_update2*>(arg));
    case IORING_REGISTER_RING_FDS: {
      auto* updates = static_cast<io_uring_rsrc_update*>(arg);
      for (unsigned i = 0; i < count; ++i)
        updates[i].offset = i;
      return static_cast<int>(count);
    }
    case IORING_UNREGISTER_RING_FDS:
      return static_cast<int>(count);
    default:
      return -EINVAL;
  }
}

void SimKernel::try_features(unsigned, ring::Features& features) {
  features.kernel = "simulated";
  features.multishot_receive = true;
  features.bundles = abilities_.bundles;
  features.incremental = false;
  features.zero_copy_report = abilities_.zero_copy_report;
  features.message_ring = abilities_.message_ring;
}

int SimKernel::open_event() {
  return core_.files.open(std::make_shared<EventFile>());
}

void SimKernel::signal_event(int fd) {
  auto file = core_.files.get(fd);
  if (file == nullptr || file->kind() != File::Kind::event) return;
  static_cast<EventFile&>(*file).signal();
}

void SimKernel::close_event(int fd) {
  core_.files.close(fd);
}

std::size_t SimKernel::operations_in_flight() const {
  std::size_t count = 0;
  for (auto& ring : rings_)
    count += ring->in_flight();
  return count;
}

}  // namespace ringside::sim
