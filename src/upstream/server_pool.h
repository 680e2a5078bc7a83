// The connections of one ring to one server.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ringside/base/intrusive_list.h"
#include "ringside/net/address.h"
#include "ringside/tls/layer.h"
#include "ringside/upstream/directory.h"
#include "ringside/upstream/pools.h"

#include "h1_session.h"
#include "h2_session.h"

namespace ringside::upstream {

// Owner: Pools. Lives while a table refers to it or a session of it exists.
class ServerPool {
 public:
  ServerPool(std::shared_ptr<SharedServer> server, unsigned ring)
      : shared(std::move(server)), ring_(ring) {
    using enum config::UpstreamProtocol;
    const config::UpstreamServer& config = shared->config();
    may_speak_h2_ = config.protocol == h2 || (config.protocol == automatic && config.tls);
  }

  std::shared_ptr<SharedServer> shared;
  std::vector<UpstreamPool*> users;                // tables' upstreams that have this server
  base::IntrusiveList<H1Session, H1Session> idle;  // most recently used first
  std::uint32_t idle_count = 0;
  std::uint32_t sessions = 0;
  std::uint32_t borrows = 0;  // requests to other rings that are under way

  // With HTTP/2 (multiplexing.cc).
  base::IntrusiveList<H2Session, H2Session> shared_sessions;  // those that take requests
  base::IntrusiveList<Waiter, Waiter> joined;  // who waits for a connection that is being made
  std::uint32_t joined_count = 0;
  std::uint32_t connecting = 0;     // connections that whoever joined waits for
  base::Millis spare_after_ms = 0;  // no connection is made before one is needed until then
  enum class Spoken : std::uint8_t { unknown, http1, h2 } spoken = Spoken::unknown;

  bool may_speak_h2() const { return may_speak_h2_; }
  bool must_speak_h2() const { return shared->config().protocol == config::UpstreamProtocol::h2; }
  // Requests share connections, as far as is known.
  bool multiplexes() const { return may_speak_h2_ && spoken != Spoken::http1; }
  bool may_join() const {
    return joined_count < std::uint64_t{connecting} * shared->config().streams_max;
  }
  // A connection that takes another request; null: there is none.
  H2Session* session_with_room();
  // Of the first upstream that has it; null: none has it any more.
  const config::Upstream* config() const;

  void idle_changed(int by) {
    idle_count = static_cast<std::uint32_t>(static_cast<int>(idle_count) + by);
    shared->tell_idle(ring_, idle_count);
  }
  // The addresses to try, newest version; nullptr when there is none yet. Each call gives the next
  // one.
  const net::Address* next_address() {
    if (std::uint32_t now = shared->version(); now != version_) {
      version_ = now;
      addresses_ = shared->addresses();
    }
    if (addresses_.empty()) return nullptr;
    return &addresses_[next_++ % addresses_.size()];
  }
  std::size_t addresses() const { return addresses_.size(); }

 private:
  unsigned ring_;
  bool may_speak_h2_;
  std::uint32_t version_ = 0;
  std::uint32_t next_ = 0;
  std::vector<net::Address> addresses_;
};

// One upstream of one table: its servers here, whose turn it is, and who waits for a place.
struct UpstreamPool {
  struct Member {
    ServerPool* server;
    std::int32_t weight;
    std::int32_t current = 0;  // smooth weighted round robin
  };
  Pools* pools = nullptr;
  const config::Upstream* config = nullptr;
  tls::Contexts* tls = nullptr;  // null: no server of it has https://
  std::size_t index = 0;         // in Snapshot::upstreams
  std::vector<Member> members;
  base::IntrusiveList<Waiter, Waiter> queue;
  std::uint32_t queued = 0;
};

inline const config::Upstream* ServerPool::config() const {
  return users.empty() ? nullptr : users.front()->config;
}

}  // namespace ringside::upstream
