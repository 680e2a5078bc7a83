#include "ringside/upstream/pools.h"

#include <algorithm>
#include <string>
#include <utility>

#include "h1_session.h"
#include "h2_parts.h"
#include "server_pool.h"

namespace ringside::upstream {

using base::Error;
using base::ErrorCode;
using base::Origin;
using base::Retry;

Pools::Pools(net::StreamContext& streams, base::Logger& logger, const PoolsOptions& options)
    : streams_(streams),
      logger_(logger),
      options_(options),
      sessions_(options.sessions_max),
      h2_(std::make_unique<H2Parts>(options.sessions_max, options.streams_max)),
      borrows_(options.sessions_max),
      mail_timer_(&Pools::retry_mail, this) {}

Pools::~Pools() = default;

PoolTable::~PoolTable() {
  if (pools != nullptr) pools->drop_table(*this);
}

ServerPool* Pools::find(const SharedServer* server) {
  for (const auto& pool : servers_) {
    if (pool->shared.get() == server) return pool.get();
  }
  return nullptr;
}

ServerPool& Pools::find_or_make(const std::shared_ptr<SharedServer>& server) {
  if (ServerPool* pool = find(server.get())) return *pool;
  if (options_.peers != nullptr) options_.peers->keep(server);
  servers_.push_back(std::make_unique<ServerPool>(server, options_.ring_index));
  return *servers_.back();
}

std::unique_ptr<PoolTable> Pools::make_table(const config::Snapshot& snapshot,
                                             const Directory& directory, tls::Contexts* contexts) {
  auto table = std::make_unique<PoolTable>();
  table->pools = this;
  for (std::uint32_t u = 0; u < snapshot.upstreams.size(); ++u) {
    auto upstream = std::make_unique<UpstreamPool>();
    upstream->pools = this;
    upstream->config = &snapshot.upstreams[u];
    upstream->tls = contexts;
    upstream->index = u;
    for (std::uint32_t s = 0; s < directory.servers(u); ++s) {
      ServerPool& server = find_or_make(directory.share(u, s));
      server.users.push_back(upstream.get());
      auto weight = static_cast<std::int32_t>(snapshot.upstreams[u].servers[s].weight);
      upstream->members.push_back({.server = &server, .weight = weight});
    }
    table->upstreams.push_back(std::move(upstream));
  }
  return table;
}

void Pools::drop_table(PoolTable& table) {
  for (const auto& upstream : table.upstreams) {
    for (const UpstreamPool::Member& member : upstream->members) {
      std::erase(member.server->users, upstream.get());
    }
  }
  sweep();
}

// Forgets servers that no configuration names and that nothing is open to.
void Pools::sweep() {
  for (const auto& server : servers_) {
    if (!server->users.empty()) continue;
    while (H1Session* session = server->idle.front())
      session->close(false);
    while (H2Session* session = server->shared_sessions.front())
      session->quit();
  }
  std::erase_if(servers_, [](const std::unique_ptr<ServerPool>& server) {
    return server->users.empty() && server->sessions == 0 && server->borrows == 0;
  });
}

// ---- choosing

// Smooth weighted round robin over the servers that can take a request now; when none can, over all
// that have an address, to queue there.
ServerPool* Pools::choose(UpstreamPool& pool, const SharedServer* avoid) {
  auto has_place = [this](ServerPool& server) {
    std::uint32_t limit = server.shared->config().connections_max;
    if (server.idle_count > 0 || limit == 0 || server.shared->open() < limit) return true;
    if (server.may_join() || server.session_with_room() != nullptr) return true;
    // All its places may be connections that are idle on another ring.
    return options_.peers != nullptr && ring_with_idle(server) != options_.ring_index;
  };
  for (int round = 0; round < 2; ++round) {
    UpstreamPool::Member* best = nullptr;
    std::int32_t total = 0;
    for (UpstreamPool::Member& member : pool.members) {
      const SharedServer* shared = member.server->shared.get();
      if (shared->version() == 0 || !has_place(*member.server)) continue;
      if (round == 0 && shared == avoid) continue;
      total += member.weight;
      member.current += member.weight;
      if (best == nullptr || member.current > best->current) best = &member;
    }
    if (best == nullptr) continue;
    best->current -= total;
    return best->server;
  }
  return nullptr;
}

void Pools::acquire(Waiter& waiter, PoolTable& table, std::uint32_t upstream,
                    const SharedServer* avoid) {
  UpstreamPool& pool = *table.upstreams[upstream];
  waiter.pool_ = &pool;
  // Who came first is served first.
  if (pool.queue.empty()) {
    ServerPool* server = choose(pool, avoid);
    if (server != nullptr && start(waiter, *server)) return;
  }
  bool any_address = std::any_of(pool.members.begin(), pool.members.end(), [](const auto& member) {
    return member.server->shared->version() != 0;
  });
  if (!any_address) return fail(waiter, {ErrorCode::no_address, Origin::upstream}, nullptr);
  enqueue(waiter, pool);
  // A ring whose connection became idle just now may have looked for who waits before this one did.
  if (waiter.state_ == Waiter::State::queued && pool.queue.front() == &waiter) look_again(waiter);
}

void Pools::look_again(Waiter& waiter) {
  if (options_.peers == nullptr) return;
  for (UpstreamPool::Member& member : waiter.pool_->members) {
    if (ring_with_idle(*member.server) == options_.ring_index) continue;
    leave_queue(waiter);
    if (!borrow(waiter, *member.server)) enqueue(waiter, *waiter.pool_);
    return;
  }
}

bool Pools::start(Waiter& waiter, ServerPool& server) {
  if (server.multiplexes()) return start_stream(waiter, server);
  if (use_idle(waiter, server)) return true;
  // TLS cannot move, and asking for it costs the other ring a connection: so only without a place.
  if (!server.shared->config().tls && borrow(waiter, server)) return true;
  if (!server.shared->open_place()) return false;
  connect(waiter, server);
  return true;
}

bool Pools::use_idle(Waiter& waiter, ServerPool& server) {
  H1Session* session = server.idle.pop_front();
  if (session == nullptr) return false;
  server.idle_changed(-1);
  session->wake();
  counters_.reuses.fetch_add(1, std::memory_order_relaxed);
  waiter.on_session(*session);
  return true;
}

base::Result<H1Session*> Pools::open(UpstreamPool& pool, ServerPool& server, Waiter* waiter) {
  const net::Address* address = server.next_address();
  H1Session* session = address == nullptr ? nullptr : sessions_.create(*this, server);
  base::Result<void> started;
  if (session == nullptr) {
    const ErrorCode code = address == nullptr ? ErrorCode::no_address : ErrorCode::pool_exhausted;
    started = std::unexpected(Error{code, Origin::self});
  } else if (server.shared->config().tls) {
    started = session->secure(pool.tls, pool.index);
  }
  if (started) started = session->connect(*address, waiter, pool.config->timeouts.connect_ms);
  if (!started) {
    if (session != nullptr) sessions_.destroy(session);
    server.shared->close_place();
    return std::unexpected(started.error());
  }
  counters_.connects.fetch_add(1, std::memory_order_relaxed);
  ++server.sessions;
  return session;
}

void Pools::connect(Waiter& waiter, ServerPool& server) {
  const base::Result<H1Session*> session = open(*waiter.pool_, server, &waiter);
  if (!session) return fail_open(waiter, session.error());
  waiter.state_ = Waiter::State::connecting;
  waiter.server_ = &server;
  waiter.session_ = *session;
}

void Pools::fail_open(Waiter& waiter, const Error& error) {
  if (error.code == ErrorCode::no_address) return fail(waiter, error, nullptr);
  fail_short(waiter, error);
}

// What is short is ours, so it is no server's failure. Access logs may be off, hence the line.
void Pools::fail_short(Waiter& waiter, const Error& error) {
  std::string text = "no connection to a server of ";
  text.append(waiter.pool_->config->name).append(": ").append(base::describe(error.code));
  if (error.code == ErrorCode::no_descriptors)
    text +=
        ": raise RLIMIT_NOFILE (LimitNOFILE= of systemd, ulimit -n) or lower limits.connections";
  logger_.log(base::LogLevel::warn, "upstream", text);
  fail(waiter, error, nullptr);
}

void Pools::fail(Waiter& waiter, const Error& error, ServerPool* server) {
  waiter.state_ = Waiter::State::none;
  waiter.session_ = nullptr;
  waiter.on_no_session(error, server == nullptr ? nullptr : server->shared.get());
}

// ---- queueing

void Pools::enqueue(Waiter& waiter, UpstreamPool& pool) {
  if (pool.queued >= pool.config->queue_max) {
    return fail(waiter, {ErrorCode::queue_full, Origin::self}, nullptr);
  }
  waiter.state_ = Waiter::State::queued;
  pool.queue.push_back(waiter);
  ++pool.queued;
  for (UpstreamPool::Member& member : pool.members) {
    member.server->shared->waiting(options_.ring_index).fetch_add(1);
    if (pool.queued == 1 && member.server->may_speak_h2()) ask_for_place(*member.server);
  }
  streams_.ring.timers().arm(waiter.timer_, pool.config->timeouts.queue_ms);
}

void Pools::leave_queue(Waiter& waiter) {
  waiter.unlink();
  waiter.state_ = Waiter::State::none;
  streams_.ring.timers().disarm(waiter.timer_);
  --waiter.pool_->queued;
  for (UpstreamPool::Member& member : waiter.pool_->members) {
    member.server->shared->waiting(options_.ring_index).fetch_sub(1);
  }
}

void Waiter::queue_timeout(void* self) {
  auto& waiter = *static_cast<Waiter*>(self);
  Pools& pools = *waiter.pool_->pools;
  pools.leave_queue(waiter);
  pools.fail(waiter, {ErrorCode::timed_out, Origin::self}, nullptr);
}

// A connection or a place of this server is free: for the first who waits for it here.
void Pools::serve_queue(ServerPool& server) {
  for (UpstreamPool* pool : server.users) {
    while (Waiter* waiter = pool->queue.front()) {
      if (server.multiplexes()) {
        if (!start_stream(*waiter, server)) return;
        continue;
      }
      bool place = server.idle_count > 0;
      if (!place && !server.shared->open_place()) return;
      leave_queue(*waiter);
      if (place) {
        use_idle(*waiter, server);
      } else {
        connect(*waiter, server);
      }
    }
  }
}

void Pools::abandon(Waiter& waiter) {
  switch (std::exchange(waiter.state_, Waiter::State::none)) {
    case Waiter::State::none:
      return;
    case Waiter::State::queued:
      waiter.state_ = Waiter::State::queued;
      leave_queue(waiter);
      return;
    case Waiter::State::connecting:
      waiter.session_->forget_waiter();
      waiter.session_ = nullptr;
      return;
    case Waiter::State::joined:
      return leave_joined(waiter);
    case Waiter::State::borrowing:
      waiter.borrow_->waiter = nullptr;
      waiter.borrow_ = nullptr;
      return;
  }
}

// ---- sessions

void Pools::became_idle(H1Session& session) {
  ServerPool& server = session.pool();
  const config::Upstream* config = server.users.empty() ? nullptr : server.users.front()->config;
  if (closing_ || config == nullptr || server.idle_count >= config->idle_max) {
    return session.close(false);
  }
  session.rest(config->idle_timeout_ms);
  server.idle.push_front(session);
  server.idle_changed(+1);
  serve_queue(server);
  if (server.idle_count == 0 || !(session.lendable() || session.secured())) return;
  if (session.base::ListHook<H1Session>::linked()) {
    unsigned ring = ring_with_waiter(server);
    if (ring == options_.ring_index) return;
    // Its place is all that the other ring can have of it.
    if (session.secured()) return session.close(false);
    session.base::ListHook<H1Session>::unlink();
    server.idle_changed(-1);
    session.release_to(ring, 0);
  }
}

void Pools::session_closed(H1Session& session) {
  ServerPool& server = session.pool();
  if (session.lend_token() != 0) {  // it was to be lent, but ended on the way
    post(session.lend_ring(), {.kind = message_lent,
                               .value = -1,
                               .a = session.lend_token(),
                               .object = server.shared.get()});
  }
  sessions_.destroy(&session);
  --server.sessions;
  server.shared->close_place();
  // Also while the worker drains: requests that wait here are to be served still.
  serve_queue(server);
  if (unsigned ring = ring_with_waiter(server); ring != options_.ring_index) {
    post(ring, {.kind = message_place_free, .object = server.shared.get()});
  }
  if (server.users.empty()) sweep();
}

std::size_t Pools::session_bytes() {
  return sizeof(H1Session);
}

std::size_t Pools::stream_bytes() {
  return sizeof(H2Stream);
}

void Pools::close_idle() {
  closing_ = true;
  for (const auto& server : servers_) {
    while (H1Session* session = server->idle.front())
      session->close(false);
    quit_idle(*server);
  }
}

}  // namespace ringside::upstream
