// ringside-sim: the whole proxy on a simulated kernel, from a seed.
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "simulation.h"

namespace {

using ringside::sim::FaultCounts;
using ringside::sim::Sabotage;
using ringside::sim::Simulation;
using ringside::sim::SimulationOptions;
using ringside::sim::SimulationResult;

constexpr const char* usage =
    "usage: ringside-sim [--seed N] [--seeds COUNT] [--exchanges M] [--replay FILE]\n"
    "                    [--break INVARIANT] [--without FAULT]... [--clear] [--http1]\n"
    "                    [--h2-clients] [--confirmed] [--twice] [--verbose]\n"
    "  --seed N        the seed to run, or the first of several (default 1)\n"
    "  --seeds COUNT   runs COUNT seeds, N, N+1, ...\n"
    "  --exchanges M   exchanges a run (default 40)\n"
    "  --replay FILE   runs the seeds of a file, one \"SEED [EXCHANGES] [clear] [http1]\n"
    "                  [h2-clients] [confirmed]\" a line, # for comments\n"
    "  --break NAME    breaks one invariant on purpose; \"--break list\" names them\n"
    "  --without NAME  keeps one fault off, to find out which one matters\n"
    "  --clear         nobody speaks TLS\n"
    "  --http1         nobody speaks HTTP/2\n"
    "  --confirmed     nobody sends early data\n"
    "  --h2-clients    no server speaks HTTP/2\n"
    "  --twice         runs each seed twice and compares\n"
    "  --verbose       says what happens\n"
    "Exit status: 0 all is well, 1 a seed failed, 2 usage.\n";

struct Arguments {
  SimulationOptions options;
  std::uint64_t seeds = 1;
  std::string replay;
  bool twice = false;
};

// What to say when the program itself dies: the seed is all that is needed to see it again.
char epitaph[200];
int epitaph_bytes = 0;

void on_death(int signal) {
  const ssize_t ignored = ::write(STDERR_FILENO, epitaph, static_cast<std::size_t>(epitaph_bytes));
  static_cast<void>(ignored);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

std::string left_out(const SimulationOptions& options) {
  std::string out;
  if (options.clear) out += " --clear";
  if (options.http1) out += " --http1";
  if (options.h2_clients) out += " --h2-clients";
  if (options.confirmed) out += " --confirmed";
  return out;
}

void prepare_epitaph(const SimulationOptions& options) {
  epitaph_bytes = std::snprintf(
      epitaph, sizeof epitaph,
      "seed %llu died; to see it again: ringside-sim --seed %llu --exchanges %u --verbose%s\n",
      static_cast<unsigned long long>(options.seed), static_cast<unsigned long long>(options.seed),
      options.exchanges, left_out(options).c_str());
}

bool number(const char* text, std::uint64_t* out) {
  char* end = nullptr;
  *out = std::strtoull(text, &end, 10);
  return end != text && *end == '\0';
}

int list_sabotage() {
  for (int i = 1; i < static_cast<int>(Sabotage::count); ++i)
    std::puts(std::string(to_string(static_cast<Sabotage>(i))).c_str());
  return 0;
}

// -1: go on.
int parse(int argc, char** argv, Arguments* out) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    std::uint64_t n = 0;
    if (word == "--verbose") {
      out->options.verbose = true;
    } else if (word == "--clear") {
      out->options.clear = true;
    } else if (word == "--http1") {
      out->options.http1 = true;
    } else if (word == "--confirmed") {
      out->options.confirmed = true;
    } else if (word == "--h2-clients") {
      out->options.h2_clients = true;
    } else if (word == "--twice") {
      out->twice = true;
    } else if (word == "--help") {
      std::fputs(usage, stdout);
      return 0;
    } else if (word == "--break" && value == std::string_view("list")) {
      return list_sabotage();
    } else if (word == "--break") {
      out->options.sabotage = ringside::sim::sabotage_named(value);
      if (out->options.sabotage == Sabotage::count) return 2;
      ++i;
    } else if (word == "--without") {
      out->options.without.push_back(ringside::sim::fault_named(value));
      if (out->options.without.back() == ringside::sim::Fault::count) return 2;
      ++i;
    } else if (word == "--replay") {
      out->replay = value;
      ++i;
    } else if (number(value, &n)) {
      if (word == "--seed") {
        out->options.seed = n;
      } else if (word == "--seeds") {
        out->seeds = n;
      } else if (word == "--exchanges" && n > 0 && n <= 1'000'000) {
        out->options.exchanges = static_cast<std::uint32_t>(n);
      } else {
        return 2;
      }
      ++i;
    } else {
      return 2;
    }
  }
  return -1;
}

struct Totals {
  std::uint64_t seeds = 0;
  std::uint64_t complete = 0;
  std::uint64_t failed = 0;
  std::uint64_t turns = 0;
  FaultCounts faults{};
};

void add(Totals& totals, const SimulationResult& result) {
  ++totals.seeds;
  totals.complete += result.exchanges_complete;
  totals.failed += result.exchanges_failed;
  totals.turns += result.turns;
  for (std::size_t i = 0; i < result.faults.size(); ++i)
    totals.faults[i] += result.faults[i];
}

void print(const Totals& totals) {
  std::puts("faults:");
  for (std::size_t i = 0; i < totals.faults.size(); ++i) {
    std::printf("  %-24s %12llu\n",
                std::string(to_string(static_cast<ringside::sim::Fault>(i))).c_str(),
                static_cast<unsigned long long>(totals.faults[i]));
  }
  std::printf("%llu seeds passed: %llu exchanges whole, %llu cut, %llu turns\n",
              static_cast<unsigned long long>(totals.seeds),
              static_cast<unsigned long long>(totals.complete),
              static_cast<unsigned long long>(totals.failed),
              static_cast<unsigned long long>(totals.turns));
}

// What was violated is in an unknown state: nothing is cleaned up.
[[noreturn]] void report(const SimulationOptions& options, const std::string& violation) {
  std::printf("seed %llu failed: %s\n", static_cast<unsigned long long>(options.seed),
              violation.c_str());
  std::printf(
      "to see it again: ringside-sim --seed %llu --exchanges %u --verbose%s%s%s\n",
      static_cast<unsigned long long>(options.seed), options.exchanges, left_out(options).c_str(),
      options.sabotage == Sabotage::none ? "" : " --break ",
      options.sabotage == Sabotage::none ? "" : std::string(to_string(options.sabotage)).c_str());
  std::fflush(stdout);
  std::_Exit(1);
}

void run(const SimulationOptions& options, bool twice, Totals& totals) {
  prepare_epitaph(options);
  Simulation simulation(options);
  const SimulationResult result = simulation.run();
  if (!result.violation.empty()) report(options, result.violation);
  add(totals, result);
  if (!twice) return;
  Simulation again(options);
  if (again.run().digest != result.digest) report(options, "two runs of one seed differ");
}

int replay(const Arguments& arguments, Totals& totals) {
  std::ifstream file(arguments.replay);
  if (!file) {
    std::fprintf(stderr, "cannot read %s\n", arguments.replay.c_str());
    return 2;
  }
  for (std::string line; std::getline(file, line);) {
    SimulationOptions options = arguments.options;
    unsigned long long seed = 0;
    unsigned exchanges = options.exchanges;
    if (std::sscanf(line.c_str(), "%llu %u", &seed, &exchanges) < 1) continue;
    options.seed = seed;
    options.exchanges = exchanges;
    const std::string words = line.substr(0, line.find('#'));
    options.clear |= words.find("clear") != std::string::npos;
    options.http1 |= words.find("http1") != std::string::npos;
    options.confirmed |= words.find("confirmed") != std::string::npos;
    options.h2_clients |= words.find("h2-clients") != std::string::npos;
    run(options, arguments.twice, totals);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  const int parsed = parse(argc, argv, &arguments);
  if (parsed == 2) std::fputs(usage, stderr);
  if (parsed != -1) return parsed;
  // What was said last must be seen when the program dies.
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  for (int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE})
    std::signal(signal, on_death);
  Totals totals;
  if (!arguments.replay.empty()) {
    if (const int status = replay(arguments, totals); status != 0) return status;
  } else {
    const std::uint64_t first = arguments.options.seed;
    for (std::uint64_t i = 0; i < arguments.seeds; ++i) {
      arguments.options.seed = first + i;
      run(arguments.options, arguments.twice, totals);
    }
  }
  print(totals);
  return 0;
}
