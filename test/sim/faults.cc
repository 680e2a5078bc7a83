#include "faults.h"

namespace ringside::sim {

namespace {

constexpr std::array<std::string_view, fault_count> names = {
    "short_read",
    "short_write",
    "tiny_socket_buffers",
    "split_segments",
    "reordered_completions",
    "late_completion",
    "late_execution",
    "late_notification",
    "early_no_buffers",
    "full_completion_queue",
    "multishot_ended",
    "interrupted_enter",
    "refused_submission",
    "cancel_already",
    "cancel_race",
    "stall",
    "slow_network",
    "one_byte_peer",
    "reload",
    "pipe_no_descriptors",
    "small_pipe",
    "splice_again",
    "lost_buffers",
    "persistent_refusal",
    "accept_no_descriptors",
    "accept_aborted",
    "receive_reset",
    "receive_no_memory",
    "send_broken_pipe",
    "send_no_buffers",
    "connect_refused",
    "connect_timed_out",
    "connect_unreachable",
    "connect_black_hole",
    "socket_no_descriptors",
    "connection_reset",
    "clock_leap",
    "realtime_jump",
    "pool_exhaustion",
};
static_assert(!names.back().empty());

// A third of all seeds has shape and time faults only, so that outcomes can be checked strictly.
bool may_harm(Random& random) {
  return !random.one_in(3);
}

}  // namespace

std::string_view to_string(Fault fault) {
  return names[static_cast<std::size_t>(fault)];
}

Fault fault_named(std::string_view name) {
  for (std::size_t i = 0; i < fault_count; ++i) {
    if (names[i] == name) return static_cast<Fault>(i);
  }
  return Fault::count;
}

void Faults::draw() {
  if (random_.one_in(16)) return;  // a calm day
  const bool harm = may_harm(random_);
  const std::uint64_t appetite = random_.between(1, 4);
  for (std::size_t i = 0; i < fault_count; ++i) {
    static constexpr std::uint32_t rarity[] = {2, 4, 8, 16, 32, 64, 128};
    const auto fault = static_cast<Fault>(i);
    const bool on = random_.below(6) < appetite;
    const std::uint32_t rate = random_.pick(rarity);
    if (!on || (harmful(fault) && !harm)) continue;
    one_in_[i] = harmful(fault) ? rate * 4 : rate;
  }
}

bool Faults::hit(Fault fault) {
  const std::uint32_t one_in = one_in_[index(fault)];
  if (one_in == 0 || !random_.one_in(one_in)) return false;
  count(fault);
  return true;
}

void Faults::count(Fault fault) {
  ++counts_[index(fault)];
  if (harmful(fault)) ++harm_;
}

}  // namespace ringside::sim
