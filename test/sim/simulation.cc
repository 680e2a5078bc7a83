#include "simulation.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "ringside/upstream/peers.h"

#include "h2_script.h"

namespace ringside::sim {

namespace {

// Without a byte moved and without an exchange begun or ended.
constexpr std::uint64_t idle_turns_max = 50'000;
constexpr unsigned connection_tries_max = 12;

void no_sleep(unsigned) {}

}  // namespace

void Simulation::Log::log(base::LogLevel, std::string_view event, std::string_view text) {
  if (!verbose_) return;
  std::printf("              [%.*s] %.*s\n", static_cast<int>(event.size()), event.data(),
              static_cast<int>(text.size()), text.data());
}

Simulation::Simulation(const SimulationOptions& options)
    : options_(options),
      random_(options.seed),
      early_random_(options.seed ^ 0x6561'726c'7932),
      settings_(draw_settings(random_)),
      world_(random_.next(), settings_.abilities),
      referee_(world_.core(), options.verbose),
      log_(options.verbose),
      saboteur_(options.sabotage, world_, referee_) {}

Simulation::~Simulation() {
  // Events refer to peers and workers.
  world_.clock().clear();
}

SimulationResult Simulation::run() {
  Faults& faults = world_.faults();
  set_body_rate(settings_, options_.seed);
  if (!options_.clear) set_tls(settings_, options_.seed);
  if (!options_.http1) set_http2(settings_, options_.seed);
  if (!options_.http1 && !options_.h2_clients) set_h2_servers(settings_, options_.seed);
  if (!options_.confirmed) set_early_data(settings_, options_.seed);
  if (saboteur_.needs_early_data()) settings_.tls = settings_.early_data = true;
  if (settings_.tls) {
    tls_ = std::make_unique<ScriptedTls>(world_.core());
    tls_->kernel = settings_.kernel_tls;
    tls_->early_data = settings_.early_data;
    for (unsigned i = 0; i < server_count; ++i) {
      if ((settings_.h2_servers >> i & 1) != 0) tls_->h2_servers.push_back(server_endpoint(i).text);
    }
  }
  // A broken invariant must not hide behind a fault that would excuse it.
  if (options_.sabotage == Sabotage::none)
    faults.draw(settings_.tls, settings_.early_data, settings_.h2_servers != 0);
  // The kernel does not go on under new keys.
  const bool kernel = settings_.kernel_tls != config::KernelTls::off;
  faults.set(kernel ? Fault::tls_key_update : Fault::tls_kernel_key_update, 0);
  for (Fault fault : options_.without)
    faults.set(fault, 0);
  // What ends an operation waits in the queue until the kernel takes it, as far as there is room.
  if (faults.enabled(Fault::persistent_refusal)) {
    settings_.ring_entries = std::max(settings_.ring_entries, 256U);
  }
  if (faults.hit(Fault::pool_exhaustion)) {
    referee_.relax_all();
    make_scarce(settings_, random_);
  }
  start_servers();
  if (!open()) return result();
  write_scripts();
  plan_chaos();
  if (settings_.end_early) plan_early_end();
  saboteur_.begin(workers_, tls_.get());
  run_until_clients_are_done();
  end_workers();
  if (!referee_.failed()) check_holdings();
  if (!referee_.failed()) check_rest();
  if (!referee_.failed()) referee_.judge_all();
  return result();
}

proxy::RuntimeRef Simulation::make_runtime(unsigned variant) {
  std::shared_ptr<const tls::Material> material;
  if (tls_ != nullptr) material = std::make_shared<ScriptedMaterial>(*tls_);
  return std::make_shared<const proxy::Runtime>(make_snapshot(settings_, variant), settings_.rings,
                                                runtime_.get(), std::move(material));
}

bool Simulation::open() {
  runtime_ = make_runtime(0);
  net::ListenerSet set(world_.sys());
  // Start-up has tests of its own; here it succeeds sooner or later.
  for (int tries = 0; tries < 200 && set.listeners().empty(); ++tries)
    set.open(*runtime_->snapshot, settings_.rings, no_sleep);
  listeners_ = set.release();
  if (listeners_.empty()) {
    referee_.fail("the listeners cannot be opened");
    return false;
  }
  return open_workers();
}

bool Simulation::open_workers() {
  peers_ = std::make_unique<proxy::Peers>(settings_.rings);
  for (unsigned index = 0; index < settings_.rings; ++index) {
    auto worker = proxy::Worker::create({.kernel = world_.kernel(),
                                         .sys = world_.sys(),
                                         .logger = log_,
                                         .access = &referee_,
                                         .peers = peers_.get(),
                                         .index = index,
                                         .rings = settings_.rings,
                                         .connections_max = settings_.connections_max,
                                         .accept_fast = settings_.accept_fast},
                                        runtime_, listeners_);
    if (!worker) {
      referee_.fail("a worker cannot be created");
      return false;
    }
    world_.sim_kernel().attend((*worker)->ring().descriptor(), true);
    workers_.push_back(std::move(*worker));
  }
  return true;
}

void Simulation::start_servers() {
  for (unsigned i = 0; i < server_count; ++i) {
    const bool secure = (settings_.secure_servers >> i & 1) != 0;
    const bool h2 = ((settings_.h2_servers & ~settings_.h2_declined) >> i & 1) != 0;
    servers_.push_back(
        std::make_unique<UpstreamServer>(world_.core(), referee_, server_address(i), secure, h2));
  }
}

void Simulation::write_scripts() {
  std::vector<std::uint32_t> ids;
  std::uint64_t start_ns = 0;
  Random h2_random(options_.seed ^ 0x6832'6832);  // so that without HTTP/2 all stays as it was
  bool h2 = settings_.http2 && h2_random.coin();
  for (std::uint32_t id = 0; id < options_.exchanges; ++id) {
    Script script = draw_script(random_, id);
    if (h2) make_h2(script);
    if (settings_.body_rate_min != 0) may_stall(script);
    if (settings_.early_data) may_claim_early(script, world_.faults());
    referee_.add(script);
    ids.push_back(id);
    const bool last = id + 1 == options_.exchanges;
    if (!last && !(h2 ? h2_random.one_in(8) : random_.one_in(3))) continue;
    start_ns += random_.between(0, 20 * millisecond_ns);
    start_client(std::exchange(ids, {}), start_ns, 0);
    h2 = settings_.http2 && h2_random.coin();
  }
}

template <class Peer>
void Simulation::start(Peer& peer, std::uint64_t delay_ns) {
  world_.clock().after(delay_ns, [&peer] { peer.start(); });
}

void Simulation::start_client(std::vector<std::uint32_t> ids, std::uint64_t delay_ns,
                              unsigned tries) {
  ++clients_begun_;
  const std::uint64_t choice = random_.next();
  const bool secure = settings_.tls && (choice >> 32) % 3 != 0;
  // The kernel has no TLS for unix sockets.
  const bool require = secure && settings_.kernel_tls == config::KernelTls::require;
  const net::Address to = client_target(require ? choice | 2 : choice, secure);
  const std::uint32_t first = ids.front();
  const auto over = [this, first, tries](std::vector<std::uint32_t> rest) {
    client_over(std::move(rest), first, tries);
  };
  if (referee_.find(first)->script.h2) {
    auto peer =
        std::make_unique<H2ClientPeer>(world_.core(), referee_, to, std::move(ids), over, secure);
    start(*peer, delay_ns);
    clients_.push_back(std::move(peer));
  } else {
    auto peer =
        std::make_unique<ClientPeer>(world_.core(), referee_, to, std::move(ids), over, secure);
    if (secure && settings_.early_data && !early_random_.one_in(3))
      peer->offer_early(early_random_.fork());
    start(*peer, delay_ns);
    clients_.push_back(std::move(peer));
  }
}

void Simulation::client_over(std::vector<std::uint32_t> rest, std::uint32_t first, unsigned tries) {
  ++clients_over_;
  if (clients_done() && rest.empty()) world_.sim_kernel().interrupt();
  if (rest.empty()) return;
  const unsigned next = rest.front() == first ? tries + 1 : 0;
  if (next > connection_tries_max || ending_) return give_up(rest);
  start_client(std::move(rest), random_.between(1, 50) * millisecond_ns, next);
}

// Nobody listens any more, or everything is refused.
void Simulation::give_up(const std::vector<std::uint32_t>& ids) {
  for (std::uint32_t id : ids)
    referee_.ended(*referee_.find(id));
  world_.sim_kernel().interrupt();
}

void Simulation::plan_chaos() {
  world_.clock().after(random_.between(1, 1500) * millisecond_ns, [this] { chaos(); });
}

void Simulation::chaos() {
  if (ending_ || clients_done()) return;
  Faults& faults = world_.faults();
  if (faults.hit(Fault::clock_leap)) {
    world_.clock().leap(random_.between(1, 300) * second_ns);
  }
  if (faults.hit(Fault::realtime_jump)) {
    const auto jump = static_cast<std::int64_t>(random_.between(1, 7200) * second_ns);
    world_.clock().move_realtime(random_.coin() ? jump : -jump);
  }
  if (faults.hit(Fault::reload)) {
    reload_wanted_ = true;
    world_.sim_kernel().interrupt();
  }
  plan_chaos();
}

void Simulation::reload() {
  reload_wanted_ = false;
  runtime_ = make_runtime(++reloads_);
  for (auto& worker : workers_)
    worker->request_swap(runtime_);
}

void Simulation::plan_early_end() {
  world_.clock().after(random_.between(0, 400) * millisecond_ns, [this] {
    end_wanted_ = true;
    world_.sim_kernel().interrupt();
  });
}

void Simulation::turn() {
  if (reload_wanted_ && !ending_) reload();
  // Which ring runs next is chance, as on a machine with fewer cores than rings.
  const std::size_t at = random_.below(workers_.size());
  proxy::Worker& worker = *workers_[at];
  if (!worker.finished()) worker.run_once();
  world_.sim_kernel().attend(worker.ring().descriptor(), !worker.finished());
  ++turns_;
  const std::uint64_t progress = referee_.progress_made();
  idle_turns_ = progress == last_progress_ ? idle_turns_ + 1 : 0;
  last_progress_ = progress;
  if (idle_turns_ > idle_turns_max) {
    referee_.fail("no progress for " + std::to_string(idle_turns_max) + " turns: " + state());
  }
  if (world_.sim_kernel().stuck() && !clients_done()) {
    referee_.fail("nothing can happen any more, and clients wait: " + state());
  }
}

std::string Simulation::state() const {
  std::string out = ending_ ? "ending" : "running";
  out += ", " + std::to_string(clients_begun_ - clients_over_) + " clients";
  for (const auto& worker : workers_) {
    const proxy::Worker::Holdings held = worker->holdings();
    out += worker->finished() ? "; finished:" : "; worker:";
    out += " " + std::to_string(held.client_connections) + " client connections, " +
           std::to_string(held.exchanges) + " exchanges, " +
           std::to_string(held.upstream_connections) + " server connections, " +
           std::to_string(held.leases) + " leases, " + std::to_string(held.owners) + " owners";
  }
  return out + "; " + std::to_string(world_.clock().now_ns() / second_ns) + " s";
}

void Simulation::run_until_clients_are_done() {
  while (!referee_.failed() && !clients_done() && !end_wanted_)
    turn();
}

void Simulation::end_workers() {
  if (referee_.failed()) return;
  ending_ = true;
  referee_.drain_began();
  if (settings_.end_by_stop) referee_.stop_began();
  for (auto& worker : workers_) {
    if (settings_.end_by_stop) {
      worker->request_stop();
    } else {
      worker->request_drain();
    }
  }
  const auto finished = [](const auto& worker) { return worker->finished(); };
  while (!referee_.failed() && !std::all_of(workers_.begin(), workers_.end(), finished))
    turn();
  hear_the_rest();
  if (!clients_done()) referee_.fail("clients are left when ringside is gone");
}

// What ringside has sent arrives a little later.
void Simulation::hear_the_rest() {
  const auto quiet = [this] {
    return clients_done() && std::all_of(servers_.begin(), servers_.end(), [](const auto& server) {
             return server->open_connections() == 0;
           });
  };
  for (int i = 0; i < 200'000 && !referee_.failed() && !quiet(); ++i) {
    const std::uint64_t next = world_.clock().next_event_ns();
    if (next == never_ns) break;
    world_.clock().advance_to(next);
  }
}

void Simulation::check_holdings() {
  for (auto& worker : workers_) {
    const proxy::Worker::Holdings held = saboteur_.holdings(*worker);
    const std::pair<const char*, std::uint32_t> all[] = {
        {"client connections", held.client_connections},
        {"exchanges", held.exchanges},
        {"server connections", held.upstream_connections},
        {"leases", held.leases},
        {"arena chunks", held.arena_chunks},
        {"slices", held.slices},
        {"pipes in use", held.pipes},
        {"operations that owe a completion", held.operations},
        // The mailbox stays attached to its ring until both go.
        {"owners of operations", held.owners - std::min(held.owners, 1U)}};
    for (const auto& [what, count] : all) {
      if (count != 0) referee_.fail(std::to_string(count) + " " + what + " left at the end");
    }
  }
  const std::size_t operations = world_.sim_kernel().operations_in_flight();
  if (operations != 0) referee_.fail(std::to_string(operations) + " operations left in flight");
}

void Simulation::check_rest() {
  std::uint64_t exchanges = 0;
  for (auto& worker : workers_)
    exchanges += worker->counters().exchanges.load();
  if (exchanges != referee_.records()) {
    referee_.fail(std::to_string(referee_.records()) + " log records of " +
                  std::to_string(exchanges) + " exchanges");
  }
  for (std::uint32_t u = 0; u < runtime_->directory->size(); ++u) {
    for (std::uint32_t s = 0; s < runtime_->directory->servers(u); ++s) {
      if (runtime_->directory->server(u, s).open() != 0) {
        referee_.fail("a server's place was not given back");
      }
    }
  }
  workers_.clear();
  peers_.reset();
  if (tls_ != nullptr && tls_->layers != 0) {
    referee_.fail(std::to_string(tls_->layers) + " record layers left at the end");
  }
  if (world_.sim_kernel().rings() != 0) referee_.fail("a ring was not torn down");
  const std::vector<int> open = world_.files().in_use();
  if (!open.empty()) {
    referee_.fail(std::to_string(open.size()) + " descriptors left open, the first is " +
                  std::to_string(open.front()) + ", " +
                  world_.files().get(open.front())->describe());
  }
}

SimulationResult Simulation::result() {
  SimulationResult out;
  if (options_.verbose) {
    std::printf("%s\n%s\n", to_string(settings_).c_str(), state().c_str());
    for (std::size_t i = 0; i < world_.sim_kernel().rings(); ++i)
      std::printf("ring %zu: %s\n", i, world_.sim_kernel().ring(i).describe_operations().c_str());
  }
  out.violation = referee_.violation();
  out.faults = world_.faults().counts();
  out.turns = turns_;
  out.events = world_.clock().events_run();
  std::uint64_t digest = world_.clock().now_ns();
  const auto mix = [&digest](std::uint64_t value) {
    digest = (digest ^ value) * 0x100000001b3ULL;
    digest ^= digest >> 29;
  };
  mix(out.turns);
  mix(out.events);
  for (const Course& course : referee_.courses()) {
    if (course.complete) ++out.exchanges_complete;
    if (!course.complete && course.begun) ++out.exchanges_failed;
    mix(static_cast<std::uint64_t>(course.status));
    mix(course.body_bytes);
    mix(course.ended_ns);
  }
  out.digest = digest;
  return out;
}

}  // namespace ringside::sim
