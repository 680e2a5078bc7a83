// Texts of `ringside help` and `--help`. The manual page docs/ringside.1 says the same at length.
#pragma once

#include <string_view>

#include "arguments.h"

namespace ringside::app {

// Command::help: the overview of all commands.
std::string_view help_text(Command command);

}  // namespace ringside::app
