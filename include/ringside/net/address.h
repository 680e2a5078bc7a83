// Socket addresses.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ringside::net {

// An IPv4, IPv6 or unix address; trivially copyable.
class Address {
 public:
  Address() = default;
  // Literal IPv4 or IPv6 (without brackets).
  static std::optional<Address> from_ip(std::string_view ip, std::uint16_t port);
  // Paths up to 107 bytes; "@name" is an abstract one.
  static std::optional<Address> from_unix(std::string_view path);
  static Address from_raw(const sockaddr* raw, socklen_t length);

  int family() const { return storage_.ss_family; }
  const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  sockaddr* raw() { return reinterpret_cast<sockaddr*>(&storage_); }
  socklen_t length() const { return length_; }
  void set_length(socklen_t length) { length_ = length; }
  std::uint16_t port() const;

  // "10.0.0.1", "2001:db8::1" (v4-mapped addresses as IPv4), "unix:" for unix sockets. At most 63
  // bytes and no terminator is needed; returns the length.
  std::size_t write_ip(char* out, std::size_t room) const;
  // "10.0.0.1:80", "[::1]:80", "unix:/path".
  std::string to_string() const;
  friend bool operator==(const Address& a, const Address& b);

 private:
  sockaddr_storage storage_{};
  socklen_t length_ = 0;
};

}  // namespace ringside::net
