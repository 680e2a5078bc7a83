#include "addresses.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include "ringside/base/text.h"

#include "diagnostics.h"

namespace ringside::config {
namespace {

constexpr std::string_view unix_prefix = "unix:";
// sizeof(sockaddr_un::sun_path) without the terminating NUL.
constexpr std::size_t unix_path_bytes_max = 107;
constexpr std::size_t name_bytes_max = 253;  // RFC 1035 §2.3.4
constexpr std::size_t label_bytes_max = 63;

using AddressBytes = std::array<std::uint8_t, 16>;

bool parse_address(int family, std::string_view text, AddressBytes& bytes) {
  // inet_pton wants a terminated string, and no address is longer than INET6_ADDRSTRLEN.
  std::array<char, INET6_ADDRSTRLEN + 1> buffer{};
  if (text.empty() || text.size() >= buffer.size()) return false;
  if (text.find('\0') != std::string_view::npos) return false;
  std::copy(text.begin(), text.end(), buffer.begin());
  return inet_pton(family, buffer.data(), bytes.data()) == 1;
}

bool is_ipv4(std::string_view text) {
  AddressBytes bytes;
  return parse_address(AF_INET, text, bytes);
}

bool is_ipv6(std::string_view text) {
  AddressBytes bytes;
  return parse_address(AF_INET6, text, bytes);
}

bool looks_numeric(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789.") == std::string_view::npos;
}

// A DNS name, or any name that resolvers take: letters, digits, "-" and "_" in dotted labels.
bool is_name(std::string_view text) {
  if (text.empty() || text.size() > name_bytes_max) return false;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t dot = std::min(text.find('.', begin), text.size());
    const std::string_view label = text.substr(begin, dot - begin);
    if (label.empty() || label.size() > label_bytes_max) return false;
    if (label.front() == '-' || label.back() == '-') return false;
    for (char c : label) {
      const char low = base::to_lower(c);
      const bool good =
          (low >= 'a' && low <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
      if (!good) return false;
    }
    begin = dot + 1;
  }
  return true;
}

Complaint wrong(std::string_view text, std::string_view what, std::string suggestion = {}) {
  return {join({"has ", quote(text), ", which ", what}), std::move(suggestion)};
}

Parsed<Endpoint> parse_unix(std::string_view text) {
  const std::string_view path = text.substr(unix_prefix.size());
  if (path.empty() || path.front() != '/') {
    return std::unexpected(
        wrong(text, "must name an absolute path", R"(like "unix:/run/app.sock")"));
  }
  if (path.size() > unix_path_bytes_max || path.find('\0') != std::string_view::npos) {
    return std::unexpected(wrong(text, "is longer than the 107 bytes of a unix socket's path"));
  }
  Endpoint endpoint;
  endpoint.kind = Endpoint::Kind::unix_socket;
  endpoint.text = text;
  endpoint.path = path;
  return endpoint;
}

// What the writer probably meant when there is no "address:port".
Complaint no_port(std::string_view text, EndpointUse use) {
  const bool listener = use == EndpointUse::listener;
  if (is_ipv6(text)) {
    return wrong(text, "needs brackets and a port", quote(join({"[", text, "]:8080"})));
  }
  if (text.starts_with('/')) return wrong(text, "is no address", quote(join({unix_prefix, text})));
  if (looks_numeric(text) && base::parse_decimal<std::uint16_t>(text)) {
    return wrong(text, "has no address", quote(join({listener ? "0.0.0.0:" : "127.0.0.1:", text})));
  }
  return wrong(text, "has no port", quote(join({text, ":8080"})));
}

std::optional<Complaint> check_scheme(std::string_view text) {
  const std::size_t scheme = text.find("://");
  if (scheme == std::string_view::npos) return std::nullopt;
  const std::string_view rest = text.substr(scheme + 3);
  return wrong(text, "is a URL, not an address", quote(rest.substr(0, rest.find('/'))));
}

Complaint bad_host(std::string_view text, std::string_view host, std::string_view port,
                   EndpointUse use) {
  const bool listener = use == EndpointUse::listener;
  if (host.empty() || host == "*") {
    const std::string any = join({"\"0.0.0.0:", port, "\" or \"[::]:", port, "\""});
    return wrong(text, "has no address", listener ? any : quote(join({"127.0.0.1:", port})));
  }
  // "fe80::1:80": the last colon was no port, or the brackets are missing.
  if (host.find(':') != std::string_view::npos) {
    return wrong(text, "needs brackets around its IPv6 address",
                 quote(join({"[", host, "]:", port})));
  }
  if (looks_numeric(host)) return wrong(text, "is not a valid IPv4 address");
  if (listener && is_name(host)) {
    const bool local = host == "localhost";
    return wrong(text, "is a name; a listener takes literal addresses only",
                 local ? quote(join({"127.0.0.1:", port})) : std::string());
  }
  return wrong(text, "is neither an address nor a name");
}

Parsed<std::string> unusable_host(std::string_view text, std::string_view host) {
  if (std::any_of(text.begin(), text.end(), [](char c) { return (c & 0x80) != 0; })) {
    return std::unexpected(
        wrong(text, "is not in ASCII", R"(write its ASCII form, like "xn--bcher-kva.example")"));
  }
  if (text.find("://") != std::string_view::npos || text.find('/') != std::string_view::npos) {
    return std::unexpected(wrong(text, "is a URL, not a host"));
  }
  const std::size_t colon = host.rfind(':');
  if (colon != std::string_view::npos && is_name(host.substr(0, colon))) {
    return std::unexpected(
        wrong(text, "has a port; ports belong to [listen.NAME]", quote(host.substr(0, colon))));
  }
  if (is_ipv6(host)) {
    return std::unexpected(wrong(text, "needs brackets", quote(join({"[", host, "]"}))));
  }
  if (host.find('*') != std::string_view::npos) {
    return std::unexpected(
        wrong(text, "has a \"*\" at a place where it cannot be", R"(like "*.example.org" or "*")"));
  }
  if (host.starts_with('.')) {
    return std::unexpected(wrong(text, "begins with a dot", quote(join({"*", host}))));
  }
  return std::unexpected(wrong(text, "is not a host name"));
}

// The range with the bits behind its length cleared, or empty when they are clear already.
std::string cleared(int family, AddressBytes bytes, unsigned bits, std::size_t size) {
  const AddressBytes before = bytes;
  for (std::size_t i = 0; i < size; ++i) {
    const unsigned first = static_cast<unsigned>(i) * 8;
    if (bits >= first + 8) continue;
    const unsigned keep = bits > first ? bits - first : 0;
    bytes[i] = static_cast<std::uint8_t>(bytes[i] & ~(0xFFU >> keep));
  }
  if (std::equal(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size),
                 before.begin())) {
    return {};
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(family, bytes.data(), text.data(), text.size());
  return join({text.data(), "/", std::to_string(bits)});
}

}  // namespace

Parsed<Endpoint> parse_endpoint(std::string_view text, EndpointUse use) {
  if (text.starts_with(unix_prefix)) return parse_unix(text);
  if (auto complaint = check_scheme(text)) return std::unexpected(std::move(*complaint));
  const std::size_t colon = text.rfind(':');
  // Inside brackets, or the last colon of a bare IPv6 address: no port.
  if (colon == std::string_view::npos || text.ends_with(']') || is_ipv6(text)) {
    return std::unexpected(no_port(text, use));
  }
  Endpoint endpoint;
  endpoint.text = text;
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  const auto number = base::parse_decimal<std::uint16_t>(port);
  if (!number || (use == EndpointUse::server && *number == 0)) {
    return std::unexpected(wrong(text, use == EndpointUse::server
                                           ? "needs a port from 1 to 65535"
                                           : "needs a port from 0 to 65535"));
  }
  endpoint.port = *number;
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
    if (!is_ipv6(host)) return std::unexpected(wrong(text, "is not a valid IPv6 address"));
    endpoint.kind = Endpoint::Kind::ipv6;
  } else if (is_ipv4(host)) {
    endpoint.kind = Endpoint::Kind::ipv4;
  } else if (use == EndpointUse::server && is_name(host) && !looks_numeric(host)) {
    endpoint.kind = Endpoint::Kind::name;
  } else {
    return std::unexpected(bad_host(text, host, port, use));
  }
  endpoint.host = host;
  return endpoint;
}

Parsed<std::string> parse_host_pattern(std::string_view text) {
  if (text == "*") return std::string(text);
  std::string_view host = text;
  if (host.size() > 1 && host.ends_with('.')) host.remove_suffix(1);
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  const std::string_view name = host.starts_with("*.") ? host.substr(2) : host;
  const bool good = bracketed ? is_ipv6(host.substr(1, host.size() - 2)) : is_name(name);
  if (!good) return unusable_host(text, host);
  std::string lower(host);
  for (char& c : lower)
    c = base::to_lower(c);
  return lower;
}

Parsed<std::string> parse_range(std::string_view text) {
  if (text == "unix") return std::string(text);
  const std::size_t slash = text.find('/');
  std::string_view address = text.substr(0, slash);
  AddressBytes bytes{};
  const bool v6 = address.find(':') != std::string_view::npos;
  const int family = v6 ? AF_INET6 : AF_INET;
  if (!parse_address(family, address, bytes)) {
    std::string suggestion = R"(like "10.0.0.0/8", "2001:db8::/32" or "unix")";
    if (text == "localhost") suggestion = R"("127.0.0.0/8" and "::1")";
    return std::unexpected(wrong(text, "is not an address or range", suggestion));
  }
  if (slash == std::string_view::npos) return std::string(text);
  const unsigned bits_max = v6 ? 128 : 32;
  const auto bits = base::parse_decimal<unsigned>(text.substr(slash + 1));
  if (!bits || *bits > bits_max) {
    return std::unexpected(wrong(
        text, v6 ? "needs a prefix length from 0 to 128" : "needs a prefix length from 0 to 32"));
  }
  const std::string right = cleared(family, bytes, *bits, bits_max / 8);
  if (!right.empty()) {
    return std::unexpected(
        wrong(text, "has bits set behind its prefix length",
              join({"did you mean ", quote(right), " or ", quote(address), "?"})));
  }
  return std::string(text);
}

}  // namespace ringside::config
