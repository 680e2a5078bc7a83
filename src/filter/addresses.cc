#include "addresses.h"

#include <arpa/inet.h>

#include <cstring>

#include "ringside/base/text.h"

namespace ringside::filter {
namespace {

// Four decimal numbers without leading zeros, as RFC 3986 §3.2.2 has it.
bool parse_ipv4(std::string_view text, std::uint8_t* bytes) {
  int parts = 0;
  std::size_t at = 0;
  while (parts < 4) {
    unsigned value = 0;
    std::size_t digits = 0;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9' && digits < 4; ++at, ++digits) {
      value = value * 10 + static_cast<unsigned>(text[at] - '0');
    }
    if (digits == 0 || value > 255 || (digits > 1 && text[at - digits] == '0')) return false;
    bytes[parts++] = static_cast<std::uint8_t>(value);
    if (parts == 4) break;
    if (at == text.size() || text[at] != '.') return false;
    ++at;
  }
  return at == text.size();
}

}  // namespace

std::optional<Address> parse_address(std::string_view text) {
  Address address;
  if (text.find(':') == std::string_view::npos) {
    if (!parse_ipv4(text, address.bytes)) return std::nullopt;
    return address;
  }
  char terminated[INET6_ADDRSTRLEN];
  if (text.size() >= sizeof terminated) return std::nullopt;
  std::memcpy(terminated, text.data(), text.size());
  terminated[text.size()] = '\0';
  if (std::memchr(terminated, '\0', text.size()) != nullptr) return std::nullopt;
  if (inet_pton(AF_INET6, terminated, address.bytes) != 1) return std::nullopt;
  static constexpr std::uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  address.v6 = std::memcmp(address.bytes, mapped, sizeof mapped) != 0;
  if (!address.v6) std::memmove(address.bytes, address.bytes + sizeof mapped, 4);
  return address;
}

std::optional<Node> parse_node(std::string_view text) {
  Node node{text, 0};
  std::string_view port;
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    node.address = text.substr(1, close - 1);
    if (node.address.find(':') == std::string_view::npos) return std::nullopt;
    const std::string_view rest = text.substr(close + 1);
    if (!rest.empty()) {
      if (rest.front() != ':') return std::nullopt;
      port = rest.substr(1);
    }
  } else if (const std::size_t colon = text.find(':');
             colon != std::string_view::npos &&
             text.find(':', colon + 1) == std::string_view::npos) {
    // One colon: IPv4 with a port. More: a bare IPv6 address.
    node.address = text.substr(0, colon);
    port = text.substr(colon + 1);
    if (port.empty()) return std::nullopt;
  }
  if (!parse_address(node.address)) return std::nullopt;
  if (!port.empty() && port.front() != '_') {  // obfuscated ports: RFC 7239 §6.3
    const auto number = base::parse_decimal<std::uint16_t>(port);
    if (!number) return std::nullopt;
    node.port = *number;
  }
  return node;
}

}  // namespace ringside::filter
