// The table that `ringside check` prints.
#pragma once

#include <string>
#include <vector>

#include "ringside/proxy/worker.h"

#include "resources.h"

namespace ringside::app {

// "1.5 MiB": three digits that count, exact for whole numbers.
std::string readable_bytes(std::uint64_t bytes);

// Terms of one ring, their sum, the sum of all rings, then limits and advice.
std::string sizing_sheet(const std::vector<proxy::SizingTerm>& terms, const Plan& plan,
                         const Limits& limits);

}  // namespace ringside::app
