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
  count,
};
inline constexpr std::size_t fault_count = static_cast<std::size_t>(Fault::count);

std::string_view to_string(Fault fault);
// `count` when there is none of that name.
Fault fault_named(std::string_view name);
// Whether an exchange that met it may end in an error.
constexpr bool harmful(Fault fault) {
  return fault >= Fault::lost_buffers && fault < Fault::count && fault != Fault::realtime_jump;
}

using FaultCounts = std::array<std::uint64_t, fault_count>;

// All faults are off at first.
class Faults {
 public:
  explicit Faults(std::uint64_t seed) : random_(seed) {}

  // Draws which faults are on and how rare each is.
  void draw();
  // Makes one certain, rare or impossible: `one_in` 0 is off, 1 always.
  void set(Fault fault, std::uint32_t one_in) { one_in_[index(fault)] = one_in; }
  void all_off() { one_in_.fill(0); }

  bool enabled(Fault fault) const { return one_in_[index(fault)] != 0; }
  // Whether it happens now; counted when it does.
  bool hit(Fault fault);
  // Counts an occurrence that was decided elsewhere.
  void note(Fault fault) { count(fault); }

  const FaultCounts& counts() const { return counts_; }
  // Occurrences of harmful faults so far.
  std::uint64_t harm() const { return harm_; }

 private:
  static std::size_t index(Fault fault) { return static_cast<std::size_t>(fault); }
  void count(Fault fault);

  Random random_;
  std::array<std::uint32_t, fault_count> one_in_{};
  FaultCounts counts_{};
  std::uint64_t harm_ = 0;
};

}  // namespace ringside::sim
