// The parity script's real kernel: loopback TCP and unix sockets in a folder of its own.
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "parity.h"

namespace ringside::parity {

namespace {

class RealEnvironment final : public Environment {
 public:
  RealEnvironment() {
    std::string name = (std::filesystem::temp_directory_path() / "ringside-parity-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) folder_ = name;
    EXPECT_FALSE(folder_.empty());
  }
  ~RealEnvironment() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  ring::KernelPort& kernel() override { return ring::real_kernel(); }
  net::SysPort& sys() override { return net::real_sys(); }
  net::Address unix_address(unsigned number) override {
    auto address = net::Address::from_unix((folder_ / std::to_string(number)).string());
    EXPECT_TRUE(address.has_value());
    return address.value_or(net::Address());
  }

 private:
  std::filesystem::path folder_;
};

std::unique_ptr<Environment> make_real() {
  return std::make_unique<RealEnvironment>();
}

constexpr Column real_inet{.name = "inet", .make = make_real, .family = Family::inet};
constexpr Column real_unix{.name = "unix", .make = make_real, .family = Family::unix_stream};

}  // namespace

INSTANTIATE_TEST_SUITE_P(Real, Parity, testing::Values(real_inet, real_unix), column_name);
INSTANTIATE_TEST_SUITE_P(Real, ParityInet, testing::Values(real_inet), column_name);

}  // namespace ringside::parity
