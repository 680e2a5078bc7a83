// Connections that move between the pools of two rings.
#include <utility>

#include "ringside/upstream/pools.h"

#include "h1_session.h"
#include "server_pool.h"

namespace ringside::upstream {

namespace {
constexpr base::Millis mail_retry_ms = 1;
}

unsigned Pools::ring_with_idle(ServerPool& server) const {
  for (unsigned step = 1; step < options_.rings; ++step) {
    unsigned ring = (options_.ring_index + step) % options_.rings;
    if (server.shared->idle(ring).load() > 0) return ring;
  }
  return options_.ring_index;
}

unsigned Pools::ring_with_waiter(ServerPool& server) const {
  if (options_.peers == nullptr) return options_.ring_index;
  for (unsigned step = 1; step < options_.rings; ++step) {
    unsigned ring = (options_.ring_index + step) % options_.rings;
    if (server.shared->waiting(ring).load() > 0) return ring;
  }
  return options_.ring_index;
}

// Asks a ring that has idle connections for one, before a new one is opened: N rings must not mean
// N times the connections.
bool Pools::borrow(Waiter& waiter, ServerPool& server) {
  if (options_.peers == nullptr) return false;
  unsigned ring = ring_with_idle(server);
  if (ring == options_.ring_index) return false;
  Borrow* borrow = borrows_.create(&waiter, &server);
  if (borrow == nullptr) return false;
  ring::Message message{.kind = message_lend,
                        .value = static_cast<std::int32_t>(options_.ring_index),
                        .a = reinterpret_cast<std::uint64_t>(borrow),
                        .object = server.shared.get()};
  if (!options_.peers->post(&streams_.ring, ring, message)) {
    borrows_.destroy(borrow);
    return false;
  }
  ++server.borrows;
  waiter.state_ = Waiter::State::borrowing;
  waiter.server_ = &server;
  waiter.borrow_ = borrow;
  return true;
}

// Another ring asks. The answer comes from session_released, or at once when there is nothing to
// lend.
void Pools::lend(const ring::Message& message) {
  auto ring = static_cast<unsigned>(message.value);
  ServerPool* server = find(static_cast<SharedServer*>(message.object));
  H1Session* session = server == nullptr || closing_ ? nullptr : server->idle.back();
  // A place may be what the other ring is short of.
  if (session != nullptr && session->secured()) session->close(false);
  if (session == nullptr || !session->lendable()) {
    ring::Message none{.kind = message_lent, .value = -1, .a = message.a, .object = message.object};
    return post(ring, none);
  }
  session->base::ListHook<H1Session>::unlink();
  server->idle_changed(-1);
  session->release_to(ring, message.a);
}

void Pools::session_released(H1Session& session, int fd) {
  ServerPool& server = session.pool();
  unsigned ring = session.lend_ring();
  std::uint64_t token = session.lend_token();
  sessions_.destroy(&session);
  --server.sessions;
  counters_.lent.fetch_add(1, std::memory_order_relaxed);
  ring::Message message{.kind = token == 0 ? message_give : message_lent,
                        .value = fd,
                        .a = token,
                        .object = server.shared.get()};
  post(ring, message);  // the connection's place goes with it
  if (server.users.empty()) sweep();
}

H1Session* Pools::adopt(ServerPool& server, int fd) {
  H1Session* session = sessions_.create(*this, server);
  if (session != nullptr && session->adopt(fd)) {
    ++server.sessions;
    counters_.borrowed.fetch_add(1, std::memory_order_relaxed);
    return session;
  }
  if (session != nullptr) sessions_.destroy(session);
  streams_.sys.close(fd);
  server.shared->close_place();
  return nullptr;
}

void Pools::borrowed(const ring::Message& message) {
  auto* borrow = reinterpret_cast<Borrow*>(message.a);
  Waiter* waiter = borrow->waiter;
  ServerPool& server = *borrow->server;
  borrows_.destroy(borrow);
  --server.borrows;
  H1Session* session = message.value >= 0 ? adopt(server, message.value) : nullptr;
  if (waiter == nullptr) {  // it left meanwhile
    if (session != nullptr) became_idle(*session);
    if (server.users.empty()) sweep();
    return;
  }
  waiter->state_ = Waiter::State::none;
  waiter->borrow_ = nullptr;
  if (session != nullptr) return waiter->on_session(*session);
  if (use_idle(*waiter, server)) return;
  if (server.shared->open_place()) return connect(*waiter, server);
  enqueue(*waiter, *waiter->pool_);
}

void Pools::given(const ring::Message& message) {
  auto* shared = static_cast<SharedServer*>(message.object);
  ServerPool* server = find(shared);
  if (server == nullptr) {
    streams_.sys.close(message.value);
    shared->close_place();
    return;
  }
  if (H1Session* session = adopt(*server, message.value)) became_idle(*session);
}

void Pools::on_message(const ring::Message& message) {
  switch (message.kind) {
    case message_lend:
      return lend(message);
    case message_lent:
      return borrowed(message);
    case message_give:
      return given(message);
    case message_place_wanted:
      if (ServerPool* server = find(static_cast<SharedServer*>(message.object)))
        place_wanted(*server);
      return;
    default:
      if (ServerPool* server = find(static_cast<SharedServer*>(message.object))) {
        serve_queue(*server);
      }
  }
}

// What cannot be posted now (the other ring's mailbox is full) is posted later: a descriptor or an
// answer must not be lost.
void Pools::post(unsigned ring, const ring::Message& message) {
  if (unsent_.empty() && options_.peers->post(&streams_.ring, ring, message)) return;
  unsent_.push_back({ring, message});
  streams_.ring.timers().arm(mail_timer_, mail_retry_ms);
}

void Pools::retry_mail(void* self) {
  auto& pools = *static_cast<Pools*>(self);
  std::vector<Mail> mail = std::exchange(pools.unsent_, {});
  for (const Mail& item : mail) {
    if (pools.options_.peers->post(&pools.streams_.ring, item.ring, item.message)) continue;
    if (pools.closing_ && item.message.kind != message_lend) {
      // The other ring has ended.
      if (item.message.kind < message_place_free && item.message.value >= 0) {
        pools.streams_.sys.close(item.message.value);
        static_cast<SharedServer*>(item.message.object)->close_place();
      }
      continue;
    }
    pools.unsent_.push_back(item);
  }
  if (!pools.unsent_.empty()) pools.streams_.ring.timers().arm(pools.mail_timer_, mail_retry_ms);
}

}  // namespace ringside::upstream
