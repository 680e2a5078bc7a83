// One run: ringside's workers on the simulated kernel, scripted peers around them, and the checks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ringside/base/logger.h"
#include "ringside/config/snapshot.h"
#include "ringside/net/listener_set.h"
#include "ringside/proxy/worker.h"

#include "client_peer.h"
#include "h2_client_peer.h"
#include "referee.h"
#include "sabotage.h"
#include "scripted_tls.h"
#include "settings.h"
#include "sim_world.h"
#include "upstream_peer.h"

namespace ringside::sim {

struct SimulationOptions {
  std::uint64_t seed = 1;
  std::uint32_t exchanges = 40;
  bool verbose = false;
  Sabotage sabotage = Sabotage::none;
  std::vector<Fault> without;  // faults that stay off, to find out which one matters
  bool clear = false;          // nobody speaks TLS
  bool http1 = false;          // nobody speaks HTTP/2
  bool confirmed = false;      // nobody sends early data
  bool h2_clients = false;     // or nobody but clients
};

struct SimulationResult {
  std::string violation;  // empty: all is well
  FaultCounts faults{};
  std::uint64_t exchanges_complete = 0;
  std::uint64_t exchanges_failed = 0;  // visibly, and with a cause
  std::uint64_t turns = 0;
  std::uint64_t events = 0;
  std::uint64_t digest = 0;  // of everything that happened: equal for equal seeds
};

class Simulation {
 public:
  explicit Simulation(const SimulationOptions& options);
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  SimulationResult run();

 private:
  class Log final : public base::Logger {
   public:
    explicit Log(bool verbose) : verbose_(verbose) { level_ = base::LogLevel::debug; }
    void log(base::LogLevel level, std::string_view event, std::string_view text) override;

   private:
    bool verbose_;
  };

  bool open();
  bool open_workers();
  void start_servers();
  void write_scripts();
  void start_client(std::vector<std::uint32_t> ids, std::uint64_t delay_ns, unsigned tries);
  template <class Peer>
  void start(Peer& peer, std::uint64_t delay_ns);
  void client_over(std::vector<std::uint32_t> rest, std::uint32_t first, unsigned tries);
  void give_up(const std::vector<std::uint32_t>& ids);
  void plan_chaos();
  void chaos();
  void reload();
  proxy::RuntimeRef make_runtime(unsigned variant);
  void plan_early_end();
  void turn();
  std::string state() const;
  bool clients_done() const { return clients_over_ == clients_begun_; }
  void run_until_clients_are_done();
  void end_workers();
  void hear_the_rest();
  void check_holdings();
  void check_rest();
  SimulationResult result();

  SimulationOptions options_;
  Random random_;
  Random early_random_;
  Settings settings_;
  SimWorld world_;
  Referee referee_;
  Log log_;
  Saboteur saboteur_;
  std::unique_ptr<ScriptedTls> tls_;  // null: nobody speaks it
  std::vector<std::unique_ptr<UpstreamServer>> servers_;
  std::vector<std::unique_ptr<PeerConnection>> clients_;
  std::size_t clients_begun_ = 0;
  std::size_t clients_over_ = 0;
  std::vector<net::BoundListener> listeners_;
  proxy::RuntimeRef runtime_;
  std::unique_ptr<proxy::Peers> peers_;
  std::vector<std::unique_ptr<proxy::Worker>> workers_;
  bool reload_wanted_ = false;
  bool end_wanted_ = false;
  bool ending_ = false;
  unsigned reloads_ = 0;
  std::uint64_t turns_ = 0;
  std::uint64_t last_progress_ = 0;
  std::uint64_t idle_turns_ = 0;
};

}  // namespace ringside::sim
