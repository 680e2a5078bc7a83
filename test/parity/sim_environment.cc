// The parity script's simulated kernel: without faults, and with the same addresses as the real
// one.
#include "../sim/sim_world.h"
#include "parity.h"

namespace ringside::parity {

namespace {

class SimEnvironment final : public Environment {
 public:
  ring::KernelPort& kernel() override { return world_.kernel(); }
  net::SysPort& sys() override { return world_.sys(); }
  net::Address unix_address(unsigned number) override {
    return sim::make_unix("/run/parity-" + std::to_string(number));
  }

 private:
  sim::SimWorld world_{1};
};

std::unique_ptr<Environment> make_sim() {
  return std::make_unique<SimEnvironment>();
}

constexpr Column sim_inet{.name = "inet", .make = make_sim, .family = Family::inet};
constexpr Column sim_unix{.name = "unix", .make = make_sim, .family = Family::unix_stream};

}  // namespace

INSTANTIATE_TEST_SUITE_P(Sim, Parity, testing::Values(sim_inet, sim_unix), column_name);
INSTANTIATE_TEST_SUITE_P(Sim, ParityInet, testing::Values(sim_inet), column_name);

}  // namespace ringside::parity
