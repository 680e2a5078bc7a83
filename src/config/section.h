// Typed reading of TOML tables: every key that is asked for is known, all others are mistakes.
#pragma once

#include <toml++/toml.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ringside/config/load.h"

#include "diagnostics.h"
#include "values.h"

namespace ringside::config {

// What reading needs everywhere. Lives as long as the load.
struct Context {
  Reporter& reporter;
  const Environment& environment;
};

class Section;

// One value of the file. Its readers report what is wrong and return nothing then.
class Value {
 public:
  Value(Context& context, const toml::node& node, std::string name)
      : context_(&context), node_(&node), name_(std::move(name)) {}

  Place place() const { return place_of(node_->source()); }
  const std::string& name() const { return name_; }
  Context& context() const { return *context_; }

  bool is_text() const { return node_->is_string(); }
  bool is_table() const { return node_->is_table(); }
  bool is_array() const { return node_->is_array(); }
  bool is_number() const { return node_->is_integer(); }
  // True when this is a string that says `word`. Reports nothing.
  bool says(std::string_view word) const;

  // `expected` is for the message: "a string".
  std::optional<std::string> text(std::string_view expected = "a string") const;
  // Also takes "${VAR}" that holds a number. `more` is an alternative for the message.
  std::optional<std::int64_t> integer(std::int64_t least, std::int64_t most,
                                      std::string_view more = {}) const;
  std::optional<bool> flag() const;
  // The elements of an array; one element for anything else.
  std::vector<Value> elements() const;
  // A table, for `elements` that may be tables. Check `is_table` first.
  Section section(std::string title) const;

  // `"NAME" COMPLAINT`
  void complain(const Complaint& complaint) const;
  void complain(std::string message, std::string suggestion = {}) const {
    complain(Complaint{std::move(message), std::move(suggestion)});
  }
  void complain_type(std::string_view expected) const;
  void warn(const std::string& message, std::string suggestion = {}) const;

 private:
  std::optional<std::string> expanded(bool& used) const;

  Context* context_;
  const toml::node* node_;
  std::string name_;
};

struct Named {
  const toml::key* key;
  Value value;
};

// A table, or several of the same name from several files seen as one.
class Section {
 public:
  // `title` as messages call it: "[server]", "the file".
  Section(Context& context, std::string title, std::vector<const toml::table*> tables);

  Context& context() const { return *context_; }
  const std::string& title() const { return title_; }
  // Where the table begins.
  Place place() const;
  bool exists() const { return !tables_.empty(); }

  // The value of a key, which is known from now on.
  std::optional<Value> take(std::string_view key);
  // Makes a key known without reading it.
  void allow(std::string_view key) { known_.emplace_back(key); }
  // The sub-table (or tables, from several files) of that name. Reports one that is no table.
  Section sub(std::string_view key, std::string title);
  // All values in the order of the file, for tables whose keys are names.
  std::vector<Named> all() const;
  // Reports the keys that nobody asked for.
  void finish();

 private:
  Context* context_;
  std::string title_;
  std::vector<const toml::table*> tables_;
  std::vector<std::string> known_;
};

}  // namespace ringside::config
