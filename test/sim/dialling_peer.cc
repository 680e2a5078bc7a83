#include "dialling_peer.h"

#include <algorithm>
#include <utility>

namespace ringside::sim {

namespace {
// Longer than any time-out of ringside.
constexpr std::uint64_t patience_ns = 20 * 60 * second_ns;
}  // namespace

void DiallingPeer::start() {
  dial_ = core_.network.dial(core_.network.ephemeral(to_.family()), to_);
  dial_->waker = this;
  active_ns_ = dialled_ns_ = core_.clock.now_ns();
  harm_before_ = core_.faults.harm();
  check_impatience();
  if (dial_->done) wake_after(0);
}

void DiallingPeer::check_impatience() {
  core_.clock.after(patience_ns, [this] {
    if (reported_) return;
    const std::uint64_t active = std::max(active_ns_, upstream_active_ns());
    if (core_.clock.now_ns() - active < patience_ns) return check_impatience();
    if (const Course* waiting = waits_for()) {
      referee_.fail("a client waited for ever: " + to_string(*waiting));
    } else if (must_close_) {
      referee_.fail("a connection that had to be closed was not");
    }
    give_up();
  });
}

bool DiallingPeer::prepare() {
  if (dial_ == nullptr) return true;
  if (!dial_->done) return false;
  auto dial = std::exchange(dial_, nullptr);
  if (dial->result != 0) {
    // Nothing was sent: a client would try again.
    report();
    return false;
  }
  connected(std::exchange(dial->stream, nullptr));
  return true;
}

void DiallingPeer::active() {
  active_ns_ = core_.clock.now_ns();
  referee_.progress();
}

void DiallingPeer::report() {
  if (std::exchange(reported_, true)) return;
  close();
  over_(rest());
}

}  // namespace ringside::sim
