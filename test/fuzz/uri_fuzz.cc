// Paths, authorities and hosts. Oracles: a normal path is a fixed point; RFC 3986's own wording of
// remove_dot_segments; the C library's judgement of IPv6 addresses; a split authority joins again.
#include <arpa/inet.h>

#include "ringside/http/uri.h"

#include "oracle.h"

namespace {

using namespace ringside;
using namespace ringside::http;

// RFC 3986 §5.2.4 step by step.
std::string remove_dot_segments_as_written(std::string in) {
  std::string out;
  auto cut_last = [&out] { out.resize(out.rfind('/') == std::string::npos ? 0 : out.rfind('/')); };
  while (!in.empty()) {
    if (in.starts_with("/./")) {
      in.erase(0, 2);
    } else if (in == "/.") {
      in = "/";
    } else if (in.starts_with("/../")) {
      in.erase(0, 3);
      cut_last();
    } else if (in == "/..") {
      in = "/";
      cut_last();
    } else {
      std::size_t end = in.find('/', 1);
      out += in.substr(0, end);
      in.erase(0, end == std::string::npos ? in.size() : end);
    }
  }
  return out;
}

// nullopt as normalise_path has it.
std::optional<std::string> normalise_as_written(std::string_view path) {
  std::string decoded;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] != '%') {
      decoded += path[i];
      continue;
    }
    if (path.size() - i < 3 || hex_value(path[i + 1]) < 0 || hex_value(path[i + 2]) < 0)
      return std::nullopt;
    int value = hex_value(path[i + 1]) * 16 + hex_value(path[i + 2]);
    if (value == 0) return std::nullopt;
    if (unreserved_bytes.has(static_cast<char>(value))) {
      decoded += static_cast<char>(value);
    } else {
      char text[12];
      std::snprintf(text, sizeof text, "%%%02X", static_cast<unsigned>(value));
      decoded += text;
    }
    i += 2;
  }
  return path.starts_with('/') ? remove_dot_segments_as_written(decoded) : decoded;
}

void check_path(std::string_view path, base::Arena& arena) {
  auto once = normalise_path(path, arena);
  auto expected = normalise_as_written(path);
  fuzz::require(once.has_value() == expected.has_value(), "both refuse a path, or neither");
  if (!once) return;
  fuzz::require_equal(*expected, std::string(*once), "normal paths differ");
  auto twice = normalise_path(*once, arena);
  fuzz::require(twice && *twice == *once && twice->data() == once->data(),
                "a normal path is a fixed point, and known as one");
}

void check_authority(std::string_view text) {
  auto authority = parse_authority(text);
  if (authority) {
    fuzz::require(!authority->host.empty(), "there is a host");
    std::string_view rest = text.substr(authority->host.size());
    fuzz::require(rest.empty() || rest[0] == ':', "only a port follows the host");
    fuzz::require(authority->port.has_value() == (rest.size() > 1), "a port is digits");
    fuzz::require(text.find_first_of("@/?# \\") == std::string_view::npos,
                  "no delimiter is inside");
  }
  if (text.size() > 2 && text.front() == '[' && text.find(']') == text.size() - 1 &&
      text.find('\0') == std::string_view::npos) {
    std::string address(text.substr(1, text.size() - 2));
    in6_addr parsed;
    bool valid = inet_pton(AF_INET6, address.c_str(), &parsed) == 1;
    fuzz::require(valid == authority.has_value(), "the C library judges the address alike");
  }
}

void check_host(std::string_view host, base::Arena& arena) {
  std::string_view normal = normalise_host(host, arena);
  fuzz::require(normal.data() != nullptr, "memory suffices");
  fuzz::require(normal.size() + (host.ends_with('.') ? 1 : 0) == host.size(),
                "only a dot is dropped");
  for (char c : normal)
    fuzz::require(c < 'A' || c > 'Z', "no upper case is left");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  fuzz::Exact input({reinterpret_cast<const char*>(data), bytes});
  base::ChunkPool pool;
  base::Arena arena(pool);
  check_path(input.view(), arena);
  check_authority(input.view());
  check_host(input.view(), arena);
  return 0;
}
