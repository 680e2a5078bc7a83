#include "ringside/net/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>

namespace ringside::net {

namespace {

const sockaddr_in& v4(const sockaddr_storage& storage) {
  return reinterpret_cast<const sockaddr_in&>(storage);
}
const sockaddr_in6& v6(const sockaddr_storage& storage) {
  return reinterpret_cast<const sockaddr_in6&>(storage);
}

constexpr socklen_t unix_header = offsetof(sockaddr_un, sun_path);

// In dotted form, with a NUL. inet_ntop() does it by sprintf(), which is 0.7% of the CPU time of a
// connection with one request.
void write_v4(const unsigned char* bytes, char* out) {
  for (unsigned i = 0; i < 4; ++i) {
    if (i != 0) *out++ = '.';
    out = std::to_chars(out, out + 3, bytes[i]).ptr;
  }
  *out = '\0';
}

}  // namespace

std::optional<Address> Address::from_ip(std::string_view ip, std::uint16_t port) {
  char text[INET6_ADDRSTRLEN + 1];
  if (ip.empty() || ip.size() >= sizeof text) return std::nullopt;
  std::memcpy(text, ip.data(), ip.size());
  text[ip.size()] = '\0';
  Address address;
  auto& four = reinterpret_cast<sockaddr_in&>(address.storage_);
  if (::inet_pton(AF_INET, text, &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    address.length_ = sizeof(sockaddr_in);
    return address;
  }
  auto& six = reinterpret_cast<sockaddr_in6&>(address.storage_);
  if (::inet_pton(AF_INET6, text, &six.sin6_addr) == 1) {
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    address.length_ = sizeof(sockaddr_in6);
    return address;
  }
  return std::nullopt;
}

std::optional<Address> Address::from_unix(std::string_view path) {
  Address address;
  auto& name = reinterpret_cast<sockaddr_un&>(address.storage_);
  if (path.empty() || path.size() >= sizeof name.sun_path) return std::nullopt;
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.data(), path.size());
  bool abstract = path[0] == '@';
  if (abstract) name.sun_path[0] = '\0';
  address.length_ = unix_header + static_cast<socklen_t>(path.size()) + (abstract ? 0 : 1);
  return address;
}

Address Address::from_raw(const sockaddr* raw, socklen_t length) {
  Address address;
  if (length > sizeof address.storage_) length = sizeof address.storage_;
  std::memcpy(&address.storage_, raw, length);
  address.length_ = length;
  return address;
}

std::uint16_t Address::port() const {
  if (family() == AF_INET) return ntohs(v4(storage_).sin_port);
  if (family() == AF_INET6) return ntohs(v6(storage_).sin6_port);
  return 0;
}

std::size_t Address::write_ip(char* out, std::size_t room) const {
  char text[INET6_ADDRSTRLEN] = "unix:";
  if (family() == AF_INET) {
    write_v4(reinterpret_cast<const unsigned char*>(&v4(storage_).sin_addr), text);
  } else if (family() == AF_INET6) {
    const in6_addr& ip = v6(storage_).sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&ip)) {
      write_v4(&ip.s6_addr[12], text);
    } else {
      ::inet_ntop(AF_INET6, &ip, text, sizeof text);
    }
  }
  std::size_t length = std::min(std::strlen(text), room);
  std::memcpy(out, text, length);
  return length;
}

std::string Address::to_string() const {
  if (family() == AF_UNIX) {
    const auto& name = reinterpret_cast<const sockaddr_un&>(storage_);
    std::size_t bytes = length_ > unix_header ? length_ - unix_header : 0;
    std::string path(name.sun_path, bytes);
    if (!path.empty() && path[0] == '\0') {
      path[0] = '@';
    } else if (!path.empty()) {
      path.resize(std::strlen(path.c_str()));
    }
    return "unix:" + path;
  }
  char ip[64];
  std::string text(ip, write_ip(ip, sizeof ip));
  bool brackets = text.find(':') != std::string::npos;
  return (brackets ? "[" + text + "]" : text) + ":" + std::to_string(port());
}

bool operator==(const Address& a, const Address& b) {
  if (a.family() != b.family()) return false;
  if (a.family() == AF_INET) {
    return v4(a.storage_).sin_port == v4(b.storage_).sin_port &&
           v4(a.storage_).sin_addr.s_addr == v4(b.storage_).sin_addr.s_addr;
  }
  if (a.family() == AF_INET6) {
    const auto& x = v6(a.storage_);
    const auto& y = v6(b.storage_);
    return x.sin6_port == y.sin6_port && x.sin6_scope_id == y.sin6_scope_id &&
           std::memcmp(&x.sin6_addr, &y.sin6_addr, sizeof x.sin6_addr) == 0;
  }
  return a.length_ == b.length_ && std::memcmp(&a.storage_, &b.storage_, a.length_) == 0;
}

}  // namespace ringside::net
