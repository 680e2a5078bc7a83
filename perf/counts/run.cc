#include "run.h"

#include <memory>
#include <vector>

#include "ringside/net/listener_set.h"
#include "ringside/proxy/worker.h"

#include "meter.h"
#include "metered_ports.h"
#include "sim_world.h"
#include "traffic.h"

namespace ringside::budget {

namespace {

constexpr std::uint64_t seed = 1;
// So short that the simulator draws no chance on top of it: all clients keep in step, and what is
// counted does not hang on the order of events.
constexpr std::uint64_t latency_ns = 3;
constexpr unsigned turns_max = 20'000;  // a round
constexpr std::uint32_t connections_max = 1000;

struct SilentLogger final : base::Logger {
  void log(base::LogLevel, std::string_view, std::string_view) override {}
};

// The proxy makes its records; what a log does with them is not counted.
struct NoRecords final : proxy::AccessSink {
  void record(const proxy::AccessRecord&) override {}
};

void no_sleep(unsigned) {}

class Run {
 public:
  explicit Run(const Scenario& scenario);
  ~Run() { world_.clock().clear(); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  Counts measure(unsigned warm_rounds, unsigned rounds);

 private:
  Counts count(unsigned warm_rounds, unsigned rounds);
  bool open();
  bool rounds(unsigned count);
  bool round();
  bool end();

  const Scenario& scenario_;
  sim::SimWorld world_{seed};
  Meter meter_;
  MeteredKernel kernel_{world_.kernel(), meter_};
  MeteredSys sys_{world_.sys(), meter_};
  SilentLogger logger_;
  NoRecords records_;
  Tally tally_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::unique_ptr<Origin> origin_;
  proxy::RuntimeRef runtime_;
  std::unique_ptr<proxy::Worker> worker_;
};

Run::Run(const Scenario& scenario) : scenario_(scenario) {
  sim::Medium& medium = world_.network().medium();
  medium.latency_min_ns = latency_ns;
  medium.latency_max_ns = latency_ns;
  origin_ = std::make_unique<Origin>(world_.core(), scenario_, tally_);
}

bool Run::open() {
  runtime_ = std::make_shared<const proxy::Runtime>(make_snapshot(scenario_), 1);
  net::ListenerSet set(world_.sys());
  if (!set.open(*runtime_->snapshot, 1, no_sleep).empty()) return false;
  auto worker = proxy::Worker::create({.kernel = kernel_,
                                       .sys = sys_,
                                       .logger = logger_,
                                       .access = &records_,
                                       .connections_max = connections_max},
                                      runtime_, set.release());
  if (!worker) return false;
  worker_ = std::move(*worker);
  world_.sim_kernel().attend(worker_->ring().descriptor(), true);
  return true;
}

bool Run::round() {
  if (clients_.empty() || scenario_.reconnect) {
    for (unsigned i = 0; i < scenario_.clients; ++i)
      clients_.push_back(make_client(world_.core(), scenario_, tally_));
  }
  for (std::size_t i = clients_.size() - scenario_.clients; i < clients_.size(); ++i)
    clients_[i]->ask();
  const std::uint64_t wanted = tally_.answers + std::uint64_t{scenario_.clients} * scenario_.depth;
  for (unsigned turn = 0; tally_.answers < wanted; ++turn) {
    if (tally_.wrong || turn == turns_max) return false;
    meter_.inside([this] { worker_->run_once(); });
  }
  return !tally_.wrong;
}

bool Run::rounds(unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    if (!round()) return false;
  }
  return true;
}

bool Run::end() {
  worker_->request_stop();
  for (unsigned turn = 0; !worker_->finished(); ++turn) {
    if (turn == turns_max) return false;
    worker_->run_once();
  }
  return true;
}

// However it went, the worker has to end before it can be taken down.
Counts Run::measure(unsigned warm_rounds, unsigned rounds_measured) {
  if (!open()) return {.error = "the proxy does not start"};
  Counts out = count(warm_rounds, rounds_measured);
  if (end()) return out;
  static_cast<void>(worker_.release());
  if (out.error.empty()) out.error = "the proxy does not end";
  return out;
}

Counts Run::count(unsigned warm_rounds, unsigned rounds_measured) {
  Counts out;
  if (!rounds(warm_rounds)) return {.error = "a wrong answer, or none, while warming up"};
  const std::uint64_t answers = tally_.answers;
  const ring::RingCounters before = worker_->ring().counters();
  meter_.start();
  const bool good = rounds(rounds_measured);
  meter_.stop();
  if (!good) return {.error = "a wrong answer, or none"};
  const ring::RingCounters& after = worker_->ring().counters();
  out.requests = tally_.answers - answers;
  out.allocations = meter_.allocations();
  out.enters = after.enters - before.enters;
  out.submissions = after.submissions - before.submissions;
  out.completions = after.completions - before.completions;
  return out;
}

}  // namespace

Counts run(const Scenario& scenario, unsigned rounds) {
  return Run(scenario).measure(scenario.warm_rounds, rounds);
}

}  // namespace ringside::budget
