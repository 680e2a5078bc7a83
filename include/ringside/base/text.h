// Small text helpers that the standard library lacks: ASCII only, no locale, no allocation.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ringside::base {

constexpr char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
}

// Case-insensitive in ASCII, exact in every other byte (field names, hosts, codings).
bool equals_ignore_case(std::string_view a, std::string_view b);
bool starts_with_ignore_case(std::string_view text, std::string_view prefix);

// Without leading and trailing SP and HTAB (OWS of RFC 9110 §5.6.3).
std::string_view trim_ows(std::string_view text);

// Digits only: no sign, no blank, no overflow.
template <typename T>
std::optional<T> parse_decimal(std::string_view text) {
  T value{};
  if (text.empty() || text[0] == '-' || text[0] == '+') return std::nullopt;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace ringside::base
