#include "arguments.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

namespace ringside::app {
namespace {

const std::vector<std::string_view> commands = {"run", "check", "version", "help"};

std::optional<Command> command_of(std::string_view word) {
  if (word == "run") return Command::run;
  if (word == "check") return Command::check;
  if (word == "version") return Command::version;
  if (word == "help") return Command::help;
  return std::nullopt;
}

// Edits from `a` to `b`: a letter more, less or another, or two neighbours exchanged.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last;
  std::vector<std::size_t> last;
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    before_last = std::exchange(last, row);
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      row[j + 1] = std::min({last[j] + (a[i] != b[j] ? 1 : 0), row[j] + 1, last[j + 1] + 1});
      if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j]) {
        row[j + 1] = std::min(row[j + 1], before_last[j - 1] + 1);
      }
    }
  }
  return row.back();
}

std::string with_suggestion(std::string message, std::string_view word,
                            const std::vector<std::string_view>& candidates) {
  if (const auto near = nearest(word, candidates); !near.empty()) {
    message += " (did you mean '" + std::string(near) + "'?)";
  }
  return message;
}

std::vector<std::string_view> options_of(Command command) {
  std::vector<std::string_view> options = {"--help"};
  if (command == Command::run || command == Command::check) options.push_back("--config");
  if (command == Command::version) options.push_back("--verbose");
  return options;
}

std::string_view name_of(Command command) {
  return commands[static_cast<std::size_t>(command)];
}

// Reads the words behind the command.
class Reader {
 public:
  Reader(Command command, const std::vector<std::string_view>& words) : words_(words) {
    arguments_.command = command;
  }

  std::expected<Arguments, std::string> read() {
    for (next_ = 1; next_ < words_.size();) {
      const std::string_view word = words_[next_++];
      if (auto error = take(word)) return std::unexpected(*error);
    }
    return arguments_;
  }

 private:
  using Failure = std::optional<std::string>;

  bool takes_config() const {
    return arguments_.command == Command::run || arguments_.command == Command::check;
  }

  Failure take(std::string_view word) {
    if (word == "-h" || word == "--help") {
      arguments_.help = true;
      return {};
    }
    if (takes_config() && word.starts_with("--config=")) return set_config(word.substr(9));
    if (takes_config() && (word == "-c" || word == "--config")) {
      if (next_ == words_.size()) return std::string(word) + " needs a file";
      return set_config(words_[next_++]);
    }
    if (takes_config() && word.starts_with("-c") && word.size() > 2) {
      return set_config(word.substr(2));
    }
    if (arguments_.command == Command::version && (word == "-v" || word == "--verbose")) {
      arguments_.verbose = true;
      return {};
    }
    if (arguments_.command == Command::help && !word.starts_with('-')) return set_topic(word);
    return refuse(word);
  }

  Failure set_config(std::string_view file) {
    if (file.empty()) return "--config needs a file";
    config_given_ = true;
    arguments_.config = file;
    return {};
  }

  // `help run` is `run --help`.
  Failure set_topic(std::string_view word) {
    const auto topic = command_of(word);
    if (!topic) {
      return with_suggestion("there is no command '" + std::string(word) + "'", word, commands);
    }
    arguments_.command = *topic;
    arguments_.help = true;
    return {};
  }

  Failure refuse(std::string_view word) {
    const std::string name(name_of(arguments_.command));
    if (!word.starts_with('-')) {
      // `ringside check FILE` is what one types without thinking.
      if (takes_config() && !std::exchange(config_given_, true)) return set_config(word);
      return "'" + name + "' takes no argument '" + std::string(word) + "'";
    }
    const std::string_view option = word.substr(0, word.find('='));
    return with_suggestion("'" + name + "' has no option '" + std::string(option) + "'", option,
                           options_of(arguments_.command));
  }

  const std::vector<std::string_view>& words_;
  std::size_t next_ = 0;
  bool config_given_ = false;
  Arguments arguments_;
};

}  // namespace

std::string_view nearest(std::string_view word, const std::vector<std::string_view>& candidates) {
  std::string_view best;
  std::size_t best_distance = 3;
  for (const std::string_view candidate : candidates) {
    const std::size_t edits = distance(word, candidate);
    const std::size_t allowed = std::max<std::size_t>(1, candidate.size() / 3);
    if (edits < best_distance && edits <= allowed) {
      best = candidate;
      best_distance = edits;
    }
  }
  return best;
}

std::expected<Arguments, std::string> parse_arguments(const std::vector<std::string_view>& words) {
  if (words.empty()) return std::unexpected("a command is missing");
  const std::string_view first = words[0];
  if (first == "-h" || first == "--help") return Reader(Command::help, words).read();
  if (first == "-V" || first == "--version") return Reader(Command::version, words).read();
  if (const auto command = command_of(first)) return Reader(*command, words).read();
  if (first.starts_with('-')) {
    return std::unexpected(with_suggestion("there is no option '" + std::string(first) + "'", first,
                                           {"--help", "--version"}));
  }
  return std::unexpected(
      with_suggestion("there is no command '" + std::string(first) + "'", first, commands));
}

}  // namespace ringside::app
