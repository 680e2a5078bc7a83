#include "ringside/net/listener_set.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

namespace ringside::net {

namespace {

constexpr unsigned bind_tries = 20;
constexpr unsigned bind_pause_ms = 50;

std::optional<Address> address_of(const config::Endpoint& endpoint) {
  if (endpoint.kind == config::Endpoint::Kind::unix_socket)
    return Address::from_unix(endpoint.path);
  return Address::from_ip(endpoint.host, endpoint.port);
}

// Binds one socket and listens. A failure's errno, or the descriptor.
base::Result<int> open_one(SysPort& sys, const Address& address, const config::Listen& listen) {
  base::Result<int> fd = sys.open_stream_socket(address.family());
  if (!fd) return fd;
  auto fail = [&](int result) -> base::Result<int> {
    sys.close(*fd);
    return std::unexpected(base::from_errno(-result));
  };
  if (address.family() == AF_UNIX) {
    if (int result = sys.remove_stale_unix_socket(address); result < 0) return fail(result);
  } else {
    sys.set_option(*fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (int result = sys.set_option(*fd, SOL_SOCKET, SO_REUSEPORT, 1); result < 0) {
      return fail(result);
    }
    // Inherited by accepted connections: a response must not wait for the peer's ACK.
    sys.set_option(*fd, IPPROTO_TCP, TCP_NODELAY, 1);
    if (listen.defer_accept_ms != 0) {
      auto seconds = static_cast<int>(listen.defer_accept_ms / 1000);
      if (int result = sys.set_option(*fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, seconds); result < 0)
        return fail(result);
    }
    // "[::]" is IPv6 only, so that "0.0.0.0" beside it is not busy.
    if (address.family() == AF_INET6) sys.set_option(*fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
  }
  if (int result = sys.bind(*fd, address); result < 0) return fail(result);
  if (int result = sys.listen(*fd, static_cast<int>(listen.backlog)); result < 0)
    return fail(result);
  return fd;
}

base::Result<int> open_patiently(SysPort& sys, const Address& address, const config::Listen& listen,
                                 void (*sleep_ms)(unsigned)) {
  for (unsigned tries = 1;; ++tries) {
    base::Result<int> fd = open_one(sys, address, listen);
    if (fd || fd.error().sys_errno != EADDRINUSE || tries == bind_tries) return fd;
    sleep_ms(bind_pause_ms);
  }
}

}  // namespace

std::vector<BindFailure> ListenerSet::open(const config::Snapshot& snapshot, unsigned rings,
                                           void (*sleep_ms)(unsigned)) {
  std::vector<BindFailure> failures;
  for (std::uint32_t index = 0; index < snapshot.listens.size(); ++index) {
    const config::Listen& listen = snapshot.listens[index];
    for (const config::Endpoint& endpoint : listen.addresses) {
      BoundListener bound{.listen = index, .address = {}, .descriptors = {}};
      auto report = [&](const base::Error& error) {
        failures.push_back({error, "listen." + listen.name + ": " + endpoint.text + ": " +
                                       std::strerror(error.sys_errno)});
      };
      std::optional<Address> address = address_of(endpoint);
      if (!address) {
        report(base::from_errno(EINVAL));
        continue;
      }
      bound.address = *address;
      for (unsigned ring = 0; ring < rings; ++ring) {
        // A unix path can be bound once: the rings share that socket.
        bool share = address->family() == AF_UNIX && ring > 0;
        base::Result<int> fd = share ? sys_.duplicate(bound.descriptors.front())
                                     : open_patiently(sys_, bound.address, listen, sleep_ms);
        if (!fd) {
          report(fd.error());
          break;
        }
        bound.descriptors.push_back(*fd);
        // Port 0: the kernel chose; the other rings' sockets must share that port.
        if (base::Result<Address> real = sys_.local_address(*fd); real) bound.address = *real;
      }
      listeners_.push_back(std::move(bound));
    }
  }
  if (!failures.empty()) close_all();
  return failures;
}

void ListenerSet::close_all() {
  for (const BoundListener& listener : listeners_) {
    for (int fd : listener.descriptors)
      sys_.close(fd);
  }
  listeners_.clear();
}

std::vector<BoundListener> ListenerSet::release() {
  return std::exchange(listeners_, {});
}

}  // namespace ringside::net
