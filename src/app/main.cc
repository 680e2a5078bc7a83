#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "arguments.h"
#include "commands.h"
#include "help.h"

namespace {

using namespace ringside::app;

int dispatch(const Arguments& arguments) {
  if (arguments.help || arguments.command == Command::help) {
    const std::string_view text = help_text(arguments.command);
    std::fwrite(text.data(), 1, text.size(), stdout);
    return exit_ok;
  }
  switch (arguments.command) {
    case Command::run:
      return run_command(arguments);
    case Command::check:
      return check_command(arguments);
    case Command::version:
      return version_command(arguments);
    case Command::help:
      break;
  }
  return exit_ok;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  try {
    const auto arguments = parse_arguments(words);
    if (!arguments) {
      std::fprintf(stderr, "ringside: %s\nTry 'ringside help'.\n", arguments.error().c_str());
      return exit_usage;
    }
    return dispatch(*arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ringside: %s\n", error.what());
    return exit_failure;
  }
}
