#include "escape.h"

#include <cstdint>
#include <cstring>

namespace ringside::control {
namespace {

constexpr char digits_lower[] = "0123456789abcdef";
constexpr char digits_upper[] = "0123456789ABCDEF";

// Eight bytes at a time: true when each is printable ASCII other than '"' and '\'. The usual text
// of a request is made of nothing else.
bool all_plain(const char* at) {
  constexpr std::uint64_t ones = 0x0101010101010101;
  constexpr std::uint64_t highs = 0x8080808080808080;
  std::uint64_t word;
  std::memcpy(&word, at, sizeof word);
  const std::uint64_t below_space = (word - ones * 0x20) & ~word;
  const std::uint64_t quote = word ^ (ones * '"');
  const std::uint64_t backslash = word ^ (ones * '\\');
  const std::uint64_t is_quote = (quote - ones) & ~quote;
  const std::uint64_t is_backslash = (backslash - ones) & ~backslash;
  const std::uint64_t above_tilde = word + ones;  // 0x7f and more get the high bit
  return ((below_space | is_quote | is_backslash | above_tilde | word) & highs) == 0;
}

bool plain(unsigned char c) {
  return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

std::size_t plain_prefix(std::string_view text) {
  std::size_t length = 0;
  while (length + 8 <= text.size() && all_plain(text.data() + length))
    length += 8;
  while (length < text.size() && plain(static_cast<unsigned char>(text[length])))
    ++length;
  return length;
}

bool continues(std::string_view text, std::size_t index) {
  return index < text.size() && (static_cast<unsigned char>(text[index]) & 0xC0) == 0x80;
}

// Length of the well-formed multi-byte sequence that `text` starts with (RFC 3629 §4), 0 if none.
std::size_t utf8_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const auto second = text.size() > 1 ? static_cast<unsigned char>(text[1]) : 0;
  if (first < 0xC2 || first > 0xF4 || !continues(text, 1)) return 0;
  if (first < 0xE0) return 2;
  if (first < 0xF0) {
    const bool overlong = first == 0xE0 && second < 0xA0;
    const bool surrogate = first == 0xED && second >= 0xA0;
    return !overlong && !surrogate && continues(text, 2) ? 3 : 0;
  }
  const bool overlong = first == 0xF0 && second < 0x90;
  const bool too_high = first == 0xF4 && second >= 0x90;
  return !overlong && !too_high && continues(text, 2) && continues(text, 3) ? 4 : 0;
}

// U+0080..U+009F: two bytes in UTF-8, and some terminals take them for control sequences.
bool is_c1_control(std::string_view sequence) {
  return sequence[0] == '\xC2' && static_cast<unsigned char>(sequence[1]) < 0xA0;
}

void append_code(std::string& out, unsigned char c) {
  const char code[] = {'\\', 'u', '0', '0', digits_lower[c >> 4], digits_lower[c & 15]};
  out.append(code, sizeof code);
}

void append_control(std::string& out, unsigned char c) {
  switch (c) {
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      append_code(out, c);
  }
}

// Appends what one byte (or one UTF-8 sequence) at the start of `text` becomes; returns how many
// bytes were used up.
std::size_t append_special(std::string& out, std::string_view text, bool escape_quote) {
  const auto c = static_cast<unsigned char>(text[0]);
  if (c == '"') {
    out += escape_quote ? "\\\"" : "\"";
    return 1;
  }
  if (c == '\\') {
    out += "\\\\";
    return 1;
  }
  const std::size_t length = c >= 0x80 ? utf8_length(text) : 0;
  if (length == 0) {
    append_control(out, c);
    return 1;
  }
  if (length == 2 && is_c1_control(text)) {
    append_code(out, static_cast<unsigned char>(text[1]));
  } else {
    out.append(text.data(), length);
  }
  return length;
}

void append_escaped(std::string& out, std::string_view text, bool escape_quote) {
  while (!text.empty()) {
    const std::size_t clean = plain_prefix(text);
    out.append(text.data(), clean);
    text.remove_prefix(clean);
    if (!text.empty()) text.remove_prefix(append_special(out, text, escape_quote));
  }
}

}  // namespace

void append_json(std::string& out, std::string_view text) {
  append_escaped(out, text, true);
}

void append_readable(std::string& out, std::string_view text) {
  append_escaped(out, text, false);
}

void append_combined(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const std::size_t clean = plain_prefix(text);
    out.append(text.data(), clean);
    text.remove_prefix(clean);
    if (text.empty()) return;
    const auto c = static_cast<unsigned char>(text[0]);
    const char code[] = {'\\', 'x', digits_upper[c >> 4], digits_upper[c & 15]};
    out.append(code, sizeof code);
    text.remove_prefix(1);
  }
}

}  // namespace ringside::control
