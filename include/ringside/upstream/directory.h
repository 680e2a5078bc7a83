// What all rings know together about servers: addresses, and how many connections are open.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ringside/config/snapshot.h"
#include "ringside/net/address.h"

namespace ringside::upstream {

// One server of an upstream. Shared by all rings; every member is safe to use from any thread.
class SharedServer {
 public:
  SharedServer(const config::UpstreamServer& config, unsigned rings);

  const config::UpstreamServer& config() const { return config_; }
  bool needs_resolving() const { return config_.endpoint.kind == config::Endpoint::Kind::name; }

  // Replaces the addresses. An empty list is ignored: the last good addresses stay. Sets the
  // version when something changed.
  void set_addresses(std::vector<net::Address> addresses);
  // Grows with every change; 0: no address yet.
  std::uint32_t version() const { return version_.load(std::memory_order_acquire); }
  std::vector<net::Address> addresses() const;

  // Takes one of connections_max places; false when all are taken. Every success is matched by one
  // close_place().
  bool open_place();
  void close_place() { open_.fetch_sub(1, std::memory_order_acq_rel); }
  std::uint32_t open() const { return open_.load(std::memory_order_relaxed); }

  // Hints, one counter a ring, that tell a ring whom to ask for a connection or whom to give one
  // to. Read and written in one order for all rings (sequentially consistent): a ring says that it
  // has an idle connection and then looks for who waits, another says that it waits and then looks
  // for idle connections, and one of the two must see the other.
  std::atomic<std::uint32_t>& idle(unsigned ring) { return marks_[ring].idle; }
  std::atomic<std::uint32_t>& waiting(unsigned ring) { return marks_[ring].waiting; }
  // Twice a request, so the order is paid for only where there are other rings.
  void tell_idle(unsigned ring, std::uint32_t count) {
    if (rings_ > 1) return idle(ring).store(count);
    idle(ring).store(count, std::memory_order_relaxed);
  }
  // HTTP/2 connections of a ring that take requests: a hint as well.
  std::atomic<std::uint32_t>& multiplexed(unsigned ring) { return marks_[ring].multiplexed; }
  unsigned rings() const { return rings_; }

 private:
  struct alignas(64) Marks {
    std::atomic<std::uint32_t> idle{0};
    std::atomic<std::uint32_t> waiting{0};
    std::atomic<std::uint32_t> multiplexed{0};
  };
  config::UpstreamServer config_;
  unsigned rings_;
  std::unique_ptr<Marks[]> marks_;
  std::atomic<std::uint32_t> open_{0};
  std::atomic<std::uint32_t> version_{0};
  mutable std::mutex
      mutex_;  // guards addresses_; taken off the hot path only (when version() changed)
  std::vector<net::Address> addresses_;
};

// The servers of a Snapshot, in its order: server(u, s) is snapshot.upstreams[u].servers[s].
// Immutable after construction (the servers change, the list does not).
class Directory {
 public:
  // Servers that `previous` (may be null) has under the same upstream name and endpoint are carried
  // over.
  Directory(const config::Snapshot& snapshot, unsigned rings, const Directory* previous = nullptr);
  SharedServer& server(std::uint32_t upstream, std::uint32_t server) const {
    return *upstreams_[upstream].servers[server];
  }
  const std::shared_ptr<SharedServer>& share(std::uint32_t upstream, std::uint32_t server) const {
    return upstreams_[upstream].servers[server];
  }
  const std::string& name(std::uint32_t upstream) const { return upstreams_[upstream].name; }
  std::size_t size() const { return upstreams_.size(); }
  std::size_t servers(std::uint32_t upstream) const { return upstreams_[upstream].servers.size(); }

 private:
  struct Entry {
    std::string name;
    std::vector<std::shared_ptr<SharedServer>> servers;
  };
  std::vector<Entry> upstreams_;
};

}  // namespace ringside::upstream
