// What a client knows of the early data (RFC 8446 §2.3) of one of its connections.
#pragma once

#include <cstddef>

namespace ringside::sim {

// Shared by the connection and the exchanges that began on it.
struct EarlyData {
  std::size_t bytes = 0;  // of what it has sent, from the first one on
  bool refused = false;   // none was taken: all of it is sent again
  bool confirmed =
      false;  // the client has ended its handshake: what it sends from here on is its own
};

}  // namespace ringside::sim
