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
    "tls_small_records",
    "tls_ticket",
    "tls_key_update",
    "tls_kernel_key_update",
    "tls_asks_for_keys",
    "tls_no_module",
    "tls_refused_sending",
    "tls_refused_receiving",
    "tls_handshake_stall",
    "tls_handshake_cut",
    "tls_handshake_alert",
    "tls_handshake_garbage",
    "tls_garbage",
    "tls_alert",
    "tls_truncated",
    "tls_no_close_notify",
    "tls_bytes_after_close",
    "tls_no_memory",
    "early_refused",
    "early_part",
    "early_late",
    "early_claimed",
    "too_early",
    "early_never",
    "h2_few_streams",
    "h2_streams_lowered",
    "h2_small_windows",
    "h2_windows_changed",
    "h2_late_windows",
    "h2_late_settings",
    "h2_padding",
    "h2_pauses",
    "h2_ping",
    "h2_go_away",
    "h2_refused",
    "h2_rest_unwanted",
    "h2_reset",
    "h2_cut",
    "h2_go_away_error",
    "h2_mistake",
    "h2_no_settings",
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

void Faults::draw(bool tls, bool early, bool h2_servers) {
  if (random_.one_in(16)) return;  // a calm day
  const bool harm = may_harm(random_);
  const std::uint64_t appetite = random_.between(1, 4);
  for (std::size_t i = 0; i < index(first_tls_fault); ++i)
    draw(static_cast<Fault>(i), random_, appetite, harm);
  for (std::size_t i = index(first_tls_fault); tls && i < index(first_early_fault); ++i)
    draw(static_cast<Fault>(i), tls_random_, appetite, harm);
  for (std::size_t i = index(first_early_fault); early && i < index(first_h2_fault); ++i)
    draw(static_cast<Fault>(i), early_random_, appetite, harm);
  for (std::size_t i = index(first_h2_fault); h2_servers && i < fault_count; ++i)
    draw(static_cast<Fault>(i), h2_random_, appetite, harm);
}

void Faults::draw(Fault fault, Random& random, std::uint64_t appetite, bool harm) {
  static constexpr std::uint32_t rarity[] = {2, 4, 8, 16, 32, 64, 128};
  const bool on = random.below(6) < appetite;
  const std::uint32_t rate = random.pick(rarity);
  if (!on || (harmful(fault) && !harm)) return;
  one_in_[index(fault)] = harmful(fault) ? rate * 4 : rate;
}

bool Faults::plan(Fault fault) {
  const std::uint32_t one_in = one_in_[index(fault)];
  const bool of_early_data = fault >= first_early_fault && fault < first_h2_fault;
  return one_in != 0 && (of_early_data ? early_random_ : random_).one_in(one_in);
}

bool Faults::hit(Fault fault) {
  if (!plan(fault)) return false;
  count(fault);
  return true;
}

void Faults::count(Fault fault) {
  ++counts_[index(fault)];
  if (harmful(fault)) ++harm_;
}

}  // namespace ringside::sim
