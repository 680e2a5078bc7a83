// Breaks one invariant on purpose, to show that its check catches it.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "ringside/proxy/worker.h"
#include "ringside/ring/completion.h"

#include "referee.h"
#include "scripted_tls.h"
#include "sim_world.h"

namespace ringside::sim {

enum class Sabotage : std::uint8_t {
  none,
  leak_lease,       // one more lease is held than came back
  leak_arena,       // likewise a chunk of an arena
  leak_slab,        // likewise a place in a slab
  leak_descriptor,  // a socket that nobody closes
  leak_operation,   // an operation that never ends
  drop_log_record,
  double_log_record,
  wrong_end_reason,
  cross_bodies,      // bytes of one exchange reach another client
  corrupt_request,   // likewise on the way up
  drop_bytes,        // some bytes of a response vanish
  early_reuse,       // a buffer is given back to the kernel while it is still being read
  stop_progress,     // nothing moves any more
  trust_truncation,  // TLS that ends without close_notify is taken for whole
  end_silently,      // TLS ends without close_notify
  leak_layer,        // a record layer that nobody gives back
  hide_early_data,   // no upstream is told of it
  trust_early_data,  // an unsafe request is served from it
  ask_again,         // ringside repeats a request that was too early
  allow_streams,     // ringside hears that an HTTP/2 server takes more requests than it does
  allow_bytes,       // likewise more of their bodies
  refuse_served,     // likewise that it has not served what it has
  count,
};

std::string_view to_string(Sabotage sabotage);
// `count` when there is none of that name.
Sabotage sabotage_named(std::string_view name);

class Saboteur {
 public:
  Saboteur(Sabotage how, SimWorld& world, Referee& referee);
  ~Saboteur();

  // Once the workers run. `tls`: null where nobody speaks it.
  void begin(const std::vector<std::unique_ptr<proxy::Worker>>& workers, ScriptedTls* tls);
  // What it breaks is of early data.
  bool needs_early_data() const { return how_ >= Sabotage::hide_early_data; }
  // What a finished worker is seen to hold.
  proxy::Worker::Holdings holdings(const proxy::Worker& worker) const;

 private:
  class Idler;
  void begin(ScriptedTls& tls);
  Sabotage how_;
  SimWorld& world_;
  Referee& referee_;
  std::unique_ptr<Idler> idler_;
};

}  // namespace ringside::sim
