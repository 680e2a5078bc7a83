#include "ringside/http/uri.h"

#include <cstring>

#include "ringside/base/text.h"

#include "byte_class.h"
#include "scan.h"

namespace ringside::http {
namespace {

bool valid_reg_name(std::string_view name) {
  for (;;) {
    name.remove_prefix(scan::class_stop(name.data(), name.size(), reg_name_bytes));
    if (name.empty()) return true;
    if (name[0] != '%' || name.size() < 3) return false;
    if (hex_value(name[1]) < 0 || hex_value(name[2]) < 0) return false;
    name.remove_prefix(3);
  }
}

bool valid_ipv4(std::string_view text) {
  for (int part = 0; part < 4; ++part) {
    std::size_t dot = part < 3 ? text.find('.') : text.size();
    if (dot == std::string_view::npos) return false;
    std::string_view digits = text.substr(0, dot);
    auto value = base::parse_decimal<unsigned>(digits);
    if (!value || *value > 255 || digits.size() > 3) return false;
    if (digits.size() > 1 && digits[0] == '0') return false;
    text.remove_prefix(part < 3 ? dot + 1 : dot);
  }
  return true;
}

bool valid_hex_group(std::string_view text) {
  if (text.empty() || text.size() > 4) return false;
  for (char c : text) {
    if (hex_value(c) < 0) return false;
  }
  return true;
}

// Groups of `text` ("1:2:1.2.3.4"), counting an IPv4 tail as two; -1 when one is malformed. An
// empty text has none.
int count_groups(std::string_view text, bool ipv4_may_end) {
  int groups = 0;
  while (!text.empty()) {
    std::size_t colon = text.find(':');
    if (colon == std::string_view::npos && ipv4_may_end && valid_ipv4(text)) return groups + 2;
    if (!valid_hex_group(text.substr(0, colon))) return -1;
    ++groups;
    if (colon == std::string_view::npos) break;
    text.remove_prefix(colon + 1);
    if (text.empty()) return -1;  // a colon at the end
  }
  return groups;
}

// IPv6address of RFC 3986 §3.2.2, without a zone, which has no meaning beyond its host (RFC 6874
// §4).
bool valid_ipv6(std::string_view text) {
  std::size_t gap = text.find("::");
  if (gap == std::string_view::npos) return count_groups(text, true) == 8;
  int before = count_groups(text.substr(0, gap), false);
  int after = count_groups(text.substr(gap + 2), true);
  return before >= 0 && after >= 0 && before + after <= 7;
}

// False when `text` is neither empty nor ":" followed by at most five digits.
bool parse_port(std::string_view text, std::optional<std::uint16_t>* port) {
  if (text.empty()) return true;
  if (text[0] != ':') return false;
  text.remove_prefix(1);
  if (text.empty()) return true;
  if (text.size() > 5) return false;
  *port = base::parse_decimal<std::uint16_t>(text);
  return port->has_value();
}

}  // namespace

std::optional<HostPort> parse_authority(std::string_view authority) {
  HostPort result;
  std::size_t host_bytes;
  if (authority.starts_with('[')) {
    host_bytes = authority.find(']');
    if (host_bytes == std::string_view::npos) return std::nullopt;
    if (!valid_ipv6(authority.substr(1, host_bytes - 1))) return std::nullopt;
    ++host_bytes;
  } else {
    host_bytes = authority.find(':');
    if (host_bytes == std::string_view::npos) host_bytes = authority.size();
    if (host_bytes == 0 || !valid_reg_name(authority.substr(0, host_bytes))) return std::nullopt;
  }
  result.host = authority.substr(0, host_bytes);
  if (!parse_port(authority.substr(host_bytes), &result.port)) return std::nullopt;
  return result;
}

namespace {

enum class PathShape : std::uint8_t { normal, to_rewrite, malformed };

// What a path may hold without another look at it.
constexpr ByteClass plain_bytes = make_byte_class([](char c) { return c != '%' && c != '.'; });

// Whether the segment that has its first dot at `dot` is "." or "..".
bool is_dot_segment(std::string_view path, std::size_t dot) {
  if (dot == 0 || path[dot - 1] != '/' || path[0] != '/') return false;
  std::string_view segment = path.substr(dot, 3);
  segment = segment.substr(0, segment.find('/'));
  return segment == "." || segment == "..";
}

// Looks at the encoded byte at `percent`.
PathShape shape_of_encoded(std::string_view path, std::size_t percent) {
  if (percent + 2 >= path.size()) return PathShape::malformed;
  int high = hex_value(path[percent + 1]);
  int low = hex_value(path[percent + 2]);
  if (high < 0 || low < 0 || (high == 0 && low == 0)) return PathShape::malformed;
  bool lower_case = path[percent + 1] >= 'a' || path[percent + 2] >= 'a';
  bool decodes = unreserved_bytes.has(static_cast<char>(high << 4 | low));
  return lower_case || decodes ? PathShape::to_rewrite : PathShape::normal;
}

PathShape shape_of(std::string_view path) {
  PathShape shape = PathShape::normal;
  for (std::size_t at = 0;; ++at) {
    at += scan::class_stop(path.data() + at, path.size() - at, plain_bytes);
    if (at >= path.size()) return shape;
    if (path[at] == '.') {
      if (is_dot_segment(path, at)) shape = PathShape::to_rewrite;
    } else if (path[at] == '%') {
      PathShape here = shape_of_encoded(path, at);
      if (here == PathShape::malformed) return here;
      if (here == PathShape::to_rewrite) shape = here;
      at += 2;
    }
  }
}

// RFC 3986 §6.2.2.1 and §6.2.2.2. `path` is well-formed; `out` has room for it. Returns the length.
std::size_t normalise_percent(std::string_view path, char* out) {
  constexpr char digits[] = "0123456789ABCDEF";
  char* at = out;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] != '%') {
      *at++ = path[i];
      continue;
    }
    int high = hex_value(path[i + 1]);
    int low = hex_value(path[i + 2]);
    auto byte = static_cast<char>(high << 4 | low);
    if (unreserved_bytes.has(byte)) {
      *at++ = byte;
    } else {
      *at++ = '%';
      *at++ = digits[high];
      *at++ = digits[low];
    }
    i += 2;
  }
  return static_cast<std::size_t>(at - out);
}

// RFC 3986 §5.2.4, in place: what is kept never overtakes what is read. Returns the new length.
std::size_t remove_dot_segments(char* path, std::size_t bytes) {
  std::string_view in(path, bytes);
  std::size_t kept = 0;
  for (std::size_t at = 0; at < bytes;) {
    std::size_t next = in.find('/', at + 1);
    bool last = next == std::string_view::npos;
    if (last) next = bytes;
    std::string_view segment = in.substr(at + 1, next - at - 1);
    bool up = segment == "..";
    if (!up && segment != ".") {
      std::memmove(path + kept, path + at, next - at);
      kept += next - at;
    } else {
      if (up && kept > 0) kept = std::string_view(path, kept).rfind('/');
      if (last) path[kept++] = '/';
    }
    at = next;
  }
  return kept;
}

}  // namespace

std::optional<std::string_view> normalise_path(std::string_view path, base::Arena& arena) {
  PathShape shape = shape_of(path);
  if (shape == PathShape::malformed) return std::nullopt;
  if (shape == PathShape::normal) return path;
  char* out = arena.allocate_array<char>(path.size());
  if (out == nullptr) return std::string_view{};
  std::size_t bytes = normalise_percent(path, out);
  if (out[0] == '/') bytes = remove_dot_segments(out, bytes);
  return std::string_view(out, bytes);
}

std::string_view normalise_host(std::string_view host, base::Arena& arena) {
  if (host.data() == nullptr) return "";
  if (host.ends_with('.')) host.remove_suffix(1);
  std::size_t upper = 0;
  while (upper < host.size() && base::to_lower(host[upper]) == host[upper])
    ++upper;
  if (upper == host.size()) return host;
  char* out = arena.allocate_array<char>(host.size());
  if (out == nullptr) return {};
  for (std::size_t i = 0; i < host.size(); ++i)
    out[i] = base::to_lower(host[i]);
  return {out, host.size()};
}

}  // namespace ringside::http
