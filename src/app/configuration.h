// Reading the file for a command.
#pragma once

#include <string>

#include "ringside/config/load.h"

namespace ringside::app {

// Prints every problem and warning on standard error, one a line. Null when there is a problem.
config::SnapshotRef load_or_complain(const std::string& file);

}  // namespace ringside::app
