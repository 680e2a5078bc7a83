#include "forwarded_field.h"

#include <cstring>

#include "ringside/base/text.h"

namespace ringside::filter {
namespace {

bool is_token_char(char c) {
  const char low = base::to_lower(c);
  if ((low >= 'a' && low <= 'z') || (c >= '0' && c <= '9')) return true;
  return c != '\0' && std::strchr("!#$%&'*+-.^_`|~", c) != nullptr;
}

bool is_token(std::string_view text) {
  for (char c : text) {
    if (!is_token_char(c)) return false;
  }
  return !text.empty();
}

// As a token where it is one, else as a quoted-string (RFC 9110 §5.6.4).
void append_value(http::HeadWriter& out, std::string_view text) {
  if (is_token(text)) {
    out.append(text);
    return;
  }
  out.append("\"");
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '"' && text[i] != '\\') continue;
    out.append(text.substr(begin, i - begin));
    out.append("\\");
    begin = i;
  }
  out.append(text.substr(begin));
  out.append("\"");
}

void append_node(http::HeadWriter& out, const RequestFacts& facts) {
  const std::string_view address = facts.peer_address;
  const bool v6 = address.find(':') != std::string_view::npos;
  if (address.empty() || address.starts_with("unix")) {
    out.append("unknown");
    return;
  }
  // RFC 7239 §6: brackets and colons are not token characters, so such a node is quoted.
  const bool quoted = v6 || facts.peer_port != 0;
  if (quoted) out.append("\"");
  if (v6) out.append("[");
  out.append(address);
  if (v6) out.append("]");
  if (facts.peer_port != 0) {
    out.append(":");
    out.append(std::uint64_t{facts.peer_port});
  }
  if (quoted) out.append("\"");
}

}  // namespace

void ForwardedReader::skip_blanks() {
  while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t'))
    rest_.remove_prefix(1);
}

std::string_view ForwardedReader::token() {
  std::size_t bytes = 0;
  while (bytes < rest_.size() && is_token_char(rest_[bytes]))
    ++bytes;
  const std::string_view found = rest_.substr(0, bytes);
  rest_.remove_prefix(bytes);
  return found;
}

bool ForwardedReader::value(base::Arena& arena, std::string_view& out) {
  if (!rest_.starts_with('"')) {
    out = token();
    return !out.empty();
  }
  std::size_t end = 1;
  std::size_t escapes = 0;
  while (end < rest_.size() && rest_[end] != '"') {
    const bool escape = rest_[end] == '\\';
    escapes += escape ? 1 : 0;
    end += escape ? 2 : 1;
  }
  if (end >= rest_.size()) return false;
  out = rest_.substr(1, end - 1);
  rest_.remove_prefix(end + 1);
  if (escapes == 0) return true;
  char* const begin = arena.allocate_array<char>(out.size());
  if (begin == nullptr) return false;
  char* at = begin;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] == '\\') ++i;
    *at++ = out[i];
  }
  out = {begin, static_cast<std::size_t>(at - begin)};
  return true;
}

bool ForwardedReader::pair(base::Arena& arena, std::string_view& node) {
  const std::string_view name = token();
  if (name.empty() || !rest_.starts_with('=')) return false;
  rest_.remove_prefix(1);
  std::string_view text;
  if (!value(arena, text)) return false;
  const bool is_proto = base::equals_ignore_case(name, "proto");
  if (!is_proto && !base::equals_ignore_case(name, "for")) return true;
  // RFC 7239 §4: a parameter occurs once in an element; two would let a liar pick.
  std::string_view& known = is_proto ? proto_ : node;
  if (known.data() != nullptr) return false;
  known = text;
  return true;
}

ForwardedReader::Step ForwardedReader::next(base::Arena& arena, std::string_view& node) {
  node = proto_ = {};
  skip_blanks();
  while (rest_.starts_with(',')) {  // empty list elements: RFC 9110 §5.6.1.2
    rest_.remove_prefix(1);
    skip_blanks();
  }
  if (rest_.empty()) return Step::end;
  // forwarded-element = [ pair ] *( ";" [ pair ] ). Blanks around ";" are not in it, but are sent.
  while (!rest_.empty() && rest_.front() != ',') {
    if (rest_.front() != ';' && !pair(arena, node)) return Step::malformed;
    skip_blanks();
    if (rest_.empty() || rest_.front() == ',') break;
    if (rest_.front() != ';') return Step::malformed;
    rest_.remove_prefix(1);
    skip_blanks();
  }
  return Step::element;
}

void append_forwarded_element(http::HeadWriter& out, const RequestFacts& facts) {
  out.append("for=");
  append_node(out, facts);
  out.append(";proto=");
  append_value(out, facts.scheme);
  if (facts.host.empty()) return;
  out.append(";host=");
  append_value(out, facts.host);
}

}  // namespace ringside::filter
