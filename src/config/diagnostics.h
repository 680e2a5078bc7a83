// Collects what is wrong with a configuration, with places and suggestions.
#pragma once

#include <toml++/toml.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ringside/config/load.h"

namespace ringside::config {

struct Place {
  std::string file;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
};

Place place_of(const toml::source_region& region);

// "file:line", for messages that name a second place.
std::string short_text(const Place& place);

// Owner: one load. Not thread-safe.
class Reporter {
 public:
  void problem(const Place& place, std::string message, std::string suggestion = {});
  void warning(const Place& place, std::string message, std::string suggestion = {});
  bool failed() const { return !problems_.empty(); }
  // Hands out the lists, ordered by file (as they were first seen), line and column.
  void move_into(Loaded& loaded, const std::vector<std::string>& file_order);

 private:
  std::vector<Problem> problems_;
  std::vector<Problem> warnings_;
};

// The parts in one string.
std::string join(std::initializer_list<std::string_view> parts);

// In double quotes, control characters as \xNN, shortened when it is long.
std::string quote(std::string_view text);

// "a", "b", "c"
std::string quote_list(std::span<const std::string_view> words);

// The candidate that `word` most likely is a slip of; empty when none is near.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

// `did you mean "x"?`, or else `one of "a", "b"`.
std::string suggest(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace ringside::config
