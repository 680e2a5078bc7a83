// The files of a configuration: the main one and all that it includes, parsed but not understood.
#pragma once

#include <toml++/toml.h>

#include <string>
#include <string_view>
#include <vector>

#include "section.h"

namespace ringside::config {

struct Document {
  std::string name;
  toml::table root;
};

// Reads files, follows `include`, reports what cannot be read or parsed. One load each.
class Documents {
 public:
  explicit Documents(Context& context) : context_(&context) {}

  void add_file(const std::string& path);
  // A name that begins with "<" stands for text from nowhere: it may include nothing.
  void add_text(std::string_view text, const std::string& name);

  // Those that could be parsed; the main one is the first.
  const std::vector<Document>& all() const { return documents_; }
  // The names of all files that were looked at, in order.
  const std::vector<std::string>& names() const { return names_; }
  // True when some text is missing, so that what refers to it cannot be judged.
  bool incomplete() const { return incomplete_; }

 private:
  void parse(std::string_view text, const std::string& name);
  void include(const Value& value, const std::string& name);
  void include_pattern(const std::string& pattern, const Value& value, const std::string& name);
  void include_file(const std::string& path, const Value& value);

  Context* context_;
  std::vector<Document> documents_;
  std::vector<std::string> names_;
  std::vector<std::string>
      open_;  // canonical paths of the files that are being read, outermost first
  std::vector<std::string> done_;  // canonical paths of those that were read
  bool incomplete_ = false;
};

}  // namespace ringside::config
