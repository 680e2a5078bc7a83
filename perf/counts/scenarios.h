// The fixed traffic that is counted.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "ringside/config/snapshot.h"

namespace ringside::budget {

struct Scenario {
  std::string_view name;
  unsigned clients = 8;    // at work at the same time
  unsigned depth = 1;      // requests that each sends at a time
  bool reconnect = false;  // a connection for each round
  bool http2 = false;
  std::string request;     // what a client sends
  std::string path = "/";  // the same in HTTP/2
  std::size_t upload_bytes = 0;
  std::string response;        // what the upstream answers
  std::size_t body_bytes = 0;  // of the response
  config::BodyMover body_mover = config::BodyMover::automatic;
  unsigned warm_rounds = 20;  // before those that are measured
  unsigned rounds = 50;       // that are measured
};

// Null when there is none of that name.
const Scenario* scenario_named(std::string_view name);
std::span<const Scenario> scenarios();

// What all of them are configured with: "/local/*" is answered by the proxy itself.
config::SnapshotRef make_snapshot(const Scenario& scenario);

}  // namespace ringside::budget
