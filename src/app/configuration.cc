#include "configuration.h"

#include <cstdio>

namespace ringside::app {

config::SnapshotRef load_or_complain(const std::string& file) {
  config::Loaded loaded = config::load_file(file);
  for (const config::Problem& problem : loaded.problems) {
    std::fprintf(stderr, "%s\n", config::to_string(problem).c_str());
  }
  for (const config::Problem& warning : loaded.warnings) {
    std::fprintf(stderr, "%s\n", ("warning: " + config::to_string(warning)).c_str());
  }
  if (!loaded.problems.empty()) return nullptr;
  return loaded.snapshot;
}

}  // namespace ringside::app
