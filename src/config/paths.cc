#include "paths.h"

#include <vector>

#include "ringside/base/text.h"

#include "diagnostics.h"

namespace ringside::config {
namespace {

constexpr std::string_view upper_digits = "0123456789ABCDEF";
constexpr std::size_t path_bytes_max = 4096;

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char low = base::to_lower(c);
  return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

// RFC 3986 §2.3.
bool is_unreserved(unsigned char c) {
  const auto low = static_cast<unsigned char>(c | 0x20);
  return (low >= 'a' && low <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' ||
         c == '~';
}

void append_encoded(std::string& out, unsigned char byte) {
  out += '%';
  out += upper_digits[byte >> 4];
  out += upper_digits[byte & 15];
}

Parsed<std::string> normalise_escapes(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto byte = static_cast<unsigned char>(text[i]);
    if (byte == '?' || byte == '#') {
      return std::unexpected(
          Complaint{join({"has a ", quote(text.substr(i, 1)), " in ", quote(text)}),
                    "routes match the path only, without a query"});
    }
    if (byte < 0x20 || byte == 0x7f) {
      return std::unexpected(Complaint{join({"has a control character in ", quote(text)}), {}});
    }
    if (byte != '%') {
      if (byte == ' ' || byte >= 0x80) {
        append_encoded(out, byte);
      } else {
        out += text[i];
      }
      continue;
    }
    const int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
    if (high < 0 || low < 0 || high + low == 0) {
      return std::unexpected(
          Complaint{join({"has a broken \"%\" in ", quote(text)}), "a percent sign itself is %25"});
    }
    byte = static_cast<unsigned char>(high * 16 + low);
    if (is_unreserved(byte)) {
      out += static_cast<char>(byte);
    } else {
      append_encoded(out, byte);
    }
    i += 2;
  }
  return out;
}

// RFC 3986 §5.2.4. Empty segments are kept: "//x" is another path than "/x".
std::string remove_dot_segments(std::string_view path) {
  std::vector<std::string_view> segments;
  std::size_t at = 1;
  while (true) {
    const std::size_t slash = std::min(path.find('/', at), path.size());
    const std::string_view segment = path.substr(at, slash - at);
    const bool last = slash == path.size();
    const bool up = segment == "..";
    if (up && !segments.empty()) segments.pop_back();
    if (!up && segment != ".") {
      segments.push_back(segment);
    } else if (last) {
      segments.push_back({});  // "/a/." is "/a/"
    }
    if (last) break;
    at = slash + 1;
  }
  std::string out;
  for (std::string_view segment : segments) {
    out += '/';
    out += segment;
  }
  return out;
}

Complaint no_slash(std::string_view text) {
  return {join({"must begin with \"/\", unlike ", quote(text)}),
          join({"did you mean ", quote(join({"/", text})), "?"})};
}

Parsed<std::string> normalise(std::string_view text) {
  if (!text.starts_with('/')) return std::unexpected(no_slash(text));
  if (text.size() > path_bytes_max) {
    return std::unexpected(Complaint{"is longer than 4096 bytes", {}});
  }
  auto escaped = normalise_escapes(text);
  if (!escaped) return escaped;
  return remove_dot_segments(*escaped);
}

}  // namespace

bool is_prefix_path(std::string_view path) {
  return path.ends_with("/*");
}

Parsed<std::string> parse_route_path(std::string_view text) {
  const std::size_t star = text.find('*');
  if (star == std::string_view::npos) return normalise(text);
  if (star + 1 != text.size() || !is_prefix_path(text)) {
    std::string suggestion = R"(like "/images/*")";
    if (star + 1 == text.size() && star > 0) {
      suggestion = join({"did you mean ", quote(join({text.substr(0, star), "/*"})), "?"});
    }
    return std::unexpected(
        Complaint{join({"may have \"*\" only at its end, behind a \"/\", unlike ", quote(text)}),
                  suggestion});
  }
  if (!text.starts_with('/')) return std::unexpected(no_slash(text));
  auto folder = normalise(text.substr(0, star));
  if (!folder) return folder;
  return *folder + '*';
}

Parsed<std::string> parse_prefix(std::string_view text) {
  if (text.find('*') != std::string_view::npos) {
    return std::unexpected(
        Complaint{join({"has a \"*\" in ", quote(text)}), "a prefix is written without \"*\""});
  }
  auto path = normalise(text);
  if (!path) return path;
  while (path->ends_with('/'))
    path->pop_back();
  return path;
}

bool path_matches(std::string_view pattern, std::string_view path) {
  if (!is_prefix_path(pattern)) return path == pattern;
  const std::string_view folder = pattern.substr(0, pattern.size() - 1);  // with its slash
  return path.starts_with(folder) || path == folder.substr(0, folder.size() - 1);
}

}  // namespace ringside::config
