#include <algorithm>

#include "paths.h"
#include "readers.h"

namespace ringside::config {
namespace {

bool has_no_body(std::uint16_t status) {
  return status == 204 || status == 304;
}

void read_methods(const Value& value, Route& route) {
  for (const auto& [text, element] : read_texts(value)) {
    auto method = parse_method(text);
    if (!method) {
      element.complain(method.error());
    } else if (std::find(route.methods.begin(), route.methods.end(), *method) !=
               route.methods.end()) {
      element.complain(join({"names ", *method, " twice"}));
    } else {
      route.methods.push_back(std::move(*method));
    }
  }
}

void read_upstream_name(const Value& value, const Draft& draft, Route& route) {
  // Set in any case: a wrong name is one mistake, not two.
  route.upstream = 0;
  const auto name = value.text("the name of an upstream");
  if (!name) return;
  const auto found = draft.upstream_names.find(*name);
  if (found != draft.upstream_names.end()) {
    route.upstream = found->second;
    return;
  }
  std::vector<std::string_view> names;
  names.reserve(draft.upstream_names.size());
  for (const auto& [known, index] : draft.upstream_names)
    names.push_back(known);
  std::string suggestion = suggest(*name, names);
  if (names.empty()) suggestion = join({"add [upstream.", *name, "]"});
  value.complain(join({"names ", quote(*name), ", but there is no such upstream"}), suggestion);
}

void read_respond(const Value& value, Route& route) {
  Respond& respond = route.respond.emplace();
  if (!value.is_table()) {
    value.complain_type(R"(a table like { status = 200, body = "hello" })");
    return;
  }
  Section section = value.section("respond");
  if (const auto status = section.take("status")) {
    if (const auto code = status->integer(200, 599)) {
      respond.status = static_cast<std::uint16_t>(*code);
    }
  }
  if (const auto body = section.take("body")) {
    if (auto text = body->text()) respond.body = std::move(*text);
    if (has_no_body(respond.status) && !respond.body.empty()) {
      body->complain(join({"cannot go with status ", std::to_string(respond.status),
                           ", whose responses have no body (RFC 9110 §6.4.1)"}));
    }
  }
  Section headers = section.sub("headers", "headers of respond");
  read_respond_headers(headers, respond);
  section.finish();
}

// "{path}" may begin with "//", which makes it another site's address (CWE-601).
void warn_of_open_redirect(const Value& value, const Template& location) {
  if (location.empty()) return;
  const Variable first = location.front().variable;
  if (first == Variable::path || first == Variable::uri) {
    value.warn("begins with the client's path, so \"//other.example\" leads to another site",
               R"(begin with "{scheme}://{host}")");
  }
}

void read_location(const Value& value, Redirect& redirect) {
  const auto text = value.text("a string or a table of to and status");
  if (!text) return;
  if (text->empty()) {
    value.complain("is empty");
    return;
  }
  if (auto complaint = check_field_value(*text)) {
    value.complain(*complaint);
    return;
  }
  auto location = parse_template(*text);
  if (!location) {
    value.complain(location.error());
    return;
  }
  warn_of_open_redirect(value, *location);
  redirect.location = std::move(*location);
}

void read_redirect(const Value& value, Route& route) {
  Redirect& redirect = route.redirect.emplace();
  if (!value.is_table()) {
    read_location(value, redirect);
    return;
  }
  Section section = value.section("redirect");
  if (const auto to = section.take("to")) {
    read_location(*to, redirect);
  } else {
    value.complain("does not say where to", R"(like { to = "https://{hostname}{uri}" })");
  }
  if (const auto status = section.take("status")) {
    if (const auto code = status->integer(300, 399)) {
      redirect.status = static_cast<std::uint16_t>(*code);
      static constexpr int known[] = {301, 302, 303, 307, 308};
      if (std::find(std::begin(known), std::end(known), *code) == std::end(known)) {
        status->complain(join({"cannot be ", std::to_string(*code)}),
                         "one of 301, 302, 303, 307, 308");
      }
    }
  }
  section.finish();
}

void read_prefix(Section& section, std::string_view key, const Route& route, std::string& out) {
  const auto value = section.take(key);
  if (!value) return;
  const auto text = value->text();
  if (!text) return;
  auto prefix = parse_prefix(*text);
  if (!prefix) {
    value->complain(prefix.error());
    return;
  }
  out = std::move(*prefix);
  if (key == "strip_prefix" && !out.empty() && !path_matches(out + "/*", route.path) &&
      !path_matches(out + "/*", route.path.substr(0, route.path.size() - 1))) {
    value->warn(join({quote(out), " is not at the start of ", quote(route.path),
                      ", so most paths will not change"}));
  }
}

// One of upstream, respond and redirect.
void read_target(Section& section, const Draft& draft, Route& route) {
  const auto upstream = section.take("upstream");
  const auto respond = section.take("respond");
  const auto redirect = section.take("redirect");
  if (upstream) read_upstream_name(*upstream, draft, route);
  if (respond) read_respond(*respond, route);
  if (redirect) read_redirect(*redirect, route);
  const int targets =
      int{upstream.has_value()} + int{respond.has_value()} + int{redirect.has_value()};
  if (targets == 0) {
    section.context().reporter.problem(section.place(),
                                       join({section.title(), " does not say what to do"}),
                                       "add one of upstream, respond and redirect");
  } else if (targets > 1) {
    const Value& second = upstream ? (respond ? *respond : *redirect) : *redirect;
    second.complain("cannot be beside another target",
                    "a route has one of upstream, respond and redirect");
  }
}

// Keys that do nothing unless the request goes to an upstream.
void warn_of_idle_keys(Section& section, const Route& route) {
  if (route.upstream || !(route.respond || route.redirect)) return;
  for (std::string_view key : {"request_headers", "strip_prefix", "add_prefix", "preserve_host"}) {
    if (const auto value = section.take(key)) {
      value->warn("does nothing in a route without upstream");
    }
  }
}

}  // namespace

void read_route(Section& section, Draft& draft, Site& site) {
  Route route;
  route.source = short_text(section.place());
  bool good = true;
  if (const auto path = section.take("path")) {
    if (const auto text = path->text()) {
      auto normal = parse_route_path(*text);
      if (normal) {
        route.path = std::move(*normal);
      } else {
        path->complain(normal.error());
        good = false;
      }
    }
  }
  if (const auto methods = section.take("methods")) {
    read_methods(*methods, route);
    good = good && !route.methods.empty();
  }
  read_target(section, draft, route);
  Section request = section.sub("request_headers", "request_headers");
  if (request.exists()) read_edits(request, Direction::request, route.request_headers);
  Section response = section.sub("response_headers", "response_headers");
  if (response.exists()) {
    read_edits(response, route.redirect ? Direction::redirect : Direction::response,
               route.response_headers);
  }
  read_prefix(section, "strip_prefix", route, route.strip_prefix);
  read_prefix(section, "add_prefix", route, route.add_prefix);
  read_flag(section, "preserve_host", route.preserve_host);
  read_route_redirect_https(section, route);
  warn_of_idle_keys(section, route);
  section.finish();
  // Nobody can tell what it would have matched, so it is compared with no other route.
  if (!good) route.path.clear();
  draft.places.routes.back().push_back(section.place());
  site.routes.push_back(std::move(route));
}

}  // namespace ringside::config
