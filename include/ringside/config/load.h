// Reads a TOML file into a Snapshot. May throw only std::bad_alloc. Any thread; touches the file
// system.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ringside/config/snapshot.h"

namespace ringside::config {

// One mistake. All of a file's mistakes are reported together.
struct Problem {
  std::string file;
  std::uint32_t line = 0;  // from 1; 0 when it concerns the file as a whole
  std::uint32_t column = 0;
  std::string message;     // what is wrong, in one sentence
  std::string suggestion;  // what to write instead; may be empty
};

// "FILE:LINE:COLUMN: message (suggestion)".
std::string to_string(const Problem& problem);

struct Loaded {
  SnapshotRef snapshot;  // null when there are problems
  std::vector<Problem> problems;
  std::vector<Problem> warnings;  // things that work but probably surprise
};

// Looks up ${VAR}; defaults to the process environment.
using Environment = std::function<std::optional<std::string>(std::string_view)>;

Loaded load_file(const std::string& path, const Environment& environment = {});
// `name` stands for the file in messages; relative includes start at its folder.
Loaded load_text(std::string_view text, const std::string& name,
                 const Environment& environment = {});

}  // namespace ringside::config
