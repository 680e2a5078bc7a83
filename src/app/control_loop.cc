#include "control_loop.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace ringside::app {
namespace {

using base::LogLevel;

sigset_t handled_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2})
    ::sigaddset(&set, number);
  return set;
}

class ControlLoop {
 public:
  ControlLoop(RingThreads& rings, control::LogWriter& log, std::vector<Chore> chores)
      : rings_(rings), log_(log), chores_(std::move(chores), Clock::now()) {}

  bool run(int signals) {
    pollfd entries[] = {{signals, POLLIN, 0},
                        {rings_.done_descriptor(), POLLIN, 0},
                        {log_.wake_descriptor(), POLLIN, 0}};
    while (!rings_.finished()) {
      ::poll(entries, std::size(entries), wait_ms());
      take_signals(signals);
      chores_.run(Clock::now());
      log_.flush();
    }
    return requests_ > 0;
  }

 private:
  using Clock = std::chrono::steady_clock;

  // Until the log or a chore wants attention; -1: neither does.
  int wait_ms() const {
    const int log = log_.wait_ms();
    const std::optional<std::chrono::milliseconds> chore = chores_.wait(Clock::now());
    if (!chore) return log;
    const int chore_ms = static_cast<int>(chore->count());
    return log < 0 ? chore_ms : std::min(log, chore_ms);
  }

  void take_signals(int signals) {
    signalfd_siginfo info;
    while (::read(signals, &info, sizeof info) == sizeof info) {
      handle(static_cast<int>(info.ssi_signo));
    }
  }

  void handle(int number) {
    switch (number) {
      case SIGTERM:
      case SIGINT:
        end(number == SIGTERM ? "SIGTERM" : "SIGINT");
        return;
      case SIGUSR1:
        log_.reopen();
        log_.log(LogLevel::info, "log", "files opened again");
        return;
      case SIGUSR2:
        rings_.request_report();
        log_.log(LogLevel::info, "tls-counts", to_string(rings_.tls_counts()));
        return;
      case SIGHUP:
        log_.log(LogLevel::warn, "signal",
                 "SIGHUP: this version cannot reload its configuration; restart it instead");
        return;
      default:
        return;
    }
  }

  void end(std::string_view signal) {
    ++requests_;
    if (requests_ == 1) {
      log_.log(LogLevel::info, "drain",
               std::string(signal) + ": no new connections; requests in flight may finish");
      rings_.request_drain();
    } else if (requests_ == 2) {
      log_.log(LogLevel::warn, "stop", std::string(signal) + " again: ending at once");
      rings_.request_stop();
    }
  }

  RingThreads& rings_;
  control::LogWriter& log_;
  Chores chores_;
  unsigned requests_ = 0;  // to end
};

}  // namespace

int block_signals() {
  const sigset_t set = handled_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  // A log that reached the size limit is an error of write(2), not the end of the process.
  ::signal(SIGXFSZ, SIG_IGN);
  return ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

bool control_loop(RingThreads& rings, control::LogWriter& log, int signals,
                  std::vector<Chore> chores) {
  const bool asked = ControlLoop(rings, log, std::move(chores)).run(signals);
  ::close(signals);
  return asked;
}

}  // namespace ringside::app
