#include "ringside/upstream/directory.h"

#include <utility>

namespace ringside::upstream {

namespace {

std::vector<net::Address> literal_addresses(const config::Endpoint& endpoint) {
  std::vector<net::Address> addresses;
  if (endpoint.kind == config::Endpoint::Kind::unix_socket) {
    if (auto address = net::Address::from_unix(endpoint.path)) addresses.push_back(*address);
  } else if (endpoint.kind != config::Endpoint::Kind::name) {
    if (auto address = net::Address::from_ip(endpoint.host, endpoint.port)) {
      addresses.push_back(*address);
    }
  }
  return addresses;
}

}  // namespace

SharedServer::SharedServer(const config::UpstreamServer& config, unsigned rings)
    : config_(config), rings_(rings), marks_(std::make_unique<Marks[]>(rings)) {
  set_addresses(literal_addresses(config.endpoint));
}

void SharedServer::set_addresses(std::vector<net::Address> addresses) {
  if (addresses.empty()) return;
  std::lock_guard lock(mutex_);
  if (addresses == addresses_) return;
  addresses_ = std::move(addresses);
  version_.fetch_add(1, std::memory_order_release);
}

std::vector<net::Address> SharedServer::addresses() const {
  std::lock_guard lock(mutex_);
  return addresses_;
}

bool SharedServer::open_place() {
  std::uint32_t limit = config_.connections_max;
  std::uint32_t open = open_.load(std::memory_order_relaxed);
  do {
    if (limit != 0 && open >= limit) return false;
  } while (!open_.compare_exchange_weak(open, open + 1, std::memory_order_acq_rel));
  return true;
}

Directory::Directory(const config::Snapshot& snapshot, unsigned rings, const Directory* previous) {
  auto carried = [&](const config::Upstream& upstream,
                     const config::UpstreamServer& server) -> std::shared_ptr<SharedServer> {
    if (previous == nullptr) return nullptr;
    for (const Entry& entry : previous->upstreams_) {
      if (entry.name != upstream.name) continue;
      for (const auto& old : entry.servers) {
        if (old->config().endpoint.text == server.endpoint.text &&
            old->config().connections_max == server.connections_max &&
            old->config().streams_max == server.streams_max &&
            old->config().protocol == server.protocol && old->config().tls == server.tls &&
            old->rings() == rings) {
          return old;
        }
      }
    }
    return nullptr;
  };
  for (const config::Upstream& upstream : snapshot.upstreams) {
    Entry entry{.name = upstream.name, .servers = {}};
    for (const config::UpstreamServer& server : upstream.servers) {
      auto shared = carried(upstream, server);
      if (shared == nullptr) shared = std::make_shared<SharedServer>(server, rings);
      entry.servers.push_back(std::move(shared));
    }
    upstreams_.push_back(std::move(entry));
  }
}

}  // namespace ringside::upstream
