// The server connections of one ring: choosing a server, reusing, lending, connecting, queueing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "ringside/base/error.h"
#include "ringside/base/intrusive_list.h"
#include "ringside/base/logger.h"
#include "ringside/base/slab.h"
#include "ringside/base/timer_wheel.h"
#include "ringside/config/snapshot.h"
#include "ringside/http/parser.h"
#include "ringside/net/stream.h"
#include "ringside/ring/mailbox.h"
#include "ringside/upstream/directory.h"
#include "ringside/upstream/peers.h"
#include "ringside/upstream/session.h"

namespace ringside::tls {
class Contexts;
}  // namespace ringside::tls

namespace ringside::upstream {

class H1Session;
class H2Session;
class H2Stream;
class ServerPool;
struct H2Parts;
struct UpstreamPool;
class Pools;
class Waiter;

// A connection that another ring was asked for.
struct Borrow {
  Waiter* waiter;  // null once it is not wanted any more
  ServerPool* server;
};

struct PoolCounters {
  std::atomic<std::uint64_t> connects{0};
  std::atomic<std::uint64_t> reuses{0};
  std::atomic<std::uint64_t> borrowed{0};
  std::atomic<std::uint64_t> lent{0};
};

// Somebody who wants a connection. Exactly one of the two is called for each acquire(), perhaps
// before acquire() returns, unless abandon() comes first.
class Waiter : public base::ListHook<Waiter> {
 public:
  virtual void on_session(Session& session) = 0;
  // code: no_address, queue_full, timed_out (queue or connect), refused, unreachable, ... `server`
  // is the one that was tried; null: none was.
  virtual void on_no_session(const base::Error& error, SharedServer* server) = 0;
  bool waiting() const { return state_ != State::none; }
  // Waiting for a place, not for a connect.
  bool queued() const { return state_ == State::queued; }

 protected:
  Waiter() : timer_(&Waiter::queue_timeout, this) {}
  virtual ~Waiter() = default;  // friends could reach it

 private:
  friend class Pools;
  friend class ServerPool;
  friend class H1Session;
  enum class State : std::uint8_t { none, queued, borrowing, connecting, joined };
  static void queue_timeout(void* self);

  State state_ = State::none;
  UpstreamPool* pool_ = nullptr;
  ServerPool* server_ = nullptr;
  H1Session* session_ = nullptr;  // that connects for us
  Borrow* borrow_ = nullptr;      // that another ring was asked for
  base::Timer timer_;
};

// The pools of one configuration on one ring: which servers each upstream has. Exchanges that began
// with it keep it.
struct PoolTable {
  PoolTable() = default;
  ~PoolTable();
  PoolTable(const PoolTable&) = delete;
  PoolTable& operator=(const PoolTable&) = delete;
  std::vector<std::unique_ptr<UpstreamPool>> upstreams;
  Pools* pools = nullptr;
};

struct PoolsOptions {
  unsigned ring_index = 0;
  unsigned rings = 1;
  Peers* peers = nullptr;
  std::uint32_t sessions_max = 20'000;
  std::uint32_t streams_max = 80'000;  // of all HTTP/2 connections
  http::HeadLimits limits;             // of response heads
  // What a server may send of an HTTP/2 response before its client has taken it.
  std::uint32_t window_bytes = 256 * 1024;
};

// Owner: the worker; its ring's thread. Destroyed when idle(): close_idle(), then let the loop run.
class Pools {
 public:
  // Message kinds from `first_message` to `last_message` are ours: the worker hands them to
  // on_message.
  enum MessageKind : std::uint32_t {
    message_lend = 100,    // a: the borrower's token, value: its ring
    message_lent,          // a: the token, value: descriptor or -1
    message_give,          // value: descriptor, for whoever waits
    message_place_free,    // a server's place is free: serve your queue
    message_place_wanted,  // somebody waits for one: let an HTTP/2 connection of yours end
  };
  static constexpr std::uint32_t first_message = message_lend;
  static constexpr std::uint32_t last_message = message_place_wanted;

  Pools(net::StreamContext& streams, base::Logger& logger, const PoolsOptions& options);
  ~Pools();
  Pools(const Pools&) = delete;
  Pools& operator=(const Pools&) = delete;

  // A table for this configuration. Servers that another table has are shared with it. `snapshot`
  // and `directory` outlive it.
  // `contexts` may be null where no server has https://; it outlives the table.
  std::unique_ptr<PoolTable> make_table(const config::Snapshot& snapshot,
                                        const Directory& directory,
                                        tls::Contexts* contexts = nullptr);

  // `avoid` (may be null): a server that just failed; it is taken only when there is no other.
  void acquire(Waiter& waiter, PoolTable& table, std::uint32_t upstream, const SharedServer* avoid);
  void abandon(Waiter& waiter);

  void on_message(const ring::Message& message);

  // No connection is kept any more; those in use close when they finish.
  void close_idle();
  static std::size_t session_bytes();
  // What one more request at a time takes on HTTP/2 connections.
  static std::size_t stream_bytes();
  std::size_t sessions() const { return sessions_.in_use(); }
  // Nothing is open, asked for or still to be posted.
  bool idle() const { return sessions() == 0 && borrows_.in_use() == 0 && unsent_.empty(); }
  const PoolCounters& counters() const { return counters_; }

 private:
  friend class H1Session;
  friend class H2Session;
  friend class H2Stream;
  friend class ServerPool;
  friend class Waiter;
  friend struct PoolTable;
  ServerPool* find(const SharedServer* server);
  ServerPool& find_or_make(const std::shared_ptr<SharedServer>& server);
  ServerPool* choose(UpstreamPool& pool, const SharedServer* avoid);
  // Gets the waiter going at this server; false: the server has no place for it.
  bool start(Waiter& waiter, ServerPool& server);
  bool use_idle(Waiter& waiter, ServerPool& server);
  bool borrow(Waiter& waiter, ServerPool& server);
  void look_again(Waiter& waiter);
  // These two when a place was taken, which they give back where they fail.
  void connect(Waiter& waiter, ServerPool& server);
  base::Result<H1Session*> open(UpstreamPool& pool, ServerPool& server, Waiter* waiter);
  void enqueue(Waiter& waiter, UpstreamPool& pool);
  void leave_queue(Waiter& waiter);
  void fail(Waiter& waiter, const base::Error& error, ServerPool* server);
  void fail_short(Waiter& waiter, const base::Error& error);
  void fail_open(Waiter& waiter, const base::Error& error);
  void serve_queue(ServerPool& server);
  // What H1Session reports of itself.
  void became_idle(H1Session& session);
  void session_closed(H1Session& session);
  void session_released(H1Session& session, int fd);
  // With servers that speak HTTP/2 (multiplexing.cc).
  bool start_stream(Waiter& waiter, ServerPool& server);
  void give_stream(Waiter& waiter, H2Session& session);
  void join(Waiter& waiter, ServerPool& server);
  void leave_joined(Waiter& waiter);
  void serve_joined(ServerPool& server);
  void start_again(ServerPool& server);
  // It is made before the others are full.
  void connect_ahead(ServerPool& server);
  void connected(H1Session& session);
  void become_h2(H1Session& session);
  // What H2Session reports of itself.
  void greeted(H2Session& session);
  void not_greeted(H2Session& session, const base::Error& error);
  void connect_failed(ServerPool& server, const base::Error& error);
  void unlist(H2Session& session);
  void streams_freed(H2Session& session);
  void became_idle(H2Session& session);
  void h2_closed(H2Session& session);
  void ask_for_place(ServerPool& server);
  void place_wanted(ServerPool& server);
  void quit_idle(ServerPool& server);
  // Between rings.
  unsigned ring_with_idle(ServerPool& server) const;
  unsigned ring_with_waiter(ServerPool& server) const;
  H1Session* adopt(ServerPool& server, int fd);
  void lend(const ring::Message& message);
  void borrowed(const ring::Message& message);
  void given(const ring::Message& message);
  void post(unsigned ring, const ring::Message& message);
  static void retry_mail(void* self);
  void drop_table(PoolTable& table);
  void sweep();

  net::StreamContext& streams_;
  base::Logger& logger_;
  PoolsOptions options_;
  base::Slab<H1Session> sessions_;
  std::unique_ptr<H2Parts> h2_;
  base::Slab<Borrow> borrows_;
  std::vector<std::unique_ptr<ServerPool>> servers_;
  struct Mail {
    unsigned ring;
    ring::Message message;
  };
  std::vector<Mail> unsent_;
  base::Timer mail_timer_;
  PoolCounters counters_;
  bool closing_ = false;
};

}  // namespace ringside::upstream
