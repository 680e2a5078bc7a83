// The ring threads: start together, end together.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ringside/net/listener_set.h"
#include "ringside/proxy/access_record.h"
#include "ringside/proxy/worker.h"

#include "moved_bodies.h"
#include "tls_counts.h"

namespace ringside::app {

struct RingThreadsOptions {
  unsigned rings = 1;
  std::uint32_t connections_max = 1;  // of one ring
  base::Logger& logger;
  proxy::RuntimeRef runtime;
  std::vector<net::BoundListener> listeners;
  std::vector<proxy::AccessSink*> access;  // one a ring; null: none
};

// Each thread makes its Worker; when all have succeeded they run, and when all have finished they
// are destroyed, since until then any of them may still be spoken to by another.
//
// Owner: the control thread, which calls all members. The threads inherit its signal mask, so it
// should have blocked what it wants to receive itself.
class RingThreads {
 public:
  explicit RingThreads(RingThreadsOptions options);
  ~RingThreads();  // after finished(), or a failed start
  RingThreads(const RingThreads&) = delete;
  RingThreads& operator=(const RingThreads&) = delete;

  // Waits until all are up. Otherwise ends them all and returns what the first one complained
  // about. On success `features` describes the rings.
  struct Started {
    std::string failure;
    std::string features;
  };
  Started start();

  void request_drain();
  void request_stop();
  // Exchanges that begin from now on use `runtime`.
  void request_swap(const proxy::RuntimeRef& runtime);
  // Every ring logs what it holds.
  void request_report();
  bool finished() const;
  // Of the rings that have finished.
  MovedBodies moved() const;
  // Of all rings, until now.
  TlsCounts tls_counts() const;
  // Readable when finished() may have become true.
  int done_descriptor() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace ringside::app
