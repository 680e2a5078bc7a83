#include <cstdio>

#include "bench.h"

namespace ringside::bench {
namespace {

bool failed = false;

}  // namespace

void fail(benchmark::State& state, const char* why) {
  failed = true;
  state.SkipWithError(why);
}

}  // namespace ringside::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  if (benchmark::RunSpecifiedBenchmarks() == 0) {
    std::fputs("no benchmark has such a name\n", stderr);
    return 2;
  }
  benchmark::Shutdown();
  return ringside::bench::failed ? 1 : 0;
}
