// The small grammars inside strings: durations, sizes, methods, field names, templates.
// Pure: no file, no environment but the one given, no state.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "ringside/config/load.h"

namespace ringside::config {

// What is wrong with a value. `message` goes on after the name of the key: `"connect" needs a
// unit`.
struct Complaint {
  std::string message;
  std::string suggestion;
};

template <typename T>
using Parsed = std::expected<T, Complaint>;

// "500ms", "5s", "2m", "1h". At most 30 days. "none" is the caller's.
Parsed<Millis> parse_duration(std::string_view text);

// Seconds, for what lasts: "3600s", "12h", "365d". At most ten years.
Parsed<std::uint64_t> parse_age(std::string_view text);

// "512B", "64KiB", "10MiB", "1GiB", and the decimal "kB", "MB", "GB".
Parsed<std::uint64_t> parse_size(std::string_view text);

// RFC 9110 §5.6.2.
bool is_token(std::string_view text);

// A method in upper case. Methods are case-sensitive (RFC 9110 §9.1), so "get" is a mistake.
Parsed<std::string> parse_method(std::string_view text);

// RFC 9110 §5.1: the field name itself, in lower case.
Parsed<std::string> parse_field_name(std::string_view text);

// RFC 9110 §5.5: no CR, LF, NUL or other control characters except HTAB, no blanks around it.
std::optional<Complaint> check_field_value(std::string_view text);

// "text {variable} text". "{{" stands for one brace.
Parsed<Template> parse_template(std::string_view text);

// Replaces ${NAME} and ${NAME:-default}; "$${" stands for "${". `used` tells whether there was any.
Parsed<std::string> expand_environment(std::string_view text, const Environment& environment,
                                       bool& used);

}  // namespace ringside::config
