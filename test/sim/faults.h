// What may go wrong in a simulation, how often, and how often it did.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "random.h"

namespace ringside::sim {

enum class Fault : std::uint8_t {
  // Shape and time: a proxy must do its work in spite of them.
  short_read,
  short_write,
  tiny_socket_buffers,
  split_segments,
  reordered_completions,
  late_completion,
  late_execution,
  late_notification,
  early_no_buffers,
  full_completion_queue,
  multishot_ended,
  interrupted_enter,
  refused_submission,
  cancel_already,
  cancel_race,
  stall,
  slow_network,
  one_byte_peer,
  reload,
  pipe_no_descriptors,
  small_pipe,
  splice_again,
  // From here on something is taken away, so that an exchange may fail.
  lost_buffers,
  persistent_refusal,
  accept_no_descriptors,
  accept_aborted,
  receive_reset,
  receive_no_memory,
  send_broken_pipe,
  send_no_buffers,
  connect_refused,
  connect_timed_out,
  connect_unreachable,
  connect_black_hole,
  socket_no_descriptors,
  connection_reset,
  clock_leap,
  realtime_jump,
  pool_exhaustion,
  // Of TLS; shape and time.
  tls_small_records,
  tls_ticket,
  tls_key_update,
  // Of TLS; taken away.
  tls_kernel_key_update,
  tls_asks_for_keys,
  tls_no_module,
  tls_refused_sending,
  tls_refused_receiving,
  tls_handshake_stall,
  tls_handshake_cut,
  tls_handshake_alert,
  tls_handshake_garbage,
  tls_garbage,
  tls_alert,
  tls_truncated,
  tls_no_close_notify,
  tls_bytes_after_close,
  tls_no_memory,
  // Of early data; shape and time.
  early_refused,  // by ringside: as one that was taken before
  early_part,     // no more than the beginning of what there is comes early
  early_late,     // the end of the handshake
  early_claimed,  // by the client, of a request: it says so itself
  too_early,      // says a server
  // Of early data; taken away.
  early_never,  // the end of the handshake
  // Of servers that speak HTTP/2; shape and time. What is handed back is to be sent elsewhere.
  h2_few_streams,
  h2_streams_lowered,
  h2_small_windows,
  h2_windows_changed,
  h2_late_windows,
  h2_late_settings,
  h2_padding,
  h2_pauses,
  h2_ping,
  h2_go_away,
  h2_refused,
  h2_rest_unwanted,
  // Of them; taken away.
  h2_reset,
  h2_cut,
  h2_go_away_error,
  h2_mistake,
  h2_no_settings,
  count,
};
inline constexpr std::size_t fault_count = static_cast<std::size_t>(Fault::count);
inline constexpr Fault first_tls_fault = Fault::tls_small_records;
inline constexpr Fault first_early_fault = Fault::early_refused;
inline constexpr Fault first_h2_fault = Fault::h2_few_streams;

std::string_view to_string(Fault fault);
// `count` when there is none of that name.
Fault fault_named(std::string_view name);
// Whether an exchange that met it may end in an error.
constexpr bool harmful(Fault fault) {
  if (fault >= first_h2_fault) return fault >= Fault::h2_reset;
  if (fault >= first_early_fault) return fault >= Fault::early_never;
  if (fault >= first_tls_fault) return fault >= Fault::tls_kernel_key_update;
  return fault >= Fault::lost_buffers && fault != Fault::realtime_jump;
}

using FaultCounts = std::array<std::uint64_t, fault_count>;

// All faults are off at first.
class Faults {
 public:
  explicit Faults(std::uint64_t seed)
      : random_(seed),
        tls_random_(seed ^ 0x746c73),
        early_random_(seed ^ 0x6561726c79),
        h2_random_(seed ^ 0x6832'73) {}

  // Draws which faults are on and how rare each is; those of TLS, of early data and of servers that
  // speak HTTP/2 only where there are some.
  void draw(bool tls, bool early, bool h2_servers);
  // Makes one certain, rare or impossible: `one_in` 0 is off, 1 always.
  void set(Fault fault, std::uint32_t one_in) { one_in_[index(fault)] = one_in; }
  void all_off() { one_in_.fill(0); }

  bool enabled(Fault fault) const { return one_in_[index(fault)] != 0; }
  // Whether it happens now; counted when it does.
  bool hit(Fault fault);
  // Whether it is to happen at some later time, when note() is to be called.
  bool plan(Fault fault);
  // Counts an occurrence that was decided elsewhere.
  void note(Fault fault) { count(fault); }

  const FaultCounts& counts() const { return counts_; }
  // Occurrences of harmful faults so far.
  std::uint64_t harm() const { return harm_; }

 private:
  static std::size_t index(Fault fault) { return static_cast<std::size_t>(fault); }
  void count(Fault fault);
  void draw(Fault fault, Random& random, std::uint64_t appetite, bool harm);

  Random random_;
  // So that what the others do stays as it was. With that of early data its faults also happen.
  Random tls_random_, early_random_, h2_random_;
  std::array<std::uint32_t, fault_count> one_in_{};
  FaultCounts counts_{};
  std::uint64_t harm_ = 0;
};

}  // namespace ringside::sim
