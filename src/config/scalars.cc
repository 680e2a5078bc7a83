#include <array>
#include <filesystem>
#include <limits>

#include "readers.h"

namespace ringside::config {
namespace {

constexpr std::string_view none_word = "none";

// Whether the value says that there is none; complains where that cannot be.
bool is_none(const Value& value, Zero zero) {
  if (!value.says(none_word)) return false;
  if (zero == Zero::refused) value.complain("cannot be \"none\"");
  return true;
}

std::optional<std::uint64_t> size_of(const Value& value, std::uint64_t least, std::uint64_t most,
                                     Zero zero) {
  if (value.is_number()) {
    const bool none = zero == Zero::allowed;
    const auto bytes =
        value.integer(none ? 0 : static_cast<std::int64_t>(least), static_cast<std::int64_t>(most));
    if (!bytes) return std::nullopt;
    return static_cast<std::uint64_t>(*bytes);
  }
  const auto text = value.text("a size");
  if (!text) return std::nullopt;
  if (is_none(value, zero)) {
    if (zero == Zero::allowed) return 0;
    return std::nullopt;
  }
  const auto bytes = parse_size(*text);
  if (!bytes) {
    value.complain(bytes.error());
    return std::nullopt;
  }
  if (*bytes == 0 && zero == Zero::allowed) return 0;
  if (*bytes < least || *bytes > most) {
    value.complain(join({"must be from ", std::to_string(least), " to ", std::to_string(most),
                         " bytes, not ", quote(*text)}));
    return std::nullopt;
  }
  return *bytes;
}

// Of numbers only 0 is a rate: all others would need a unit.
std::optional<std::uint64_t> rate_of_number(const Value& value, std::uint64_t most) {
  const auto number = value.integer(0, static_cast<std::int64_t>(most));
  if (!number) return std::nullopt;
  if (*number == 0) return 0;
  value.complain("needs a unit",
                 join({"did you mean ", quote(join({std::to_string(*number), "B/s"})), "?"}));
  return std::nullopt;
}

// `text` is the value's own. Zero needs no "/s".
std::optional<std::uint64_t> rate_of_text(const Value& value, std::string_view text,
                                          std::uint64_t least, std::uint64_t most) {
  constexpr std::string_view a_second = "/s";
  const bool complete = text.ends_with(a_second);
  const auto bytes = parse_size(text.substr(0, text.size() - (complete ? a_second.size() : 0)));
  if (!bytes) {
    value.complain(bytes.error());
    return std::nullopt;
  }
  if (*bytes == 0) return 0;
  if (!complete) {
    value.complain(join({"is a rate and needs \"/s\", not ", quote(text)}),
                   join({"did you mean ", quote(join({text, a_second})), "?"}));
    return std::nullopt;
  }
  if (*bytes < least || *bytes > most) {
    value.complain(join({"must be from ", std::to_string(least), " to ", std::to_string(most),
                         " bytes a second, not ", quote(text)}));
    return std::nullopt;
  }
  return *bytes;
}

std::optional<std::uint64_t> rate_of(const Value& value, std::uint64_t least, std::uint64_t most) {
  if (value.is_number()) return rate_of_number(value, most);
  const auto text = value.text(R"(a rate like "1KiB/s")");
  if (!text) return std::nullopt;
  if (is_none(value, Zero::allowed)) return 0;
  return rate_of_text(value, *text, least, most);
}

}  // namespace

void read_text(Section& section, std::string_view key, std::string& out) {
  if (const auto value = section.take(key)) {
    if (auto text = value->text()) out = std::move(*text);
  }
}

void read_path(Section& section, std::string_view key, std::string& out) {
  const auto value = section.take(key);
  if (!value) return;
  const auto text = value->text();
  if (!text) return;
  if (text->empty() || text->find('\0') != std::string::npos) {
    return value->complain("has no usable file name");
  }
  // Text from nowhere ("<stdin>") has no folder either.
  const std::string& file = value->place().file;
  const bool placed = text->front() != '/' && !file.starts_with('<');
  out = placed ? (std::filesystem::path(file).parent_path() / *text).string() : *text;
}

void read_flag(Section& section, std::string_view key, bool& out) {
  if (const auto value = section.take(key)) out = value->flag().value_or(out);
}

void read_count(Section& section, std::string_view key, std::uint32_t& out, std::uint32_t least,
                std::uint32_t most) {
  const auto value = section.take(key);
  if (!value) return;
  if (const auto count = value->integer(least, most)) out = static_cast<std::uint32_t>(*count);
}

void read_optional_count(Section& section, std::string_view key, std::uint32_t& out,
                         std::uint32_t most, std::string_view word) {
  const auto value = section.take(key);
  if (!value) return;
  if (value->says(word)) {
    out = 0;
    return;
  }
  const auto count = value->integer(0, most, quote(word));
  if (count) out = static_cast<std::uint32_t>(*count);
}

void read_duration(Section& section, std::string_view key, Millis& out, Millis least, Zero zero) {
  const auto value = section.take(key);
  if (!value) return;
  if (value->is_number()) {
    // The most usual slip, so it gets the exact line to write.
    const auto number = value->integer(0, std::numeric_limits<std::int32_t>::max());
    if (!number) return;
    if (*number == 0 && zero == Zero::allowed) {
      out = 0;
      return;
    }
    value->complain("needs a unit",
                    join({"did you mean ", quote(join({std::to_string(*number), "s"})), "?"}));
    return;
  }
  const auto text = value->text(R"(a time like "5s")");
  if (!text) return;
  if (is_none(*value, zero)) {
    if (zero == Zero::allowed) out = 0;
    return;
  }
  const auto duration_ms = parse_duration(*text);
  if (!duration_ms) {
    value->complain(duration_ms.error());
    return;
  }
  if (*duration_ms == 0 && zero == Zero::allowed) {
    out = 0;
    return;
  }
  if (*duration_ms < least) {
    value->complain(
        join({"must be at least \"", std::to_string(least), "ms\", not ", quote(*text)}));
    return;
  }
  out = *duration_ms;
}

void read_size(Section& section, std::string_view key, std::uint64_t& out, std::uint64_t least,
               std::uint64_t most, Zero zero) {
  if (const auto value = section.take(key)) out = size_of(*value, least, most, zero).value_or(out);
}

void read_size(Section& section, std::string_view key, std::uint32_t& out, std::uint32_t least,
               std::uint32_t most, Zero zero) {
  std::uint64_t wide = out;
  read_size(section, key, wide, std::uint64_t{least}, std::uint64_t{most}, zero);
  out = static_cast<std::uint32_t>(wide);
}

void read_rate(Section& section, std::string_view key, std::uint64_t& out, std::uint64_t least,
               std::uint64_t most) {
  if (const auto value = section.take(key)) out = rate_of(*value, least, most).value_or(out);
}

std::vector<std::pair<std::string, Value>> read_texts(const Value& value) {
  std::vector<std::pair<std::string, Value>> out;
  const std::vector<Value> elements = value.elements();
  if (elements.empty()) value.complain("is an empty list");
  for (const Value& element : elements) {
    auto text =
        element.text(value.is_array() ? "a list of strings" : "a string or a list of strings");
    if (!text) continue;
    if (text->empty()) {
      element.complain("has an empty string");
      continue;
    }
    out.emplace_back(std::move(*text), element);
  }
  return out;
}

}  // namespace ringside::config
