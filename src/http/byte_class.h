// Sets of bytes as the grammars of RFC 9110, 9112 and 3986 name them, in a form that one SIMD
// shuffle can look up.
#pragma once

#include <cstdint>
#include <string_view>

namespace ringside::http {

// A set of ASCII bytes: byte c is in it when low[c & 15] and high[c >> 4] share a bit. Bit h of
// low[l] stands for byte (h << 4 | l), so any subset of 0x00-0x7F fits; 0x80-0xFF are never
// members.
struct ByteClass {
  alignas(16) std::uint8_t low[16] = {};
  alignas(16) std::uint8_t high[16] = {};

  constexpr bool has(char byte) const {
    auto c = static_cast<std::uint8_t>(byte);
    return (low[c & 15] & high[c >> 4]) != 0;
  }
  constexpr bool has_all(std::string_view text) const {
    for (char c : text) {
      if (!has(c)) return false;
    }
    return true;
  }
};

template <typename Predicate>
consteval ByteClass make_byte_class(Predicate in_class) {
  ByteClass set;
  for (unsigned h = 0; h < 8; ++h)
    set.high[h] = static_cast<std::uint8_t>(1U << h);
  for (unsigned c = 0; c < 128; ++c) {
    if (in_class(static_cast<char>(c)))
      set.low[c & 15] |= static_cast<std::uint8_t>(1U << (c >> 4));
  }
  return set;
}

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool is_alpha(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// -1 when `c` is no hex digit.
constexpr int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// tchar, RFC 9110 §5.6.2.
inline constexpr ByteClass token_bytes = make_byte_class([](char c) {
  return is_digit(c) || is_alpha(c) ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
});

// What may stand in a request target: VCHAR without "#", since a fragment is never sent
// (RFC 9112 §3.2). Wider than RFC 3986 ("\", "^", "|" and others pass): such bytes reach servers
// every day, and they travel unchanged.
inline constexpr ByteClass target_bytes =
    make_byte_class([](char c) { return c > ' ' && c < 0x7f && c != '#'; });

// RFC 3986 §2.3.
inline constexpr ByteClass unreserved_bytes = make_byte_class([](char c) {
  return is_digit(c) || is_alpha(c) || c == '-' || c == '.' || c == '_' || c == '~';
});

// reg-name without its percent-encoded part, RFC 3986 §3.2.2.
inline constexpr ByteClass reg_name_bytes = make_byte_class([](char c) {
  return is_digit(c) || is_alpha(c) ||
         std::string_view("-._~!$&'()*+,;=").find(c) != std::string_view::npos;
});

}  // namespace ringside::http
