#include <cstdio>

#include "ringside/net/sys_port.h"
#include "ringside/proxy/worker.h"

#include "commands.h"
#include "configuration.h"
#include "cpu_count.h"
#include "resources.h"
#include "sizing_sheet.h"
#include "tls_files.h"

namespace ringside::app {

namespace {

bool tls_is_good(const config::Snapshot& snapshot) {
  if (snapshot.tls.empty() && !proxy::speaks_tls(snapshot)) return true;
  return load_tls_or_complain(snapshot, tls::probe_kernel_tls(net::real_sys())) != nullptr;
}

}  // namespace

int check_command(const Arguments& arguments) {
  const config::SnapshotRef snapshot = load_or_complain(arguments.config);
  if (snapshot == nullptr || !tls_is_good(*snapshot)) return exit_config;

  // `run` raises the limit, so that is what counts.
  raise_descriptor_limit();
  const Limits limits = current_limits();
  const unsigned rings = snapshot->server.rings != 0 ? snapshot->server.rings : auto_rings();
  const Plan plan = make_plan(*snapshot, limits, rings);
  const auto terms = proxy::sizing(*snapshot, plan.connections_max);
  std::printf("%s: configuration OK\n\n%s", arguments.config.c_str(),
              sizing_sheet(terms, plan, limits).c_str());
  return exit_ok;
}

}  // namespace ringside::app
