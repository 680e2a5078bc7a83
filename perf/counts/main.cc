// ringside-budget: what a request costs, counted. perf/budget runs it under callgrind.
#include <gnu/libc-version.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "run.h"
#include "scenarios.h"

namespace {

int usage(std::FILE* out) {
  std::fputs(
      "usage: ringside-budget SCENARIO [ROUNDS] | --list | --toolchain\n"
      "Prints totals, one \"name value\" a line. Exit status: 0, 1 it went wrong, 2 usage.\n",
      out);
  return out == stdout ? 0 : 2;
}

int list() {
  for (const auto& scenario : ringside::budget::scenarios())
    std::puts(std::string(scenario.name).c_str());
  return 0;
}

// All that decides how many instructions the same source becomes.
int toolchain() {
#if defined(__clang__)
  const char* compiler = "clang";
#else
  const char* compiler = "g++";
#endif
#ifdef __OPTIMIZE__
  const char* optimised = "optimised";
#else
  const char* optimised = "not optimised";
#endif
  std::printf("%s %s, glibc %s, %s\n", compiler, __VERSION__, gnu_get_libc_version(), optimised);
  return 0;
}

int measure(const ringside::budget::Scenario& scenario, unsigned rounds) {
  const ringside::budget::Counts counts = ringside::budget::run(scenario, rounds);
  if (!counts.error.empty()) {
    std::fprintf(stderr, "ringside-budget: %s: %s\n", std::string(scenario.name).c_str(),
                 counts.error.c_str());
    return 1;
  }
  const struct {
    const char* name;
    std::uint64_t value;
  } all[] = {{"requests", counts.requests},
             {"allocations", counts.allocations},
             {"enters", counts.enters},
             {"submissions", counts.submissions},
             {"completions", counts.completions}};
  for (const auto& [name, value] : all)
    std::printf("%s %llu\n", name, static_cast<unsigned long long>(value));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) return usage(stderr);
  const std::string_view word = argv[1];
  if (word == "--help") return usage(stdout);
  if (word == "--list") return list();
  if (word == "--toolchain") return toolchain();
  const auto* scenario = ringside::budget::scenario_named(word);
  if (scenario == nullptr) return usage(stderr);
  const unsigned long rounds = argc == 3 ? std::strtoul(argv[2], nullptr, 10) : scenario->rounds;
  if (rounds == 0 || rounds > 100'000) return usage(stderr);
  return measure(*scenario, static_cast<unsigned>(rounds));
}
