#include "tls_counts.h"

#include <numeric>
#include <string_view>
#include <utility>

namespace ringside::app {
namespace {

void add_to(std::uint64_t& sum, const tls::RoleCounters::Counter& counter) {
  sum += counter.load(std::memory_order_relaxed);
}

std::string reasons(const TlsCounts::Role& role) {
  std::string out;
  for (std::size_t reason = 0; reason < tls::user_space_reasons; ++reason) {
    if (role.user_space[reason] == 0) continue;
    out += out.empty() ? " (" : " ";
    out.append(tls::user_space_names[reason]).append("=");
    out += std::to_string(role.user_space[reason]);
  }
  return out.empty() ? out : out + ")";
}

std::string line_of(std::string_view name, const TlsCounts::Role& role) {
  const std::pair<std::string_view, std::uint64_t> all[] = {
      {"full", role.full},
      {"resumed", role.resumed},
      {"failed", role.failed},
      {"early_data", role.early_data},
      {"floods", role.floods},
      {"kernel_sends", role.kernel_sends},
      {"kernel_receives", role.kernel_receives},
      {"user_space",
       std::accumulate(std::begin(role.user_space), std::end(role.user_space), std::uint64_t{0})},
  };
  std::string out(name);
  out += ':';
  for (const auto& [what, count] : all) {
    // Few have the one switched on, or ever see the other.
    if (count == 0 && (what == "early_data" || what == "floods")) continue;
    out.append(" ").append(what).append("=").append(std::to_string(count));
  }
  return out + reasons(role);
}

}  // namespace

void TlsCounts::Role::add(const tls::RoleCounters& counters) {
  add_to(full, counters.full);
  add_to(resumed, counters.resumed);
  add_to(failed, counters.failed);
  add_to(early_data, counters.early_data);
  add_to(floods, counters.floods);
  add_to(kernel_sends, counters.kernel_sends);
  add_to(kernel_receives, counters.kernel_receives);
  for (std::size_t reason = 0; reason < tls::user_space_reasons; ++reason)
    add_to(user_space[reason], counters.user_space[reason]);
}

void TlsCounts::add(const tls::Counters& counters) {
  clients.add(counters.clients);
  servers.add(counters.servers);
}

std::string to_string(const TlsCounts& counts) {
  if (counts.clients.none() && counts.servers.none()) return "none";
  std::string out;
  if (!counts.clients.none()) out = line_of("clients", counts.clients);
  if (counts.servers.none()) return out;
  return out + (out.empty() ? "" : "; ") + line_of("servers", counts.servers);
}

}  // namespace ringside::app
