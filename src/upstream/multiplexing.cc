// Servers that speak HTTP/2: requests that share connections.
#include <algorithm>
#include <string>
#include <utility>

#include "ringside/upstream/pools.h"

#include "h1_session.h"
#include "h2_parts.h"
#include "server_pool.h"

namespace ringside::upstream {

using base::Error;
using base::ErrorCode;
using base::Origin;
using base::Retry;

namespace {

// Another connection is made when no more than one in so many streams of one are free.
constexpr std::uint32_t spare_part = 4;
// After a connect that failed the next one waits for a request.
constexpr base::Millis spare_pause_ms = 1'000;

}  // namespace

// The first that is not nearly full, so that the last ones become idle when there is less to do;
// else the one with most room.
H2Session* ServerPool::session_with_room() {
  H2Session* first = nullptr;
  H2Session* most = nullptr;
  std::uint32_t most_room = 0;
  shared_sessions.for_each([&](H2Session& session) {
    const std::uint32_t room = session.room();
    if (first == nullptr && room * spare_part > room + session.streams()) first = &session;
    if (room > most_room) most = &session;
    most_room = std::max(most_room, room);
  });
  return first != nullptr ? first : most;
}

// ---- requests

// Also for one from the queue, who stays there when it is false.
bool Pools::start_stream(Waiter& waiter, ServerPool& server) {
  H2Session* session = server.session_with_room();
  const bool connects = session == nullptr && !server.may_join();
  if (connects && !server.shared->open_place()) return false;
  if (waiter.queued()) leave_queue(waiter);
  if (session != nullptr) {
    counters_.reuses.fetch_add(1, std::memory_order_relaxed);
    give_stream(waiter, *session);
    connect_ahead(server);
    return true;
  }
  if (connects) {
    const base::Result<H1Session*> opened = open(*waiter.pool_, server, nullptr);
    if (!opened) {
      fail_open(waiter, opened.error());
      return true;
    }
    ++server.connecting;
  }
  join(waiter, server);
  return true;
}

void Pools::give_stream(Waiter& waiter, H2Session& session) {
  H2Stream* stream = session.open();
  if (stream == nullptr) return fail_short(waiter, {ErrorCode::pool_exhausted, Origin::self});
  waiter.state_ = Waiter::State::none;
  waiter.on_session(*stream);
}

void Pools::join(Waiter& waiter, ServerPool& server) {
  waiter.state_ = Waiter::State::joined;
  waiter.server_ = &server;
  server.joined.push_back(waiter);
  ++server.joined_count;
}

void Pools::leave_joined(Waiter& waiter) {
  waiter.unlink();
  waiter.state_ = Waiter::State::none;
  --waiter.server_->joined_count;
}

void Pools::serve_joined(ServerPool& server) {
  while (!server.joined.empty()) {
    H2Session* session = server.session_with_room();
    if (session == nullptr) break;
    Waiter& waiter = *server.joined.front();
    leave_joined(waiter);
    give_stream(waiter, *session);
  }
  // They are more than were reckoned with, as the server allows fewer streams.
  if (server.connecting == 0) start_again(server);
}

void Pools::start_again(ServerPool& server) {
  base::IntrusiveList<Waiter, Waiter> waiters;
  waiters.splice_back(server.joined);
  while (Waiter* waiter = waiters.pop_front()) {
    leave_joined(*waiter);
    if (!start(*waiter, server)) enqueue(*waiter, *waiter->pool_);
  }
}

// ---- connections

// Before those that there are have no room left, or when the last one goes away.
void Pools::connect_ahead(ServerPool& server) {
  if (closing_ || server.users.empty() || server.connecting != 0) return;
  std::uint32_t room = 0;
  std::uint32_t most = 0;
  server.shared_sessions.for_each([&](H2Session& session) {
    room += session.room();
    most = std::max(most, session.room() + session.streams());
  });
  if (most != 0 && (most < spare_part || room * spare_part >= most)) return;
  const base::Millis now_ms = streams_.ring.now_ms();
  if (now_ms < server.spare_after_ms || !server.shared->open_place()) return;
  if (open(*server.users.front(), server, nullptr))
    ++server.connecting;
  else
    server.spare_after_ms = now_ms + spare_pause_ms;
}

void Pools::connected(H1Session& session) {
  ServerPool& server = session.pool();
  const bool h2 = session.speaks_h2();
  if (!h2 && server.must_speak_h2()) {
    logger_.log(base::LogLevel::warn, "upstream",
                "server " + server.shared->config().endpoint.text +
                    ": does not take \"h2\" by ALPN, and protocol = \"h2\" allows nothing else");
    return session.fail_connect({ErrorCode::unsupported, Origin::upstream, Retry::yes});
  }
  server.spoken = h2 ? ServerPool::Spoken::h2 : ServerPool::Spoken::http1;
  if (h2) return become_h2(session);
  if (!session.take_joinable()) return session.hand_out();
  --server.connecting;
  // One of them can have it, the others get one each.
  if (Waiter* waiter = server.joined.front()) {
    leave_joined(*waiter);
    waiter->on_session(session);
  } else {
    became_idle(session);
  }
  start_again(server);
}

void Pools::become_h2(H1Session& session) {
  ServerPool& server = session.pool();
  H2Session* h2 = h2_->sessions.create(*this, session);
  const config::Upstream* config = server.config();
  if (h2 == nullptr || config == nullptr || !h2->start(config->timeouts.connect_ms)) {
    if (h2 != nullptr) h2_->sessions.destroy(h2);
    return session.fail_connect({ErrorCode::no_memory, Origin::self});
  }
}

// No request before the server's SETTINGS: they say how many it takes, and that it speaks HTTP/2.
void Pools::greeted(H2Session& session) {
  ServerPool& server = session.pool();
  server.shared_sessions.push_back(session);
  server.shared->multiplexed(options_.ring_index).fetch_add(1);
  H1Session& transport = session.transport();
  if (transport.take_joinable()) --server.connecting;
  if (Waiter* waiter = transport.take_waiter()) give_stream(*waiter, session);
  serve_joined(server);
}

void Pools::not_greeted(H2Session& session, const Error& error) {
  ServerPool& server = session.pool();
  H1Session& transport = session.transport();
  Waiter* waiter = transport.take_waiter();
  const Error failed{error.code, Origin::upstream, Retry::yes, error.sys_errno};
  if (waiter != nullptr) fail(*waiter, failed, &server);
  if (transport.take_joinable()) connect_failed(server, failed);
}

void Pools::connect_failed(ServerPool& server, const Error& error) {
  server.spare_after_ms = streams_.ring.now_ms() + spare_pause_ms;
  if (--server.connecting != 0) return;
  base::IntrusiveList<Waiter, Waiter> waiters;
  waiters.splice_back(server.joined);
  ServerPool* tried = error.origin == Origin::self ? nullptr : &server;
  while (Waiter* waiter = waiters.pop_front()) {
    leave_joined(*waiter);
    if (H2Session* session = server.session_with_room())
      give_stream(*waiter, *session);
    else
      fail(*waiter, error, tried);
  }
}

// It takes no request any more.
void Pools::unlist(H2Session& session) {
  auto& hook = static_cast<base::ListHook<H2Session>&>(session);
  if (!hook.linked()) return;
  hook.unlink();
  session.pool().shared->multiplexed(options_.ring_index).fetch_sub(1);
}

void Pools::streams_freed(H2Session& session) {
  serve_queue(session.pool());
}

void Pools::became_idle(H2Session& session) {
  ServerPool& server = session.pool();
  const config::Upstream* config = server.config();
  std::uint32_t idle = 0;
  server.shared_sessions.for_each([&](H2Session& other) { idle += other.streams() == 0 ? 1 : 0; });
  // Where the server takes no stream at all there is nothing to keep.
  const bool kept =
      !closing_ && config != nullptr && idle <= config->idle_max && session.room() != 0;
  if (!kept || ring_with_waiter(server) != options_.ring_index) return session.quit();
  session.rest(config->idle_timeout_ms);
}

void Pools::h2_closed(H2Session& session) {
  H1Session& transport = session.transport();
  h2_->sessions.destroy(&session);
  session_closed(transport);
}

void Pools::quit_idle(ServerPool& server) {
  server.shared_sessions.for_each([](H2Session& session) {
    if (session.streams() == 0) session.quit();
  });
}

// ---- places

// Its connections may all be other rings', and a connection in use by several requests is never
// idle by chance: so they are asked.
void Pools::ask_for_place(ServerPool& server) {
  if (options_.peers == nullptr || server.shared->config().connections_max == 0) return;
  for (unsigned step = 1; step < options_.rings; ++step) {
    const unsigned ring = (options_.ring_index + step) % options_.rings;
    if (server.shared->multiplexed(ring).load() == 0) continue;
    post(ring, {.kind = message_place_wanted, .object = server.shared.get()});
  }
}

// The one with the fewest requests takes no more, and closes behind them.
void Pools::place_wanted(ServerPool& server) {
  H2Session* least = nullptr;
  server.shared_sessions.for_each([&](H2Session& session) {
    if (least == nullptr || session.streams() < least->streams()) least = &session;
  });
  if (least != nullptr) least->quit();
}

}  // namespace ringside::upstream
