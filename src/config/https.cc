#include <algorithm>

#include "readers.h"

namespace ringside::config {
namespace {

// What lists of sites that browsers have built in ask for (hstspreload.org).
constexpr std::uint64_t preload_age_s_min = 365ULL * 86'400;
constexpr std::uint64_t hsts_age_s_default = 365ULL * 86'400;

// Where authorities look for the proof that a name is ours, in clear text first (RFC 8555 §8.3).
constexpr std::string_view acme_prefix = "/.well-known/acme-challenge";

void read_redirect_status(const Value& value, RedirectHttps& out) {
  const auto code = value.integer(300, 399);
  if (!code) return;
  static constexpr int known[] = {301, 302, 307, 308};
  if (std::find(std::begin(known), std::end(known), *code) == std::end(known)) {
    value.complain(join({"cannot be ", std::to_string(*code)}), "one of 301, 302, 307, 308");
    return;
  }
  out.status = static_cast<std::uint16_t>(*code);
}

std::optional<std::uint64_t> read_age(const Value& value) {
  const auto text = value.text(R"(a time like "365d")");
  if (!text) return std::nullopt;
  const auto age = parse_age(*text);
  if (age) return *age;
  value.complain(age.error());
  return std::nullopt;
}

std::string hsts_value(std::uint64_t age_s, bool include_subdomains, bool preload) {
  return join({"max-age=", std::to_string(age_s), include_subdomains ? "; includeSubDomains" : "",
               preload ? "; preload" : ""});
}

void read_hsts_table(Section section, std::string& out) {
  std::optional<std::uint64_t> age_s = hsts_age_s_default;
  const auto age = section.take("max_age");
  if (age) age_s = read_age(*age);
  bool include_subdomains = false;
  bool preload = false;
  read_flag(section, "include_subdomains", include_subdomains);
  read_flag(section, "preload", preload);
  if (preload && !include_subdomains) {
    section.take("preload")->complain("needs include_subdomains = true", "hstspreload.org");
  }
  if (preload && age_s && *age_s < preload_age_s_min) {
    section.take("preload")->complain("needs a max_age of at least \"365d\"", "hstspreload.org");
  }
  section.finish();
  if (age_s) out = hsts_value(*age_s, include_subdomains, preload);
}

}  // namespace

void read_redirect_https(const Value& value, RedirectHttps& out) {
  if (!value.is_table()) {
    if (value.is_number()) {
      value.complain("must be true, false or a table, not a number",
                     "like { status = 301, port = 8443 }");
      return;
    }
    if (const auto on = value.flag()) out.on = *on;
    return;
  }
  out.on = true;
  Section section = value.section("redirect_https");
  if (const auto status = section.take("status")) read_redirect_status(*status, out);
  if (const auto port = section.take("port")) {
    if (const auto number = port->integer(1, 65'535))
      out.port = static_cast<std::uint16_t>(*number);
  }
  section.finish();
}

void read_hsts(const Value& value, std::string& out) {
  if (value.is_table()) return read_hsts_table(value.section("hsts"), out);
  if (value.is_text()) {
    // An age, or a flag from the environment.
    const bool is_flag = value.says("true") || value.says("false");
    if (!is_flag) {
      if (const auto age_s = read_age(value)) out = hsts_value(*age_s, false, false);
      return;
    }
  } else if (value.is_number()) {
    value.complain("must be true, false, a time or a table, not a number", R"(like "365d")");
    return;
  }
  const auto on = value.flag();
  if (on && *on) out = hsts_value(hsts_age_s_default, false, false);
}

void read_route_redirect_https(Section& section, Route& route) {
  const std::string_view path = route.path;
  route.redirect_https = path != acme_prefix && !path.starts_with(join({acme_prefix, "/"}));
  read_flag(section, "redirect_https", route.redirect_https);
}

}  // namespace ringside::config
