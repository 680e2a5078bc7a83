#include "acceptor.h"

#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include "h1_client.h"

namespace ringside::proxy {

namespace {
// After a shortage: long enough not to spin, short enough that nobody notices once it is over.
constexpr base::Millis pause_ms = 100;
// In one turn: connections that are there already have a turn to themselves too.
constexpr unsigned turn_most = 64;
// At the end: as many as any queue holds (net.core.somaxconn is 16 bits for a listener's backlog).
constexpr unsigned queue_most = 1U << 16;

bool is_shortage(int negative_errno) {
  return negative_errno == -EMFILE || negative_errno == -ENFILE || negative_errno == -ENOMEM ||
         negative_errno == -ENOBUFS;
}

const char* no_place(const config::Limits& limits) {
  if (limits.connections_max != 0)
    return "a connection was closed at once: limits.connections is reached";
  return "a connection was closed at once: limits.connections is reached, which follows "
         "RLIMIT_NOFILE: raise that (LimitNOFILE= of systemd, ulimit -n), or set it";
}

// A unix listener is shared by the rings, so it stays as the others want it.
unsigned fast_of(net::SysPort& sys, int fd, unsigned fast) {
  const base::Result<net::Address> address = sys.local_address(fd);
  return address && address->family() != AF_UNIX ? fast : 0;
}

}  // namespace

Acceptor::Acceptor(Context& context, std::uint32_t listen, int fd, unsigned fast)
    : context_(context),
      timer_(&Acceptor::resume, this),
      pace_(fast_of(context.sys, fd, fast)),
      listen_(listen),
      fd_(fd) {}

bool Acceptor::start() {
  if (!context_.ring.attach(*this)) {
    context_.sys.close(fd_);
    closed_ = true;
    return false;
  }
  arm();
  return true;
}

void Acceptor::arm() {
  armed_ = true;
  context_.ring.accept_multishot(*this, kind_accept, fd_);
}

void Acceptor::resume(void* self) {
  auto& acceptor = *static_cast<Acceptor*>(self);
  if (!acceptor.closing_ && !acceptor.armed_) acceptor.arm();
}

// False: the connection is one too many of its address. A trusted proxy stands for many clients and
// is not counted, nor is who comes over a unix socket.
bool Acceptor::admit(int fd, std::optional<net::Address>& peer, AddressPlace& place) {
  const std::uint32_t most = context_.runtime->snapshot().limits.connections_per_address_max;
  if (most == 0 || context_.addresses == nullptr) return true;
  if (!peer) {
    if (base::Result<net::Address> named = context_.sys.peer_address(fd); named) peer = *named;
  }
  if (!peer) return true;  // gone already
  const std::optional<AddressKey> key = AddressKey::of(*peer);
  if (!key) return true;
  char text[64];
  const std::string_view ip(text, peer->write_ip(text, sizeof text));
  if (context_.runtime->runtime->trusted.trusts(ip)) return true;
  if (context_.addresses->enter(*key, most)) {
    place = AddressPlace(*context_.addresses, *key);
    return true;
  }
  count(context_.counters.connections_over_address);
  context_.logger.log(base::LogLevel::warn, "accept_address",
                      "a connection was closed at once: " + std::string(ip) +
                          " has limits.connections_per_address");
  return false;
}

void Acceptor::take(int fd, std::optional<net::Address> peer) {
  AddressPlace place;
  if (!admit(fd, peer, place)) return context_.sys.close(fd);
  H1Client* client = context_.clients.create(context_, listen_);
  if (client != nullptr && client->adopt(fd, peer ? &*peer : nullptr, std::move(place))) {
    count(context_.counters.accepted);
    context_.all_clients().push_back(*client);
    if (context_.draining) client->drain(context_.drain_grace_ms);
    return;
  }
  if (client != nullptr) context_.clients.destroy(client);
  count(context_.counters.connections_shed);
  context_.logger.log(base::LogLevel::warn, "accept",
                      no_place(context_.runtime->snapshot().limits));
  context_.sys.close(fd);
}

// What waits in the queue of a non-blocking listener. 0, or what else than its end stopped it.
int Acceptor::take_waiting(unsigned most, unsigned& taken) {
  for (unsigned i = 0; i < most; ++i) {
    net::Address peer;
    const int fd = context_.sys.accept_now(fd_, peer);
    if (fd == -EAGAIN) return 0;
    if (is_shortage(fd)) return fd;
    if (fd < 0) continue;  // it broke before it was accepted
    take(fd, peer);
    ++taken;
  }
  return 0;
}

void Acceptor::begin_turns() {
  disarming_ = false;
  if (context_.sys.set_nonblocking(fd_, true) < 0) {
    pace_.reset();
    return arm();
  }
  context_.ring.each_turn(*this);
}

void Acceptor::end_turns() {
  unlink();
  context_.sys.set_nonblocking(fd_, false);
}

void Acceptor::run_turn() {
  unsigned taken = 0;
  const int result = take_waiting(turn_most, taken);
  count(context_.counters.accepted_in_turns, taken);
  pace_.note(context_.ring.now_ms(), taken);
  if (result == 0 && pace_.in_turns()) return;
  end_turns();
  pace_.reset();
  result == 0 ? arm() : pause(result);
}

void Acceptor::pause(int negative_errno) {
  count(context_.counters.accept_errors);
  const char* why = "accepting pauses: error ";
  if (negative_errno == -EMFILE || negative_errno == -ENFILE) {
    why = "accepting pauses: out of file descriptors, errno ";
  }
  context_.logger.log(base::LogLevel::error, "accept", why + std::to_string(-negative_errno));
  context_.ring.timers().arm(timer_, pause_ms);
}

void Acceptor::close() {
  if (closing_ || closed_) return;
  closing_ = true;
  context_.ring.timers().disarm(timer_);
  if (linked()) end_turns();
  if (armed_)
    context_.ring.cancel(*this, kind_accept, kind_cancel);
  else if (in_flight() == 0)
    finish();
}

void Acceptor::finish() {
  if (close_submitted_) return;
  close_submitted_ = true;
  if (context_.sys.set_nonblocking(fd_, true) == 0) {
    unsigned taken = 0;
    take_waiting(queue_most, taken);
    context_.sys.set_nonblocking(fd_, false);
  }
  context_.ring.close(*this, kind_close, fd_);
}

void Acceptor::on_complete(std::uint8_t kind, const ring::Completion& completion) {
  if (kind == kind_close) {
    // The kernel refused to take the operation: the descriptor is still ours.
    if (completion.result == -EBUSY) context_.sys.close(fd_);
    closed_ = true;
    context_.ring.detach(*this);
    return;
  }
  if (kind == kind_cancel && completion.result == -EBUSY && armed_) {
    context_.ring.cancel(*this, kind_accept, kind_cancel);
    return;
  }
  if (kind == kind_accept) on_accept(completion);
  if (closing_ && in_flight() == 0) finish();
}

void Acceptor::on_accept(const ring::Completion& completion) {
  if (!completion.more()) armed_ = false;
  if (completion.result >= 0) {
    take(completion.result, std::nullopt);
    pace_.note(context_.ring.now_ms(), 1);
  }
  if (closing_) return;
  if (armed_) {
    if (!pace_.in_turns() || disarming_) return;
    disarming_ = true;
    return context_.ring.cancel(*this, kind_accept, kind_cancel);
  }
  if (completion.result == -EBUSY || is_shortage(completion.result)) {
    disarming_ = false;
    pace_.reset();
    return pause(completion.result);
  }
  // A connection that broke before it was accepted is not our trouble.
  pace_.in_turns() ? begin_turns() : arm();
}

}  // namespace ringside::proxy
