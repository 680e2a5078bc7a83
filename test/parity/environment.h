// A kernel that the parity script can run on: the real one, or the simulated one.
#pragma once

#include <memory>
#include <string>

#include "ringside/net/address.h"
#include "ringside/net/sys_port.h"
#include "ringside/ring/kernel_port.h"

namespace ringside::parity {

// Made afresh for every test; lives as long as it.
class Environment {
 public:
  virtual ~Environment() = default;
  virtual ring::KernelPort& kernel() = 0;
  virtual net::SysPort& sys() = 0;
  // Where a unix socket may be bound; a different one for every `number`.
  virtual net::Address unix_address(unsigned number) = 0;
};

using EnvironmentFactory = std::unique_ptr<Environment> (*)();

enum class Family { inet, unix_stream };

// One column of the parity table. `name` appears in the test's name.
struct Column {
  const char* name;
  EnvironmentFactory make;
  Family family;
};

}  // namespace ringside::parity
