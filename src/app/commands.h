// What each word on the command line does. Each returns the exit status of the process.
#pragma once

#include "arguments.h"

namespace ringside::app {

inline constexpr int exit_ok = 0;
inline constexpr int exit_failure = 1;
inline constexpr int exit_usage = 2;
inline constexpr int exit_config = 78;  // EX_CONFIG of sysexits.h

int run_command(const Arguments& arguments);
int check_command(const Arguments& arguments);
int version_command(const Arguments& arguments);

}  // namespace ringside::app
