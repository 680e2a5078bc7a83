#include "network.h"

#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

namespace ringside::sim {

namespace {

constexpr unsigned char mapped_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

const sockaddr_in& as_v4(const net::Address& address) {
  return *reinterpret_cast<const sockaddr_in*>(address.raw());
}
const sockaddr_in6& as_v6(const net::Address& address) {
  return *reinterpret_cast<const sockaddr_in6*>(address.raw());
}

std::string key_of(int family, const void* host, std::size_t host_bytes, std::uint16_t port_be) {
  std::string key(1, family == AF_INET ? '4' : '6');
  key.append(static_cast<const char*>(host), host_bytes);
  key.append(reinterpret_cast<const char*>(&port_be), sizeof(port_be));
  return key;
}

// A mapped IPv6 address and its IPv4 form are one place.
std::string key_of(const net::Address& address) {
  if (address.family() == AF_INET) {
    const auto& v4 = as_v4(address);
    return key_of(AF_INET, &v4.sin_addr, 4, v4.sin_port);
  }
  if (address.family() == AF_INET6) {
    const auto& v6 = as_v6(address);
    if (std::memcmp(&v6.sin6_addr, mapped_prefix, 12) == 0) {
      return key_of(AF_INET, &v6.sin6_addr.s6_addr[12], 4, v6.sin6_port);
    }
    return key_of(AF_INET6, &v6.sin6_addr, 16, v6.sin6_port);
  }
  const auto* raw = reinterpret_cast<const sockaddr_un*>(address.raw());
  const std::size_t bytes = address.length() - offsetof(sockaddr_un, sun_path);
  std::size_t path = bytes;
  if (path != 0 && raw->sun_path[0] != 0) path = strnlen(raw->sun_path, bytes);
  return "u" + std::string(raw->sun_path, path);
}

std::string wildcard_of(int family, std::uint16_t port_be) {
  static constexpr unsigned char zero[16] = {};
  return key_of(family, zero, family == AF_INET ? 4 : 16, port_be);
}

std::uint16_t port_be_of(const net::Address& address) {
  if (address.family() == AF_INET) return as_v4(address).sin_port;
  if (address.family() == AF_INET6) return as_v6(address).sin6_port;
  return 0;
}

bool is_v4(const std::string& key) {
  return key[0] == '4';
}

// What a dual-stack listener sees of an IPv4 peer.
net::Address mapped(const net::Address& address) {
  if (address.family() != AF_INET) return address;
  net::Address out;
  auto* v6 = reinterpret_cast<sockaddr_in6*>(out.raw());
  v6->sin6_family = AF_INET6;
  v6->sin6_port = as_v4(address).sin_port;
  std::memcpy(&v6->sin6_addr, mapped_prefix, 12);
  std::memcpy(&v6->sin6_addr.s6_addr[12], &as_v4(address).sin_addr, 4);
  out.set_length(sizeof(sockaddr_in6));
  return out;
}

}  // namespace

net::Address make_ipv4(std::uint32_t host, std::uint16_t port) {
  net::Address out;
  auto* v4 = reinterpret_cast<sockaddr_in*>(out.raw());
  v4->sin_family = AF_INET;
  v4->sin_port = htons(port);
  v4->sin_addr.s_addr = htonl(host);
  out.set_length(sizeof(sockaddr_in));
  return out;
}

net::Address make_ipv6_loopback(std::uint16_t port) {
  net::Address out;
  auto* v6 = reinterpret_cast<sockaddr_in6*>(out.raw());
  v6->sin6_family = AF_INET6;
  v6->sin6_port = htons(port);
  v6->sin6_addr.s6_addr[15] = 1;
  out.set_length(sizeof(sockaddr_in6));
  return out;
}

net::Address make_unix(const std::string& path) {
  net::Address out;
  auto* raw = reinterpret_cast<sockaddr_un*>(out.raw());
  raw->sun_family = AF_UNIX;
  const std::size_t bytes = std::min(path.size(), sizeof(raw->sun_path) - 1);
  std::memcpy(raw->sun_path, path.data(), bytes);
  out.set_length(static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + bytes + 1));
  return out;
}

Listener::~Listener() {
  for (auto& stream : queue_)
    stream->reset();
}

std::shared_ptr<Stream> Listener::accept() {
  if (queue_.empty()) return nullptr;
  auto stream = std::move(queue_.front());
  queue_.pop_front();
  return stream;
}

void Listener::offer(std::shared_ptr<Stream> stream) {
  queue_.push_back(std::move(stream));
  if (waker_ != nullptr) waker_->on_ready();
}

int Network::bind(net::Address& address, const BindOptions& options) {
  if (address.family() == AF_INET || address.family() == AF_INET6) {
    if (port_be_of(address) == 0) {
      // The two structures agree on where the port is.
      reinterpret_cast<sockaddr_in*>(address.raw())->sin_port = htons(next_port_++);
    }
  } else if (address.family() != AF_UNIX) {
    return -EAFNOSUPPORT;
  }
  auto [at, fresh] = bound_.try_emplace(key_of(address));
  Bound& bound = at->second;
  if (!fresh && !(bound.options.reuse_port && options.reuse_port)) return -EADDRINUSE;
  ++bound.users;
  bound.options = options;
  return 0;
}

void Network::unbind(const net::Address& address) {
  // The file of a unix socket stays until somebody removes it.
  if (address.family() == AF_UNIX) return;
  auto at = bound_.find(key_of(address));
  if (at != bound_.end() && --at->second.users == 0) bound_.erase(at);
}

std::shared_ptr<Listener> Network::listen(const net::Address& address, unsigned backlog) {
  auto listener =
      std::make_shared<Listener>(key_of(address), address.family(), std::max(backlog, 1U));
  listening_[listener->key()].push_back(listener);
  return listener;
}

void Network::stop(const std::shared_ptr<Listener>& listener) {
  auto at = listening_.find(listener->key());
  if (at == listening_.end()) return;
  std::erase(at->second, listener);
  if (at->second.empty()) listening_.erase(at);
  while (auto stream = listener->accept())
    stream->reset();
}

int Network::unlink(const net::Address& address) {
  const std::string key = key_of(address);
  if (listening_.contains(key)) return -EADDRINUSE;
  bound_.erase(key);
  return 0;
}

void Network::set_black_hole(const net::Address& address, bool on) {
  black_holes_[key_of(address)] = on;
}

std::uint64_t Network::latency() {
  return medium_.random.between(medium_.latency_min_ns, medium_.latency_max_ns);
}

net::Address Network::ephemeral(int family) {
  if (next_port_ < 32768) next_port_ = 32768;
  if (family == AF_INET6) return make_ipv6_loopback(next_port_++);
  if (family == AF_UNIX) {
    net::Address out;
    out.raw()->sa_family = AF_UNIX;
    out.set_length(sizeof(sa_family_t));
    return out;
  }
  return make_ipv4(0x7f000001, next_port_++);
}

Stream::Pair Network::pair() {
  return Stream::connect(medium_, ephemeral(AF_INET), ephemeral(AF_INET));
}

std::shared_ptr<Dial> Network::dial(const net::Address& from, const net::Address& to) {
  auto dial = std::make_shared<Dial>();
  Attempt attempt{dial, from, to};
  if (to.family() == AF_UNIX && !bound_.contains(key_of(to))) {
    dial->done = true;
    dial->result = -ENOENT;
    return dial;
  }
  if (medium_.faults.hit(Fault::connect_refused)) {
    finish_later(attempt, 2 * latency(), -ECONNREFUSED);
  } else if (medium_.faults.hit(Fault::connect_unreachable)) {
    finish_later(attempt, latency(), -EHOSTUNREACH);
  } else if (medium_.faults.hit(Fault::connect_timed_out)) {
    finish_later(attempt, medium_.random.between(second_ns, 10 * second_ns), -ETIMEDOUT);
  } else if (medium_.faults.hit(Fault::connect_black_hole) || black_holes_[key_of(to)]) {
    finish_later(attempt, 130 * second_ns, -ETIMEDOUT);
  } else {
    medium_.clock.after(latency(), [this, attempt] { knock(attempt); });
  }
  return dial;
}

void Network::finish_later(const Attempt& attempt, std::uint64_t delay_ns, int result) {
  medium_.clock.after(delay_ns, [weak = attempt.dial, result] {
    auto dial = weak.lock();
    if (dial == nullptr || dial->done) return;
    dial->done = true;
    dial->result = result;
    if (dial->waker != nullptr) dial->waker->on_ready();
  });
}

Network::Group* Network::find(const net::Address& to) {
  auto at = listening_.find(key_of(to));
  if (at != listening_.end()) return &at->second;
  if (to.family() == AF_UNIX) return nullptr;
  if (is_v4(key_of(to))) {
    at = listening_.find(wildcard_of(AF_INET, port_be_of(to)));
    if (at != listening_.end()) return &at->second;
  }
  const std::string dual = wildcard_of(AF_INET6, port_be_of(to));
  at = listening_.find(dual);
  if (at == listening_.end()) return nullptr;
  const auto bound = bound_.find(dual);
  const bool v6_only = bound != bound_.end() && bound->second.options.v6_only;
  return v6_only && is_v4(key_of(to)) ? nullptr : &at->second;
}

int Network::missing(const net::Address& to) const {
  return to.family() == AF_UNIX && !bound_.contains(key_of(to)) ? -ENOENT : -ECONNREFUSED;
}

void Network::knock(Attempt attempt) {
  auto dial = attempt.dial.lock();
  if (dial == nullptr) return;
  Group* group = find(attempt.to);
  if (group == nullptr) return finish_later(attempt, latency(), missing(attempt.to));
  Listener& listener = *(*group)[medium_.random.below(group->size())];
  if (!listener.full()) return establish(attempt, *dial, listener);
  // A full queue drops the SYN; it is sent again after 1, 2, 4, ... seconds.
  if (++attempt.tries > 6) return finish_later(attempt, second_ns, -ETIMEDOUT);
  medium_.clock.after(second_ns << (attempt.tries - 1), [this, attempt] { knock(attempt); });
}

void Network::establish(const Attempt& attempt, Dial& dial, Listener& listener) {
  const bool dual = listener.family() == AF_INET6;
  Stream::Pair pair = Stream::connect(medium_, attempt.from, attempt.to);
  if (dual) pair.b->show_addresses(mapped(attempt.to), mapped(attempt.from));
  dial.stream = pair.a;
  listener.offer(pair.b);
  finish_later(attempt, latency(), 0);
}

}  // namespace ringside::sim
