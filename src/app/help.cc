#include "help.h"

namespace ringside::app {
namespace {

constexpr std::string_view overview = R"(Ringside, an HTTP edge proxy on io_uring.

Usage: ringside COMMAND [OPTIONS]

Commands:
  run        serve, in the foreground, until SIGTERM or SIGINT
  check      read the configuration, report every mistake, print the memory sizing sheet
  version    print the version
  help       print this, or `help COMMAND` for one command

Options:
  -h, --help       print help, also after a command
  -V, --version    print the version

Exit status:
  0     success, also after a drain
  1     a failure while running or starting: an address in use, io_uring switched off
  2     a mistake on the command line
  78    a mistake in the configuration

Files:
  /etc/ringside/ringside.toml    the configuration, unless --config names another

See ringside(1) for signals, limits and examples.
)";

constexpr std::string_view run = R"(Serve, in the foreground, until told to end.

Usage: ringside run [[-c] FILE]

Options:
  -c, --config FILE    the configuration (default: /etc/ringside/ringside.toml)
  -h, --help           print this

When all addresses are bound and all rings are up, one line says so, with the addresses
really bound (port 0 lets the system choose):

  2026-11-30T12:00:00.123Z info ready listen.web=127.0.0.1:8080 pid=1

Signals:
  SIGTERM, SIGINT    drain: accept no more, let requests in flight finish (for at most
                     timeouts.drain), then end. The same signal once more ends at once.
  SIGUSR1            open the log files again, after a rotation
  SIGUSR2            log what each ring holds: connections, buffers, pipes, operations
)";

constexpr std::string_view check = R"(Read the configuration without serving.

Usage: ringside check [[-c] FILE]

Options:
  -c, --config FILE    the configuration (default: /etc/ringside/ringside.toml)
  -h, --help           print this

Every mistake is reported, one a line, as FILE:LINE:COLUMN: message, on standard error, and
the exit status is 78. Without a mistake the status is 0, and standard output has the sizing
sheet: how much memory, locked memory and how many descriptors this configuration can take.
)";

constexpr std::string_view version = R"(Print the version.

Usage: ringside version [-v]

Options:
  -v, --verbose    also the libraries, and what io_uring of the running kernel offers
  -h, --help       print this
)";

}  // namespace

std::string_view help_text(Command command) {
  switch (command) {
    case Command::run:
      return run;
    case Command::check:
      return check;
    case Command::version:
      return version;
    case Command::help:
      return overview;
  }
  return overview;
}

}  // namespace ringside::app
