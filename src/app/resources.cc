#include "resources.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "ringside/proxy/worker.h"

namespace ringside::app {
namespace {

// Without a limit in the file. More is a matter of intent: each place costs a descriptor pair and,
// once used, memory.
constexpr std::uint64_t derived_connections_max = 100'000;

// Of nine descriptors, five are for clients without a limit in the file. If each had a request at
// the same time, with a server's connection and a pipe for every eighth (proxy::pipes_max), only
// four could be. But a good part is idle and needs one, and who finds none gets a 503.
constexpr std::uint64_t clients_of_nine = 5;

// What the default limits are to carry. Fewer may be enough, but nobody chose them.
constexpr std::uint64_t derived_connections_wanted = 10'000;

// Standard streams, logs, signals, and what the C library opens to look up names.
constexpr std::uint64_t descriptors_of_process = 64;
// Ring and mailbox, with room to spare.
constexpr std::uint64_t descriptors_of_ring = 16;

// Sizes of the kernel's structures: io_uring_sqe, an index, io_uring_cqe, io_uring_buf.
constexpr std::uint64_t submission_bytes = 64 + 4;
constexpr std::uint64_t completion_bytes = 16;
constexpr std::uint64_t buffer_entry_bytes = 16;
constexpr std::uint64_t completions_per_submission = 4;

std::uint64_t from_rlim(rlim_t value) {
  return value == RLIM_INFINITY ? no_limit : value;
}

std::uint64_t listener_count(const config::Snapshot& snapshot) {
  std::uint64_t count = 0;
  for (const config::Listen& listen : snapshot.listens)
    count += listen.addresses.size();
  return count;
}

std::uint64_t fixed_descriptors(const config::Snapshot& snapshot, unsigned rings) {
  return descriptors_of_process + rings * (descriptors_of_ring + listener_count(snapshot));
}

// A client, a server for it, and the pipes between them.
std::uint64_t descriptors_of(std::uint64_t connections, unsigned rings) {
  const auto of_ring = static_cast<std::uint32_t>((connections + rings - 1) / rings);
  return 2 * connections + std::uint64_t{2} * rings * proxy::pipes_max(of_ring);
}

std::uint64_t locked_bytes_of_ring(const config::Server& server, const config::Limits& limits) {
  const std::uint64_t entries = server.ring_entries;
  std::uint64_t bytes =
      entries * (submission_bytes + completions_per_submission * completion_bytes) +
      server.buffers * buffer_entry_bytes;
  if (proxy::may_want_large(server.body_mover)) bytes += server.large_buffers * buffer_entry_bytes;
  // Only registered buffers are pinned.
  if (server.body_mover == config::BodyMover::zero_copy)
    bytes += std::uint64_t{server.large_buffers} * proxy::large_buffer_bytes(limits);
  return bytes;
}

std::string kib(std::uint64_t bytes) {
  return std::to_string((bytes + 1023) / 1024) + " KiB";
}

void advise(Plan& plan, const config::Snapshot& snapshot, const Limits& limits) {
  const std::uint64_t connections = std::uint64_t{plan.connections_max} * plan.rings;
  if (plan.descriptors > limits.descriptors) {
    const std::uint32_t configured = snapshot.limits.connections_max;
    plan.advice.push_back("RLIMIT_NOFILE is " + std::to_string(limits.descriptors) + ", but " +
                          (configured != 0 ? "limits.connections = " + std::to_string(configured)
                                           : std::string("even one connection a ring")) +
                          " can need " + std::to_string(plan.descriptors) +
                          " descriptors: raise it (LimitNOFILE= of systemd, ulimit -n) or lower " +
                          (configured != 0 ? "limits.connections" : "server.rings"));
  } else if (snapshot.limits.connections_max == 0 && connections < derived_connections_wanted) {
    plan.advice.push_back("RLIMIT_NOFILE is " + std::to_string(limits.descriptors) +
                          ", which has room for " + std::to_string(connections) +
                          " client connections: raise it (LimitNOFILE= of systemd, ulimit -n), or "
                          "set limits.connections if that is enough");
  }
  if (plan.locked_bytes > limits.locked_bytes) {
    plan.advice.push_back(
        "RLIMIT_MEMLOCK is " + kib(limits.locked_bytes) + ", but the rings need " +
        kib(plan.locked_bytes) +
        ", which counts for a process without CAP_IPC_LOCK: raise it (LimitMEMLOCK= of systemd, "
        "ulimit -l) or lower server.rings, server.ring_entries or server.buffers");
  }
}

// A stream cannot move to another ring, so a ring without a connection waits until another's has
// ended behind its last stream.
void advise_of_places(Plan& plan, const config::Snapshot& snapshot) {
  using enum config::UpstreamProtocol;
  for (const config::Upstream& upstream : snapshot.upstreams) {
    for (const config::UpstreamServer& server : upstream.servers) {
      const bool shared = server.protocol == h2 || (server.protocol == automatic && server.tls);
      const std::uint32_t places = server.connections_max;
      if (!shared || places == 0 || places >= plan.rings) continue;
      plan.advice.push_back(
          "[upstream." + upstream.name + "] max_connections = " + std::to_string(places) + " for " +
          server.endpoint.text + " is less than the " + std::to_string(plan.rings) +
          " rings, which share no HTTP/2 connection: behind one long request or "
          "stream all others can end as 503; allow as many connections as rings, "
          "or set server.rings = " +
          std::to_string(places));
    }
  }
}

}  // namespace

Limits current_limits() {
  Limits limits;
  rlimit value{};
  if (::getrlimit(RLIMIT_NOFILE, &value) == 0) {
    limits.descriptors = from_rlim(value.rlim_cur);
    limits.descriptors_hard = from_rlim(value.rlim_max);
  }
  if (::getrlimit(RLIMIT_MEMLOCK, &value) == 0) limits.locked_bytes = from_rlim(value.rlim_cur);
  return limits;
}

void raise_descriptor_limit() {
  rlimit value{};
  if (::getrlimit(RLIMIT_NOFILE, &value) != 0 || value.rlim_cur == value.rlim_max) return;
  value.rlim_cur = value.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &value);
}

Plan make_plan(const config::Snapshot& snapshot, const Limits& limits, unsigned rings) {
  Plan plan;
  plan.rings = std::max(rings, 1U);
  const std::uint64_t fixed = fixed_descriptors(snapshot, plan.rings);
  std::uint64_t connections = snapshot.limits.connections_max;
  if (connections == 0) {
    const std::uint64_t free = limits.descriptors > fixed ? limits.descriptors - fixed : 0;
    connections =
        std::clamp<std::uint64_t>(free * clients_of_nine / 9, plan.rings, derived_connections_max);
  }
  plan.connections_max = static_cast<std::uint32_t>((connections + plan.rings - 1) / plan.rings);
  plan.descriptors = fixed + descriptors_of(connections, plan.rings);
  // Where clients were counted by the limit, they and their servers share what there is.
  if (snapshot.limits.connections_max == 0 && connections > plan.rings)
    plan.descriptors = std::min(plan.descriptors, limits.descriptors);
  plan.locked_bytes = plan.rings * locked_bytes_of_ring(snapshot.server, snapshot.limits);
  advise(plan, snapshot, limits);
  advise_of_places(plan, snapshot);
  return plan;
}

}  // namespace ringside::app
