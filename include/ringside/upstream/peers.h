// How the pools of several rings find each other.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "ringside/ring/mailbox.h"
#include "ringside/upstream/directory.h"

namespace ringside::upstream {

// Shared by all workers of a process; created before and destroyed after them. A slot is set by its
// ring before traffic starts
// (`join`), cleared by it at the end (`leave`), and read by all.
class Peers {
 public:
  explicit Peers(unsigned rings) : mailboxes_(rings) {}
  void join(unsigned ring, ring::Mailbox& mailbox);
  // Nobody posts to that ring any more once this returns.
  void leave(unsigned ring);
  // False when the ring is not there or its mailbox is full.
  bool post(ring::Ring* from, unsigned ring, const ring::Message& message);
  unsigned rings() const { return static_cast<unsigned>(mailboxes_.size()); }

  // Messages name servers by pointer, so a server that was ever in use stays until the process
  // ends: some hundred bytes for each that a reload removes.
  void keep(std::shared_ptr<SharedServer> server);

 private:
  struct Slot {
    std::mutex mutex;  // uncontended but for a post at the very moment of leave()
    ring::Mailbox* mailbox = nullptr;
  };
  std::vector<Slot> mailboxes_;
  std::mutex kept_mutex_;
  std::vector<std::shared_ptr<SharedServer>> kept_;
};

}  // namespace ringside::upstream
