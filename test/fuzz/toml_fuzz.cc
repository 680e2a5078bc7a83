// Any bytes as a configuration: no crash, and every problem has a place that exists in the text. A
// text that is accepted gives a Snapshot whose indices are valid.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "ringside/config/load.h"

namespace {

using ringside::config::Loaded;
using ringside::config::Problem;
using ringside::config::Snapshot;

void require(bool condition) {
  if (!condition) std::abort();
}

// The environment of the fuzzer: a few variables, so that both branches of ${VAR:-x} are taken.
std::optional<std::string> environment(std::string_view name) {
  if (name == "A") return "1";
  if (name == "EMPTY") return "";
  return std::nullopt;
}

void check_problem(const Problem& problem, std::size_t lines, std::size_t bytes) {
  require(problem.file == "<fuzz>");
  require(!problem.message.empty());
  // One line behind the last is where toml++ reports an unexpected end.
  require(problem.line <= lines + 1);
  require((problem.line == 0) == (problem.column == 0));
  require(problem.column <= bytes + 2);
  require(!to_string(problem).empty());
}

void check_snapshot(const Snapshot& snapshot) {
  require(!snapshot.listens.empty());
  for (const auto& listen : snapshot.listens)
    require(!listen.addresses.empty());
  for (const auto& upstream : snapshot.upstreams)
    require(!upstream.servers.empty());
  for (const auto& site : snapshot.sites) {
    require(!site.hosts.empty());
    for (std::uint32_t listen : site.listens)
      require(listen < snapshot.listens.size());
    for (const auto& route : site.routes) {
      require(route.path.starts_with('/'));
      const int targets = int{route.upstream.has_value()} + int{route.respond.has_value()} +
                          int{route.redirect.has_value()};
      require(targets == 1);
      require(!route.upstream || *route.upstream < snapshot.upstreams.size());
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // A name that begins with "<" stands for no file, so `include` cannot touch the disk.
  const Loaded loaded = ringside::config::load_text(text, "<fuzz>", environment);
  require((loaded.snapshot == nullptr) == !loaded.problems.empty());
  const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
  for (const Problem& problem : loaded.problems)
    check_problem(problem, lines, size);
  for (const Problem& warning : loaded.warnings)
    check_problem(warning, lines, size);
  if (loaded.snapshot) check_snapshot(*loaded.snapshot);
  return 0;
}
