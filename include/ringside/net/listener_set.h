// Binding: done once, by one thread, for all rings together, so that all addresses are bound or
// none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ringside/base/error.h"
#include "ringside/config/snapshot.h"
#include "ringside/net/address.h"
#include "ringside/net/sys_port.h"

namespace ringside::net {

struct BoundListener {
  std::uint32_t listen = 0;  // index into Snapshot::listens
  Address address;           // really bound: a port 0 is replaced
  // One a ring: sockets of their own (SO_REUSEPORT), or for a unix path duplicates of one.
  std::vector<int> descriptors;
};

// What went wrong and where: "listen.web: 0.0.0.0:80: permission denied".
struct BindFailure {
  base::Error error;
  std::string text;
};

// Owns its descriptors until `release`d to the rings.
class ListenerSet {
 public:
  explicit ListenerSet(SysPort& sys) : sys_(sys) {}
  ~ListenerSet() { close_all(); }
  ListenerSet(const ListenerSet&) = delete;
  ListenerSet& operator=(const ListenerSet&) = delete;

  // Binds and listens. A busy address is tried again for a second (a process that died a moment ago
  // may still hold it); pass a function that sleeps. All failures are returned; nothing stays bound
  // then.
  std::vector<BindFailure> open(const config::Snapshot& snapshot, unsigned rings,
                                void (*sleep_ms)(unsigned));
  const std::vector<BoundListener>& listeners() const { return listeners_; }
  void close_all();
  // The rings own the descriptors from here on.
  std::vector<BoundListener> release();

 private:
  SysPort& sys_;
  std::vector<BoundListener> listeners_;
};

}  // namespace ringside::net
