#include <algorithm>

#include "readers.h"

namespace ringside::config {
namespace {

// These say how this connection and this body are framed, which only ringside knows.
constexpr std::string_view framing_fields[] = {
    "connection", "content-length", "keep-alive",        "proxy-connection",
    "te",         "trailer",        "transfer-encoding", "upgrade"};

bool is_framing(std::string_view name) {
  return std::find(std::begin(framing_fields), std::end(framing_fields), name) !=
         std::end(framing_fields);
}

constexpr std::string_view location_name = "location";

// Whether it was one of a redirect that says where to, or might be (`prefix`).
bool complain_of_location(const Value& value, std::string_view name, Direction direction,
                          bool prefix = false) {
  if (direction != Direction::redirect) return false;
  if (prefix ? !location_name.starts_with(name) : name != location_name) return false;
  value.complain(R"(cannot change "location" of a redirect)", "redirect says where to");
  return true;
}

// The field name of a key, in lower case; nullopt after a complaint.
std::optional<std::string> field_name(const Value& value, std::string_view text) {
  auto name = parse_field_name(text);
  if (!name) {
    value.complain(name.error());
    return std::nullopt;
  }
  if (is_framing(*name)) {
    value.complain(join({"cannot change ", quote(*name)}),
                   "ringside writes the fields that frame a message itself");
    return std::nullopt;
  }
  return std::move(*name);
}

std::optional<Template> field_template(const Value& value) {
  const auto text = value.text();
  if (!text) return std::nullopt;
  if (auto complaint = check_field_value(*text)) {
    value.complain(*complaint);
    return std::nullopt;
  }
  auto parts = parse_template(*text);
  if (!parts) {
    value.complain(parts.error());
    return std::nullopt;
  }
  return std::move(*parts);
}

using Edits = std::vector<std::pair<std::string, Template>>;

bool has_name(const Edits& edits, std::string_view name) {
  return std::any_of(edits.begin(), edits.end(),
                     [&](const auto& edit) { return edit.first == name; });
}

void read_set(Section& section, Direction direction, Edits& edits) {
  for (const Named& entry : section.all()) {
    const auto name = field_name(entry.value, entry.value.name());
    auto value = field_template(entry.value);
    if (!name || !value) continue;
    if (complain_of_location(entry.value, *name, direction)) continue;
    if (*name == "host" && direction != Direction::request) {
      entry.value.complain("is a field of requests");
    } else if (has_name(edits, *name)) {
      entry.value.complain("is set twice; header names do not differ by case");
    } else {
      edits.emplace_back(*name, std::move(*value));
    }
  }
}

void read_add(Section& section, Direction direction, Edits& edits) {
  for (const Named& entry : section.all()) {
    const auto name = field_name(entry.value, entry.value.name());
    if (!name || complain_of_location(entry.value, *name, direction)) continue;
    if (*name == "host") {
      entry.value.complain("cannot be added: a request has one Host", "use set");
      continue;
    }
    for (const Value& element : entry.value.elements()) {
      if (auto value = field_template(element)) edits.emplace_back(*name, std::move(*value));
    }
  }
}

void read_remove(const Value& list, Direction direction, std::vector<std::string>& names) {
  for (const auto& [text, element] : read_texts(list)) {
    const bool prefix = text.ends_with('*');
    if (text == "*") {
      element.complain("cannot remove every header", R"(like "x-internal-*")");
      continue;
    }
    const auto name = field_name(element, std::string_view(text).substr(0, text.size() - prefix));
    if (!name || complain_of_location(element, *name, direction, prefix)) continue;
    if (*name == "host" && !prefix) {
      element.complain("cannot remove Host, which every request has");
      continue;
    }
    names.push_back(prefix ? *name + '*' : *name);
  }
}

}  // namespace

void read_edits(Section& section, Direction direction, HeaderEdits& edits) {
  Section set = section.sub("set", join({"set of ", section.title()}));
  read_set(set, direction, edits.set);
  Section add = section.sub("add", join({"add of ", section.title()}));
  read_add(add, direction, edits.add);
  if (const auto remove = section.take("remove")) read_remove(*remove, direction, edits.remove);
  section.finish();
}

void read_respond_headers(Section& section, Respond& respond) {
  for (const Named& entry : section.all()) {
    const auto name = field_name(entry.value, entry.value.name());
    const auto text = entry.value.text();
    if (!name || !text) continue;
    if (auto complaint = check_field_value(*text)) {
      entry.value.complain(*complaint);
    } else {
      respond.headers.emplace_back(*name, *text);
    }
  }
}

}  // namespace ringside::config
