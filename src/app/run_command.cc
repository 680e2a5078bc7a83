#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ringside/control/log_writer.h"
#include "ringside/net/listener_set.h"
#include "ringside/net/sys_port.h"
#include "ringside/proxy/worker.h"

#include "commands.h"
#include "configuration.h"
#include "control_loop.h"
#include "cpu_count.h"
#include "name_resolver.h"
#include "ocsp_refresher.h"
#include "resources.h"
#include "ring_threads.h"
#include "tls_files.h"

namespace ringside::app {
namespace {

using base::LogLevel;

// Names that cannot be looked up must not keep the service from starting.
constexpr std::uint64_t first_resolve_ms = 5'000;
constexpr unsigned final_flush_ms = 2'000;

void complain(const std::string& text) {
  std::fprintf(stderr, "ringside: %s\n", text.c_str());
}

// Errors of the start go to the error log and, when that is a file, to whoever looks on as well.
class StartFailure {
 public:
  StartFailure(const config::Snapshot& snapshot, control::LogWriter& log)
      : to_file_(!snapshot.log.file.empty()), log_(log) {}
  void say(std::string_view event, const std::string& text) const {
    log_.log(LogLevel::error, event, text);
    if (to_file_) complain(text);
  }

 private:
  bool to_file_;
  control::LogWriter& log_;
};

std::vector<net::BoundListener> bind(const config::Snapshot& snapshot, unsigned rings,
                                     const StartFailure& failure) {
  net::ListenerSet set(net::real_sys());
  const auto failures =
      set.open(snapshot, rings, [](unsigned milliseconds) { ::usleep(milliseconds * 1000); });
  for (const net::BindFailure& problem : failures)
    failure.say("bind", problem.text);
  return failures.empty() ? set.release() : std::vector<net::BoundListener>{};
}

std::string ready_text(const config::Snapshot& snapshot,
                       const std::vector<net::BoundListener>& listeners) {
  std::string text;
  for (const net::BoundListener& listener : listeners) {
    text += "listen." + snapshot.listens[listener.listen].name + "=" +
            listener.address.to_string() + " ";
  }
  return text + "pid=" + std::to_string(::getpid());
}

std::vector<proxy::AccessSink*> access_sinks(control::LogWriter& log, unsigned rings) {
  std::vector<proxy::AccessSink*> sinks;
  sinks.reserve(rings);
  for (unsigned ring = 0; ring < rings; ++ring)
    sinks.push_back(log.access(ring));
  return sinks;
}

// The newest runtime, and older ones until no ring has them: what goes with them, contexts of
// OpenSSL too, takes a millisecond that a ring should not spend.
class Runtimes {
 public:
  explicit Runtimes(proxy::RuntimeRef first) : latest_(std::move(first)) {}

  const proxy::RuntimeRef& latest() const { return latest_; }
  void replace(proxy::RuntimeRef next) { old_.push_back(std::exchange(latest_, std::move(next))); }
  void sweep() {
    std::erase_if(old_, [](const proxy::RuntimeRef& each) { return each.use_count() == 1; });
  }

 private:
  proxy::RuntimeRef latest_;
  std::vector<proxy::RuntimeRef> old_;
};

std::vector<Chore> chores(const config::SnapshotRef& snapshot, const proxy::RuntimeRef& runtime,
                          RingThreads& rings, unsigned count, OcspRefresher& ocsp,
                          base::Logger& logger) {
  // An entry that nothing uses is not loaded, so there is nothing to look after.
  if (runtime->material == nullptr || snapshot->tls.empty()) return {};
  ocsp.watch(*runtime->material);
  auto runtimes = std::make_shared<Runtimes>(runtime);
  auto publish = [snapshot, &rings, count, &ocsp, &logger,
                  runtimes](std::shared_ptr<const tls::Material> material) {
    // First, so that the new contexts have the responses that are known.
    ocsp.watch(*material);
    runtimes->replace(std::make_shared<const proxy::Runtime>(
        snapshot, count, runtimes->latest().get(), std::move(material)));
    rings.request_swap(runtimes->latest());
    logger.log(LogLevel::info, "tls-counts", to_string(rings.tls_counts()));
  };
  auto files = std::make_shared<TlsFiles>(snapshot, runtime->material, logger, std::move(publish));
  return {{TlsFiles::interval_ms, [files, runtimes] {
             files->look();
             runtimes->sweep();
           }}};
}

int serve(const config::SnapshotRef& snapshot, const Plan& plan,
          std::shared_ptr<const tls::Material> material, control::LogWriter& log, int signals) {
  const StartFailure failure(*snapshot, log);
  const auto listeners = bind(*snapshot, plan.rings, failure);
  if (listeners.empty()) return exit_failure;

  const auto runtime =
      std::make_shared<const proxy::Runtime>(snapshot, plan.rings, nullptr, std::move(material));
  NameResolver resolver(resolver_targets(*snapshot, *runtime->directory), log);
  if (!resolver.wait_for_first_round(first_resolve_ms)) {
    log.log(LogLevel::warn, "resolve",
            "not every name of a server was found in time; starting without, and trying on");
  }

  RingThreads rings(
      {plan.rings, plan.connections_max, log, runtime, listeners, access_sinks(log, plan.rings)});
  const auto [problem, features] = rings.start();
  if (!problem.empty()) {
    failure.say("ring", problem);
    return exit_failure;
  }
  log.log(LogLevel::info, "start", features);
  if (runtime->material != nullptr)
    log.log(LogLevel::info, "start", describe(runtime->material->kernel));
  // Before anybody is told that it runs: files that change from then on are noticed.
  OcspRefresher ocsp(log);
  std::vector<Chore> work = chores(snapshot, runtime, rings, plan.rings, ocsp, log);
  log.log(LogLevel::info, "ready", ready_text(*snapshot, listeners));

  const bool asked = control_loop(rings, log, signals, std::move(work));
  ocsp.stop();
  resolver.stop();
  if (!asked) {
    failure.say("stop", "the rings ended without having been told to");
    return exit_failure;
  }
  if (runtime->material != nullptr)
    log.log(LogLevel::info, "tls-counts", to_string(rings.tls_counts()));
  log.log(LogLevel::info, "stopped",
          "all connections are closed; bodies moved: " + to_string(rings.moved()));
  return exit_ok;
}

}  // namespace

int run_command(const Arguments& arguments) {
  const config::SnapshotRef snapshot = load_or_complain(arguments.config);
  if (snapshot == nullptr) return exit_config;
  std::shared_ptr<const tls::Material> material;
  if (proxy::speaks_tls(*snapshot)) {
    material = load_tls_or_complain(*snapshot, tls::probe_kernel_tls(net::real_sys()));
    if (material == nullptr) return exit_config;
  }

  const int signals = block_signals();
  if (signals < 0) {
    complain(std::string("signalfd: ") + std::strerror(errno));
    return exit_failure;
  }
  raise_descriptor_limit();
  const unsigned rings = snapshot->server.rings != 0 ? snapshot->server.rings : auto_rings();
  const Plan plan = make_plan(*snapshot, current_limits(), rings);

  auto log = control::LogWriter::open({.log = snapshot->log, .rings = plan.rings});
  if (!log) {
    complain(log.error());
    return exit_failure;
  }
  for (const std::string& advice : plan.advice)
    (*log)->log(LogLevel::warn, "limits", advice);
  const int status = serve(snapshot, plan, std::move(material), **log, signals);
  (*log)->finish(final_flush_ms);
  return status;
}

}  // namespace ringside::app
