#include "section.h"

#include <algorithm>

#include "ringside/base/text.h"

namespace ringside::config {
namespace {

std::string_view type_name(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "a number";
    case toml::node_type::floating_point:
      return "a decimal number";
    case toml::node_type::boolean:
      return "true or false";
    case toml::node_type::date:
      return "a date";
    case toml::node_type::time:
      return "a time of day";
    case toml::node_type::date_time:
      return "a date and time";
    case toml::node_type::none:
      break;
  }
  return "nothing";
}

bool before(const toml::source_position& a, const toml::source_position& b) {
  return a.line != b.line ? a.line < b.line : a.column < b.column;
}

}  // namespace

std::optional<std::string> Value::expanded(bool& used) const {
  const auto* text = node_->as_string();
  auto result = expand_environment(text->get(), context_->environment, used);
  if (result) return std::move(*result);
  complain(result.error());
  return std::nullopt;
}

bool Value::says(std::string_view word) const {
  const auto* text = node_->as_string();
  if (text == nullptr) return false;
  bool used = false;
  const auto result = expand_environment(text->get(), context_->environment, used);
  return result && *result == word;
}

std::optional<std::string> Value::text(std::string_view expected) const {
  if (!is_text()) {
    complain_type(expected);
    return std::nullopt;
  }
  bool used = false;
  return expanded(used);
}

std::optional<std::int64_t> Value::integer(std::int64_t least, std::int64_t most,
                                           std::string_view more) const {
  std::optional<std::int64_t> number;
  const std::string expected = more.empty() ? "a number" : join({"a number or ", more});
  if (const auto* plain = node_->as_integer()) {
    number = plain->get();
  } else if (is_text()) {
    bool used = false;
    const auto text = expanded(used);
    if (!text) return std::nullopt;
    // A variable can only stand in a string, so there a number may be one.
    if (used) number = base::parse_decimal<std::int64_t>(*text);
    if (!number) {
      complain(join({"must be ", expected, ", not ", quote(*text)}));
      return std::nullopt;
    }
  } else {
    complain_type(expected);
    return std::nullopt;
  }
  if (*number < least || *number > most) {
    complain(join({"must be from ", std::to_string(least), " to ", std::to_string(most), ", not ",
                   std::to_string(*number)}));
    return std::nullopt;
  }
  return number;
}

std::optional<bool> Value::flag() const {
  if (const auto* plain = node_->as_boolean()) return plain->get();
  if (is_text()) {
    bool used = false;
    const auto text = expanded(used);
    if (!text) return std::nullopt;
    if (used && *text == "true") return true;
    if (used && *text == "false") return false;
    const bool known = *text == "true" || *text == "false";
    complain(join({"must be true or false, not ", quote(*text)}),
             known ? join({"write it without quotes: ", *text}) : std::string());
    return std::nullopt;
  }
  complain_type("true or false");
  return std::nullopt;
}

std::vector<Value> Value::elements() const {
  std::vector<Value> out;
  if (const auto* array = node_->as_array()) {
    for (const toml::node& element : *array)
      out.emplace_back(*context_, element, name_);
  } else {
    out.push_back(*this);
  }
  return out;
}

Section Value::section(std::string title) const {
  return Section(*context_, std::move(title), {node_->as_table()});
}

void Value::complain(const Complaint& complaint) const {
  context_->reporter.problem(place(), join({quote(name_), " ", complaint.message}),
                             complaint.suggestion);
}

void Value::complain_type(std::string_view expected) const {
  complain(join({"must be ", expected, ", not ", type_name(*node_)}));
}

void Value::warn(const std::string& message, std::string suggestion) const {
  context_->reporter.warning(place(), join({quote(name_), " ", message}), std::move(suggestion));
}

Section::Section(Context& context, std::string title, std::vector<const toml::table*> tables)
    : context_(&context), title_(std::move(title)), tables_(std::move(tables)) {}

Place Section::place() const {
  return exists() ? place_of(tables_.front()->source()) : Place{};
}

std::optional<Value> Section::take(std::string_view key) {
  // A key that is read twice is still reported once.
  const bool first_time = std::find(known_.begin(), known_.end(), key) == known_.end();
  allow(key);
  const toml::key* first = nullptr;
  std::optional<Value> value;
  for (const toml::table* table : tables_) {
    const auto found = table->find(key);
    if (found == table->end()) continue;
    if (first == nullptr) {
      first = &found->first;
      value.emplace(*context_, found->second, std::string(key));
      continue;
    }
    if (!first_time) continue;
    context_->reporter.problem(place_of(found->first.source()),
                               join({quote(key), " in ", title_, " is set already at ",
                                     short_text(place_of(first->source()))}));
  }
  return value;
}

Section Section::sub(std::string_view key, std::string title) {
  allow(key);
  std::vector<const toml::table*> found;
  for (const toml::table* table : tables_) {
    const toml::node* node = table->get(key);
    if (node == nullptr) continue;
    if (const auto* inner = node->as_table()) {
      found.push_back(inner);
    } else {
      Value(*context_, *node, std::string(key)).complain_type("a table");
    }
  }
  return Section(*context_, std::move(title), std::move(found));
}

std::vector<Named> Section::all() const {
  std::vector<Named> out;
  for (const toml::table* table : tables_) {
    const auto first = static_cast<std::ptrdiff_t>(out.size());
    for (const auto& [key, node] : *table) {
      out.push_back({&key, Value(*context_, node, std::string(key.str()))});
    }
    // toml++ keeps keys in alphabetical order; people count on the order of the file.
    std::stable_sort(out.begin() + first, out.end(), [](const Named& a, const Named& b) {
      return before(a.key->source().begin, b.key->source().begin);
    });
  }
  return out;
}

void Section::finish() {
  std::vector<std::string_view> known(known_.begin(), known_.end());
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  for (const Named& entry : all()) {
    const std::string_view key = entry.key->str();
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    context_->reporter.problem(place_of(entry.key->source()),
                               join({"unknown key ", quote(key), " in ", title_}),
                               suggest(key, known));
  }
}

}  // namespace ringside::config
