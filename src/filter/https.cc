// Whether a client speaks https, and where it finds what it asked for without it.
#include <algorithm>
#include <charconv>
#include <cstring>

#include "ringside/base/text.h"
#include "ringside/filter/forwarding.h"

#include "forwarded_field.h"

namespace ringside::filter {
namespace {

constexpr std::uint16_t https_port = 443;

const http::Field* first_field(const http::FieldList& fields, http::FieldId id) {
  const auto* found = std::find_if(fields.begin(), fields.end(), [id](const http::Field& field) {
    return field.id == id && !field.hop_by_hop;
  });
  return found == fields.end() ? nullptr : found;
}

// What a trusted proxy says that the client spoke; empty: nothing.
std::string_view forwarded_scheme(const http::FieldList& fields, base::Arena& arena) {
  if (const http::Field* proto = first_field(fields, http::FieldId::x_forwarded_proto)) {
    return base::trim_ows(proto->value.substr(0, proto->value.find(',')));
  }
  const http::Field* forwarded = first_field(fields, http::FieldId::forwarded);
  if (forwarded == nullptr) return {};
  ForwardedReader reader(forwarded->value);
  std::string_view node;
  return reader.next(arena, node) == ForwardedReader::Step::element ? reader.proto()
                                                                    : std::string_view();
}

// Letters, digits and what names and addresses are made of. RFC 3986 §3.2.2 lets a host have much
// more, "%2F" and ";" among it, which some clients would read as the end of the name.
bool is_plain_host(std::string_view host) {
  const bool literal = host.starts_with('[');
  return !host.empty() && std::all_of(host.begin(), host.end(), [literal](char c) {
    const bool alphanumeric = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    return alphanumeric || c == '.' ||
           (literal ? c == ':' || c == '[' || c == ']' : c == '-' || c == '_');
  });
}

}  // namespace

bool client_is_secure(const RequestFacts& facts, base::Arena& arena) {
  if (facts.peer_trusted && facts.request_fields != nullptr) {
    const std::string_view scheme = forwarded_scheme(*facts.request_fields, arena);
    if (!scheme.empty()) {
      return base::equals_ignore_case(scheme, "https") || base::equals_ignore_case(scheme, "wss");
    }
  }
  return facts.scheme == "https";
}

std::string_view https_location(const RequestFacts& facts, std::string_view host,
                                std::uint16_t port, base::Arena& arena) {
  constexpr std::string_view none = "";
  constexpr std::string_view scheme = "https://";
  if (!is_plain_host(host)) return none;
  // OPTIONS for the server as a whole: an URI without a path (RFC 9112 §3.2.4).
  const std::string_view path = facts.path == "*" ? none : facts.path;
  constexpr std::size_t port_bytes_max = sizeof ":65535";
  const std::size_t bytes_max =
      scheme.size() + host.size() + port_bytes_max + path.size() + 1 + facts.query.size();
  char* const begin = arena.allocate_array<char>(bytes_max);
  if (begin == nullptr) return {};
  char* at = begin;
  auto put = [&at](std::string_view text) {
    if (!text.empty()) std::memcpy(at, text.data(), text.size());
    at += text.size();
  };
  put(scheme);
  put(host);
  if (port != https_port) {
    put(":");
    at = std::to_chars(at, begin + bytes_max, port).ptr;
  }
  put(path);
  if (facts.has_query) put("?");
  put(facts.query);
  return {begin, static_cast<std::size_t>(at - begin)};
}

}  // namespace ringside::filter
