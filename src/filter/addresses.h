// Addresses as text, read into bytes. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ringside::filter {

struct Address {
  std::uint8_t bytes[16] = {};
  bool v6 = false;
};

// "10.0.0.1", "2001:db8::1". An IPv4-mapped address (::ffff:10.0.0.1) is the IPv4 one.
std::optional<Address> parse_address(std::string_view text);

// An address as X-Forwarded-For and Forwarded write it, perhaps with a port: "10.0.0.1:80",
// "[::1]:80", "[::1]", "::1".
struct Node {
  std::string_view address;  // without brackets
  std::uint16_t port = 0;    // 0: not given, or obfuscated
};
std::optional<Node> parse_node(std::string_view text);

}  // namespace ringside::filter
