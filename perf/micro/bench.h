// What the micro benchmarks share; `main` is in main.cc.
#pragma once

#include <benchmark/benchmark.h>

namespace ringside::bench {

// Ends a benchmark whose code did not do what was to be measured: no figure, and the program's exit
// status is 1. (SkipWithError alone leaves it at 0; that is for what this machine does not have.)
void fail(benchmark::State& state, const char* why);

}  // namespace ringside::bench
