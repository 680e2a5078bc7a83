#include "values.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "ringside/base/text.h"

#include "diagnostics.h"

namespace ringside::config {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

constexpr Unit duration_units[] = {{"ms", 1}, {"s", 1'000}, {"m", 60'000}, {"h", 3'600'000}};
constexpr Millis duration_ms_max = 30ULL * 24 * 3'600'000;

constexpr Unit age_units[] = {{"s", 1}, {"m", 60}, {"h", 3'600}, {"d", 86'400}};
constexpr std::uint64_t age_s_max = 3650ULL * 86'400;

constexpr Unit size_units[] = {{"B", 1},
                               {"KiB", 1ULL << 10},
                               {"MiB", 1ULL << 20},
                               {"GiB", 1ULL << 30},
                               {"TiB", 1ULL << 40},
                               {"kB", 1'000},
                               {"KB", 1'000},
                               {"MB", 1'000'000},
                               {"GB", 1'000'000'000}};

constexpr std::pair<std::string_view, Variable> variable_names[] = {
    {"client_address", Variable::client_address},
    {"client_port", Variable::client_port},
    {"host", Variable::host},
    {"hostname", Variable::hostname},
    {"method", Variable::method},
    {"path", Variable::path},
    {"query", Variable::query},
    {"uri", Variable::uri},
    {"scheme", Variable::scheme},
    {"request_id", Variable::request_id},
    {"server_name", Variable::server_name},
    {"listener", Variable::listener},
    {"tls_version", Variable::tls_version},
    {"tls_cipher", Variable::tls_cipher},
    {"tls_sni", Variable::tls_sni},
    {"tls_alpn", Variable::tls_alpn},
    {"tls_client_verified", Variable::tls_client_verified},
    {"tls_client_subject", Variable::tls_client_subject},
    {"tls_client_cn", Variable::tls_client_cn},
    {"tls_client_issuer", Variable::tls_client_issuer},
    {"tls_client_serial", Variable::tls_client_serial},
    {"tls_client_fingerprint", Variable::tls_client_fingerprint},
    {"tls_client_san", Variable::tls_client_san},
    {"tls_client_dns", Variable::tls_client_dns},
    {"tls_client_uri", Variable::tls_client_uri},
    {"tls_client_email", Variable::tls_client_email},
    {"tls_client_cert", Variable::tls_client_cert},
};
constexpr std::string_view header_variable = "header.";

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::pair<std::string_view, std::string_view> split_number(std::string_view text) {
  std::size_t digits = 0;
  while (digits < text.size() && is_digit(text[digits]))
    ++digits;
  std::string_view unit = text.substr(digits);
  while (!unit.empty() && unit.front() == ' ')
    unit.remove_prefix(1);
  return {text.substr(0, digits), unit};
}

const Unit* find_unit(std::span<const Unit> units, std::string_view name) {
  for (const Unit& unit : units) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

// "10M", "10k", "10mib": people mean the binary unit.
std::string_view guess_size_unit(std::string_view unit) {
  if (unit.empty()) return "B";
  switch (base::to_lower(unit.front())) {
    case 'k':
      return "KiB";
    case 'm':
      return "MiB";
    case 'g':
      return "GiB";
    case 't':
      return "TiB";
    default:
      return "B";
  }
}

std::string_view guess_duration_unit(std::string_view unit) {
  if (unit.empty()) return "s";
  if (base::equals_ignore_case(unit, "ms") || base::starts_with_ignore_case(unit, "mil")) {
    return "ms";
  }
  switch (base::to_lower(unit.front())) {
    case 'm':
      return "m";
    case 'h':
      return "h";
    default:
      return "s";
  }
}

Parsed<TemplatePart> parse_variable(std::string_view name) {
  for (const auto& [known, variable] : variable_names) {
    if (name == known) return TemplatePart{{}, variable, {}};
  }
  if (name.starts_with(header_variable)) {
    auto field = parse_field_name(name.substr(header_variable.size()));
    if (!field) return std::unexpected(std::move(field.error()));
    return TemplatePart{{}, Variable::request_header, std::move(*field)};
  }
  std::array<std::string_view, std::size(variable_names) + 1> names;
  std::transform(std::begin(variable_names), std::end(variable_names), names.begin(),
                 [](const auto& entry) { return entry.first; });
  names.back() = "header.NAME";
  return std::unexpected(Complaint{
      join({"has an unknown variable ", quote(join({"{", name, "}"}))}), suggest(name, names)});
}

// The end of a variable's name, or npos. `from` is behind "${".
std::size_t variable_name_end(std::string_view text, std::size_t from) {
  std::size_t at = from;
  while (at < text.size() && (is_letter(text[at]) || is_digit(text[at]) || text[at] == '_'))
    ++at;
  return at == from || is_digit(text[from]) ? std::string_view::npos : at;
}

}  // namespace

Parsed<Millis> parse_duration(std::string_view text) {
  const auto [digits, unit_name] = split_number(text);
  if (digits.empty()) {
    return std::unexpected(Complaint{join({"must be a time, not ", quote(text)}),
                                     R"(like "500ms", "5s", "2m" or "1h")"});
  }
  if (unit_name.starts_with('.')) {
    return std::unexpected(Complaint{join({"must be a whole number, not ", quote(text)}),
                                     R"(take a smaller unit, like "1500ms")"});
  }
  const Unit* unit = find_unit(duration_units, unit_name);
  if (unit == nullptr) {
    const std::string message =
        unit_name.empty() ? "needs a unit" : join({"has an unknown unit of time in ", quote(text)});
    return std::unexpected(
        Complaint{message, join({"like ", quote(join({digits, guess_duration_unit(unit_name)})),
                                 "; the units are ms, s, m and h"})});
  }
  const auto number = base::parse_decimal<std::uint64_t>(digits);
  if (!number || *number > duration_ms_max / unit->factor) {
    return std::unexpected(Complaint{join({"is too long: ", quote(text)}), "at most \"720h\""});
  }
  return *number * unit->factor;
}

Parsed<std::uint64_t> parse_age(std::string_view text) {
  const auto [digits, unit_name] = split_number(text);
  const auto number = base::parse_decimal<std::uint64_t>(digits);
  const Unit* unit = find_unit(age_units, unit_name);
  if (unit == nullptr || digits.empty()) {
    return std::unexpected(Complaint{join({"must be a time, not ", quote(text)}),
                                     digits.empty() ? R"(like "365d")"
                                                    : join({"like ", quote(join({digits, "d"})),
                                                            "; the units are s, m, h and d"})});
  }
  if (!number || *number > age_s_max / unit->factor) {
    return std::unexpected(Complaint{join({"is too long: ", quote(text)}), "at most \"3650d\""});
  }
  return *number * unit->factor;
}

Parsed<std::uint64_t> parse_size(std::string_view text) {
  const auto [digits, unit_name] = split_number(text);
  if (digits.empty()) {
    return std::unexpected(Complaint{join({"must be a size, not ", quote(text)}),
                                     R"(like "64KiB", "10MiB" or a number of bytes)"});
  }
  const Unit* unit = find_unit(size_units, unit_name);
  if (unit == nullptr) {
    const std::string message =
        unit_name.empty() ? "needs a unit" : join({"has an unknown unit of size in ", quote(text)});
    return std::unexpected(Complaint{
        message, join({"did you mean ", quote(join({digits, guess_size_unit(unit_name)})), "?"})});
  }
  const auto number = base::parse_decimal<std::uint64_t>(digits);
  if (!number || *number > (1ULL << 50) / unit->factor) {
    return std::unexpected(Complaint{join({"is too large: ", quote(text)}), {}});
  }
  return *number * unit->factor;
}

bool is_token(std::string_view text) {
  static constexpr std::string_view marks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return is_letter(c) || is_digit(c) || marks.find(c) != std::string_view::npos;
  });
}

Parsed<std::string> parse_method(std::string_view text) {
  if (!is_token(text)) {
    return std::unexpected(
        Complaint{join({"must name methods, but ", quote(text), " cannot be one"}),
                  R"(like "GET" or "POST")"});
  }
  std::string upper(text);
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 0x20);
  }
  if (upper != text) {
    return std::unexpected(
        Complaint{join({"names the method ", quote(text), ", but methods are written in capitals"}),
                  join({"did you mean ", quote(upper), "?"})});
  }
  if (upper == "CONNECT") {
    return std::unexpected(Complaint{"names CONNECT, which is always refused", {}});
  }
  return upper;
}

Parsed<std::string> parse_field_name(std::string_view text) {
  if (!is_token(text)) {
    std::string suggestion;
    if (text.ends_with(':') && is_token(text.substr(0, text.size() - 1))) {
      suggestion = join({"did you mean ", quote(text.substr(0, text.size() - 1)), "?"});
    }
    return std::unexpected(
        Complaint{join({"has ", quote(text), ", which is not a header name"}), suggestion});
  }
  std::string lower(text);
  for (char& c : lower)
    c = base::to_lower(c);
  return lower;
}

std::optional<Complaint> check_field_value(std::string_view text) {
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\t') || byte == 0x7f) {
      return Complaint{"has a control character in a header value", "header values are one line"};
    }
  }
  if (base::trim_ows(text).size() != text.size()) {
    return Complaint{"has blanks around a header value", quote(base::trim_ows(text))};
  }
  return std::nullopt;
}

Parsed<Template> parse_template(std::string_view text) {
  Template parts;
  std::string literal;
  auto flush = [&] {
    if (!literal.empty()) parts.push_back({std::exchange(literal, {}), Variable::none, {}});
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '{') {
      literal += text[at];
      continue;
    }
    if (at + 1 < text.size() && text[at + 1] == '{') {
      literal += '{';
      ++at;
      continue;
    }
    const std::size_t close = text.find('}', at);
    if (close == std::string_view::npos) {
      return std::unexpected(Complaint{join({"has a \"{\" without \"}\" in ", quote(text)}),
                                       "write \"{{\" for a brace"});
    }
    auto part = parse_variable(text.substr(at + 1, close - at - 1));
    if (!part) return std::unexpected(std::move(part.error()));
    flush();
    parts.push_back(std::move(*part));
    at = close;
  }
  flush();
  return parts;
}

Parsed<std::string> expand_environment(std::string_view text, const Environment& environment,
                                       bool& used) {
  used = false;
  std::string out;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with("$${")) {
      out += "${";
      at += 3;
      continue;
    }
    if (!rest.starts_with("${")) {
      out += text[at++];
      continue;
    }
    const std::size_t name_end = variable_name_end(text, at + 2);
    const std::size_t close = text.find('}', at);
    const bool bare = name_end != std::string_view::npos && name_end == close;
    const bool with_default = name_end != std::string_view::npos &&
                              close != std::string_view::npos &&
                              text.substr(name_end).starts_with(":-");
    if (!bare && !with_default) {
      return std::unexpected(
          Complaint{join({"has a broken \"${\" in ", quote(text)}),
                    R"(write "${NAME}", "${NAME:-default}", or "$${" for itself)"});
    }
    used = true;
    const std::string_view name = text.substr(at + 2, name_end - at - 2);
    auto value = environment(name);
    // As in the shell, an empty variable takes the default too.
    if (with_default && (!value || value->empty())) {
      value = std::string(text.substr(name_end + 2, close - name_end - 2));
    }
    if (!value) {
      return std::unexpected(
          Complaint{join({"uses ${", name, "}, which is not set in the environment"}),
                    join({"set it, or write \"${", name, ":-default}\""})});
    }
    out += *value;
    at = close + 1;
  }
  return out;
}

}  // namespace ringside::config
