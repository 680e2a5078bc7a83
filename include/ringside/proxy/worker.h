// Everything that one ring thread has: the ring, listeners, client connections, upstream pools.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "ringside/base/error.h"
#include "ringside/base/logger.h"
#include "ringside/config/snapshot.h"
#include "ringside/filter/forwarding.h"
#include "ringside/net/listener_set.h"
#include "ringside/net/piece.h"
#include "ringside/net/sys_port.h"
#include "ringside/proxy/access_record.h"
#include "ringside/proxy/address_table.h"
#include "ringside/ring/kernel_port.h"
#include "ringside/ring/ring.h"
#include "ringside/route/router.h"
#include "ringside/tls/counters.h"
#include "ringside/tls/material.h"
#include "ringside/upstream/directory.h"
#include "ringside/upstream/peers.h"
#include "ringside/upstream/pools.h"

namespace ringside::proxy {

// A Snapshot made ready for use. Immutable; an exchange keeps the one that it began with.
struct Runtime {
  // Takes milliseconds: never on a ring. Whatever `previous` (may be null) has that is still good
  // goes on being used: counts of servers, contexts whose files did not change, and the sessions
  // that servers gave. `material` may be null where nothing of the snapshot speaks TLS.
  Runtime(config::SnapshotRef snapshot, unsigned rings, const Runtime* previous = nullptr,
          std::shared_ptr<const tls::Material> material = nullptr);
  config::SnapshotRef snapshot;
  route::Router router;
  filter::TrustedProxies trusted;
  std::shared_ptr<upstream::Directory> directory;
  std::shared_ptr<const tls::Material> material;
  std::vector<tls::ContextSet> tls;  // of each ring; empty without material
};
using RuntimeRef = std::shared_ptr<const Runtime>;

// Per ring, written by its thread, read by any.
struct WorkerCounters {
  std::atomic<std::uint64_t> accepted{0};
  std::atomic<std::uint64_t> accepted_in_turns{0};  // of these, without being woken for each
  std::atomic<std::uint64_t> accept_errors{0};
  std::atomic<std::uint64_t> connections_shed{0};  // closed at once: no place
  // Closed at once: their address has as many as it may.
  std::atomic<std::uint64_t> connections_over_address{0};
  std::atomic<std::uint64_t> exchanges{0};
  std::atomic<std::uint64_t> upstream_retries{0};
  // How bodies were received, both ways, by net::Mover; of zero_copy: how much was sent so.
  std::atomic<std::uint64_t> moved_bytes[net::movers]{};
  // Exchanges with a body, by what moved most of it.
  std::atomic<std::uint64_t> bodies[net::movers]{};
};

// Lets workers of one process find each other for lending. Created before any of them.
using Peers = upstream::Peers;

struct WorkerOptions {
  ring::KernelPort& kernel;
  net::SysPort& sys;
  base::Logger& logger;
  AccessSink* access = nullptr;  // null: no access log
  Peers* peers = nullptr;        // null: one ring alone
  // Counts for limits.connections_per_address; null: there is no such limit, whatever it says.
  AddressTable* addresses = nullptr;
  unsigned index = 0;  // of this ring
  unsigned rings = 1;
  std::uint32_t connections_max = 10'000;  // client connections of this ring
  // Connections in 10 ms from which on a ring looks for them once a turn (server.batch_wait).
  unsigned accept_fast = 80;
};

// Whether any listener or server of it does.
bool speaks_tls(const config::Snapshot& snapshot);
// Whether a ring has large receive buffers with it; of `automatic` it depends on the kernel.
bool may_want_large(config::BodyMover mover);
// What a large receive buffer holds: as much as may wait for a slow reader.
std::uint32_t large_buffer_bytes(const config::Limits& limits);

// Pipes that a ring with room for so many clients may open at most; each is two descriptors.
std::uint32_t pipes_max(std::uint32_t connections_max);

// Created, run and destroyed on its ring's thread, except for the members that say otherwise.
class Worker {
 public:
  // `listeners`: this ring serves descriptors[index] of each, and owns that descriptor from now on.
  static base::Result<std::unique_ptr<Worker>> create(
      const WorkerOptions& options, RuntimeRef runtime,
      const std::vector<net::BoundListener>& listeners);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Runs until finished().
  void run();
  // One turn of the loop; for the simulator and for tests.
  unsigned run_once(base::Millis max_wait_ms = ring::Ring::no_limit);

  // From any thread, any number of times. Drain: stop accepting (after taking what already waits in
  // the accept queue), close idle connections, let exchanges finish for at most Timeouts::drain_ms,
  // then end them. Stop: end everything now.
  void request_drain();
  void request_stop();
  // From any thread: exchanges that begin from now on use `runtime`.
  void request_swap(RuntimeRef runtime);
  // From any thread: log one line, `holdings`, with what this ring holds now. A ring whose mailbox
  // is full, or that has finished, logs nothing.
  void request_report();

  // Nothing is left: no connection, no operation in flight. The worker may be destroyed.
  bool finished() const;

  ring::Ring& ring();
  const WorkerCounters& counters() const;
  const upstream::PoolCounters& pool_counters() const;
  const tls::Counters& tls_counters() const;

  // What is still held; all zero once finished (the simulator checks), but for the mailbox among
  // the owners. Of pipes, those in use: empty ones are kept.
  struct Holdings {
    std::uint32_t client_connections, exchanges, upstream_connections, leases, arena_chunks, slices,
        pipes, operations, owners;
  };
  Holdings holdings() const;

  struct Parts;

 private:
  explicit Worker(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

// Bytes that one ring may take with this configuration, term by term: what `ringside check` prints.
struct SizingTerm {
  std::string_view what;
  std::uint64_t count;
  std::uint64_t bytes_each;
};
std::vector<SizingTerm> sizing(const config::Snapshot& snapshot, std::uint32_t connections_max);

}  // namespace ringside::proxy
