// What scripted clients of all protocols have in common: a connection that is made, and exchanges
// that it may never begin.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "peer_connection.h"
#include "referee.h"

namespace ringside::sim {

class DiallingPeer : public PeerConnection {
 public:
  // `over` is called once, from an event, with the exchanges that this connection never began.
  using Over = std::function<void(std::vector<std::uint32_t> rest)>;
  void start();

 protected:
  DiallingPeer(Core& core, Referee& referee, const net::Address& to, Over over, bool secure)
      : PeerConnection(core), referee_(referee), secure_(secure), to_(to), over_(std::move(over)) {}

  // The connection is made: to be attached, and used.
  virtual void connected(std::shared_ptr<Stream> stream) = 0;
  // Those of its exchanges that it has not begun.
  virtual std::vector<std::uint32_t> rest() const = 0;
  // When an upstream last moved a byte of what was asked for here.
  virtual std::uint64_t upstream_active_ns() = 0;
  // One whose answer is not whole; null: there is none.
  virtual const Course* waits_for() = 0;
  // Goes away, whatever is going on.
  virtual void give_up() = 0;

  void active();
  // Tells `over`, once. Exchanges that are queued, but of which no byte has left, may be taken by
  // another connection.
  void report();
  bool reported() const { return reported_; }

  Referee& referee_;
  bool secure_;
  bool must_close_ = false;  // the proxy must
  std::uint64_t harm_before_ = 0;
  std::uint64_t dialled_ns_ = 0;

 private:
  bool prepare() final;
  void check_impatience();

  net::Address to_;
  Over over_;
  std::shared_ptr<Dial> dial_;
  std::uint64_t active_ns_ = 0;
  bool reported_ = false;
};

}  // namespace ringside::sim
