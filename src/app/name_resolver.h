// Keeps the addresses of servers that are written as names.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ringside/base/logger.h"
#include "ringside/config/snapshot.h"
#include "ringside/net/address.h"
#include "ringside/upstream/directory.h"

namespace ringside::app {

// Addresses of a name, with port 0, in the order in which they should be tried; or a sentence.
// Blocks; called from several threads at once.
using Resolve =
    std::function<std::expected<std::vector<net::Address>, std::string>(const std::string& name)>;

// getaddrinfo(3).
std::expected<std::vector<net::Address>, std::string> resolve_by_system(const std::string& name);

// The same address with that port; one without ports (unix) stays as it is.
net::Address with_port(const net::Address& address, std::uint16_t port);

// One name, looked up once for all the servers that have it.
struct ResolverTarget {
  std::shared_ptr<upstream::SharedServer> server;
  std::uint64_t interval_ms = 30'000;
};
std::vector<ResolverTarget> resolver_targets(const config::Snapshot& snapshot,
                                             const upstream::Directory& directory);

// Looks names up on threads of its own, at once and then again after each interval, and publishes
// what it finds with SharedServer::set_addresses. A failure keeps the addresses of before. Changes
// and failures are logged.
//
// Owner: one thread, which calls all members.
class NameResolver {
 public:
  // `logger` must live until stop() or the destructor has returned.
  NameResolver(const std::vector<ResolverTarget>& targets, base::Logger& logger,
               Resolve resolve = resolve_by_system);
  ~NameResolver();
  NameResolver(const NameResolver&) = delete;
  NameResolver& operator=(const NameResolver&) = delete;

  // Waits until every name was looked up once, whatever came of it. False: time was up first.
  bool wait_for_first_round(std::uint64_t timeout_ms);

  // No address is published and nothing is logged once this has returned. It does not wait for a
  // lookup that hangs: such a thread is left to itself and ends when its lookup does.
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace ringside::app
