// How a ring comes to be: set-up flags, the floor of the kernel, features, the fixed-buffer table.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "ringside/ring/ring.h"

#include "batch_wait.h"
#include "kernel_numbers.h"
#include "wake.h"

namespace ringside::ring {

namespace {

constexpr std::uint32_t fixed_places = 16;
// Handlers also add completions of refused operations, so the batch has room for more than a queue.
constexpr std::size_t batch_slack = 1024;
constexpr std::size_t gathers_max = 256;

base::Error set_up_error(int result) {
  base::Error error = base::from_errno(-result);
  if (result == -EPERM || result == -EACCES) error.code = base::ErrorCode::unsupported;
  return error;
}

constexpr base::Error below_floor{base::ErrorCode::invalid_argument, base::Origin::self,
                                  base::Retry::no, EINVAL};

unsigned submission_entries(const RingOptions& options) {
  return std::bit_ceil(std::max(options.entries, 2U));
}
unsigned completion_entries(const RingOptions& options) {
  return std::bit_ceil(std::max(options.completion_entries, 2 * options.entries));
}

// What the kernel says about its operations; room for 256, as its interface wants it.
class Probe {
 public:
  static constexpr unsigned places = 256;
  io_uring_probe* request() { return reinterpret_cast<io_uring_probe*>(bytes_.data()); }
  bool has(unsigned op) {
    return op <= request()->last_op && (request()->ops[op].flags & IO_URING_OP_SUPPORTED) != 0;
  }

 private:
  alignas(io_uring_probe)
      std::array<std::byte, sizeof(io_uring_probe) + places * sizeof(io_uring_probe_op)> bytes_{};
};

}  // namespace

base::Result<void> Ring::set_up(const RingOptions& options) {
  // DEFER_TASKRUN (6.1) runs the kernel's part of a completion only inside our own enter, which
  // costs the least; the others are for kernels or sandboxes without it.
  constexpr unsigned always = IORING_SETUP_CQSIZE | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CLAMP;
  constexpr std::array<unsigned, 3> choices = {
      always | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
      always | IORING_SETUP_COOP_TASKRUN,
      always,
  };
  int result = -EINVAL;
  for (unsigned flags : choices) {
    io_uring_params params{};
    params.flags = flags;
    params.cq_entries = completion_entries(options);
    result = kernel_.setup(submission_entries(options), params, ring_);
    if (result != -EINVAL) break;
  }
  if (result < 0) return std::unexpected(set_up_error(result));
  open_ = true;
  if (auto found = find_features(); !found) return found;

  slots_max_ = std::clamp(options.owners_max, 1U, 1U << 31);
  void* at = ::mmap(nullptr, std::size_t{slots_max_} * sizeof(SlotEntry), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return std::unexpected(base::from_errno(errno));
  slots_ = static_cast<SlotEntry*>(at);
  batch_.reserve(ring_.cq.ring_entries + batch_slack);
  handled_.reserve(ring_.cq.ring_entries + batch_slack);
  gathers_.resize(gathers_max);
  if (features_.message_ring) wakers_ = std::make_unique<WakerPool>(*this);
  batch_wait_ = std::make_unique<BatchWait>(options.batch_wait);
  update_clock();
  timers_ = std::make_unique<base::TimerWheel>(now_ms());
  return {};
}

base::Result<void> Ring::find_features() {
  constexpr unsigned needed = IORING_FEAT_NODROP | IORING_FEAT_SUBMIT_STABLE | IORING_FEAT_EXT_ARG |
                              IORING_FEAT_FAST_POLL | IORING_FEAT_CQE_SKIP;
  if ((ring_.features & needed) != needed) return std::unexpected(below_floor);
  Probe probe;
  int result =
      kernel_.register_resource(ring_, IORING_REGISTER_PROBE, probe.request(), Probe::places);
  if (result < 0) return std::unexpected(set_up_error(result));

  kernel_.try_features(ring_.flags, features_);
  if (features_.trial_errno != 0) return std::unexpected(set_up_error(-features_.trial_errno));
  features_.defer_taskrun = (ring_.flags & IORING_SETUP_DEFER_TASKRUN) != 0;
  features_.coop_taskrun = (ring_.flags & IORING_SETUP_COOP_TASKRUN) != 0;
  features_.single_issuer = (ring_.flags & IORING_SETUP_SINGLE_ISSUER) != 0;
  // Multishot accept and buffer rings came with 5.19, as OP_SOCKET did.
  features_.multishot_accept = probe.has(IORING_OP_SOCKET);
  features_.buffer_ring = features_.multishot_accept;
  features_.send_zero_copy = probe.has(IORING_OP_SEND_ZC);
  features_.message_ring &= probe.has(IORING_OP_MSG_RING);
  features_.bundles &= (ring_.features & kernel::feature_bundle) != 0;
  if (!features_.multishot_accept || !features_.multishot_receive || !features_.send_zero_copy)
    return std::unexpected(below_floor);
  return {};
}

std::string Ring::explain(const base::Error& error) {
  switch (error.sys_errno) {
    case ENOSYS:
      return "io_uring is not available: this kernel was built without it, or a seccomp profile "
             "(a container's default one, for example) answers ENOSYS. Use a kernel of 6.1 or "
             "later, and allow io_uring_setup, io_uring_enter and io_uring_register in the "
             "profile (docker run --security-opt seccomp=FILE).";
    case EPERM:
    case EACCES:
      return "io_uring is switched off for this process. Either the sysctl "
             "kernel.io_uring_disabled is 1 (only members of kernel.io_uring_group may use it) or "
             "2 (nobody may): set it to 0 with 'sysctl -w kernel.io_uring_disabled=0'. Or the "
             "seccomp profile of the container forbids it: allow io_uring_setup, io_uring_enter "
             "and io_uring_register.";
    case ENOMEM:
      return "there is not enough locked memory for the ring. The limit (RLIMIT_MEMLOCK, 'ulimit "
             "-l') is shared by all rings of the user: a ring of 1024 submissions and 4096 "
             "completions takes about 136 KiB, a group of 1024 receive buffers 16 KiB more, so 8 "
             "MiB hold about 40 rings, 1 MiB five, and 64 KiB none. Raise it (LimitMEMLOCK= in a "
             "systemd unit, --ulimit memlock= for a container), or use fewer rings.";
    case EMFILE:
    case ENFILE:
      return "no file descriptor is left for the ring: raise RLIMIT_NOFILE ('ulimit -n').";
    case EINVAL:
      return "this kernel's io_uring is too old: ringside needs Linux 6.1 or later (multishot "
             "receive, buffer rings and zero-copy send).";
    default:
      break;
  }
  std::string text = "the ring could not be set up: ";
  text += base::describe(error.code);
  if (error.sys_errno != 0) {
    text += " (";
    text += ::strerrordesc_np(error.sys_errno);
    text += ')';
  }
  return text;
}

std::size_t Ring::locked_bytes(const RingOptions& options, std::size_t buffers) {
  constexpr std::size_t page_bytes = 4096;
  constexpr std::size_t head_bytes = 64;  // heads, tails and flags before the completions
  auto whole_pages = [](std::size_t bytes) {
    return (bytes + page_bytes - 1) / page_bytes * page_bytes;
  };
  std::size_t entries = submission_entries(options);
  std::size_t queues = head_bytes + completion_entries(options) * sizeof(io_uring_cqe) +
                       entries * sizeof(std::uint32_t);
  return whole_pages(entries * sizeof(io_uring_sqe)) + whole_pages(queues) +
         whole_pages(buffers * sizeof(io_uring_buf));
}

void Ring::add_group(BufferGroup& group) {
  groups_.push_back(&group);
}

void Ring::remove_group(BufferGroup& group) {
  std::erase(groups_, &group);
  // A stale completion may still come to a slot that used the group.
  for (std::uint32_t slot = 0; slot < slots_touched_; ++slot) {
    if (slots_[slot].group == &group) slots_[slot].group = nullptr;
  }
}

int Ring::register_area(void* area, std::size_t bytes) {
  if (!fixed_table_) {
    io_uring_rsrc_register table{};
    table.nr = fixed_places;
    table.flags = IORING_RSRC_REGISTER_SPARSE;
    if (kernel_.register_resource(ring_, IORING_REGISTER_BUFFERS2, &table, sizeof(table)) < 0)
      return -1;
    fixed_table_ = true;
  }
  auto index = static_cast<unsigned>(std::countr_one(fixed_buffers_));
  if (index >= fixed_places) return -1;
  iovec piece{area, bytes};
  io_uring_rsrc_update2 update{};
  update.offset = index;
  update.data = reinterpret_cast<std::uint64_t>(&piece);
  update.nr = 1;
  if (kernel_.register_resource(ring_, IORING_REGISTER_BUFFERS_UPDATE, &update, sizeof(update)) < 0)
    return -1;
  fixed_buffers_ |= 1U << index;
  return static_cast<int>(index);
}

void Ring::unregister_area(int index) {
  iovec nothing{};
  io_uring_rsrc_update2 update{};
  update.offset = static_cast<unsigned>(index);
  update.data = reinterpret_cast<std::uint64_t>(&nothing);
  update.nr = 1;
  kernel_.register_resource(ring_, IORING_REGISTER_BUFFERS_UPDATE, &update, sizeof(update));
  fixed_buffers_ &= ~(1U << index);
}

}  // namespace ringside::ring
