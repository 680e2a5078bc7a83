// The command line.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace ringside::app {

enum class Command : std::uint8_t { run, check, version, help };

struct Arguments {
  Command command = Command::help;
  bool help = false;     // `--help` after a command, or `help COMMAND`
  bool verbose = false;  // of `version`
  std::string config = "/etc/ringside/ringside.toml";
};

// `words` is argv without the program's name. The error is a sentence for the user, with a
// suggestion where something looks like a slip of the finger.
std::expected<Arguments, std::string> parse_arguments(const std::vector<std::string_view>& words);

// The nearest of `candidates` that is at most two edits away (a third of its length at most), else
// empty.
std::string_view nearest(std::string_view word, const std::vector<std::string_view>& candidates);

}  // namespace ringside::app
