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

const char* no_place(const config::Limits& limits) {
  if (limits.connections_max != 0)
    return "a connection was closed at once: limits.connections is reached";
  return "a connection was closed at once: limits.connections is reached, which follows "
         "RLIMIT_NOFILE: raise that (LimitNOFILE= of systemd, ulimit -n), or set it";
}

}  // namespace

Acceptor::Acceptor(Context& context, std::uint32_t listen, int fd)
    : context_(context), timer_(&Acceptor::resume, this), listen_(listen), fd_(fd) {}

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
bool Acceptor::admit(int fd, AddressPlace& place) {
  const std::uint32_t most = context_.runtime->snapshot().limits.connections_per_address_max;
  if (most == 0 || context_.addresses == nullptr) return true;
  const base::Result<net::Address> peer = context_.sys.peer_address(fd);
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

void Acceptor::take(int fd) {
  AddressPlace place;
  if (!admit(fd, place)) return context_.sys.close(fd);
  H1Client* client = context_.clients.create(context_, listen_);
  if (client != nullptr && client->adopt(fd, std::move(place))) {
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
  if (armed_)
    context_.ring.cancel(*this, kind_accept, kind_cancel);
  else if (in_flight() == 0)
    finish();
}

void Acceptor::finish() {
  if (close_submitted_) return;
  close_submitted_ = true;
  for (int fd = context_.sys.accept_now(fd_); fd >= 0; fd = context_.sys.accept_now(fd_))
    take(fd);
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
  if (kind == kind_accept) {
    if (!completion.more()) armed_ = false;
    if (completion.result >= 0) take(completion.result);
    if (!armed_ && !closing_) {
      switch (completion.result) {
        case -EMFILE:
        case -ENFILE:
        case -ENOMEM:
        case -ENOBUFS:
        case -EBUSY:
          pause(completion.result);
          break;
        default:
          arm();  // a connection that broke before it was accepted is not our trouble
      }
    }
  }
  if (closing_ && in_flight() == 0) finish();
}

}  // namespace ringside::proxy
