// Takes new connections from one listening socket.
#pragma once

#include <cstdint>
#include <optional>

#include "ringside/base/timer_wheel.h"
#include "ringside/net/address.h"
#include "ringside/ring/completion.h"
#include "ringside/ring/ring.h"

#include "accept_pace.h"
#include "context.h"

namespace ringside::proxy {

// Owner: the worker. States: accepting ⇄ accepting in turns; either → paused (after a shortage of
// descriptors or memory) → accepting; any → closing → closed.
//
// The kernel wakes a ring for every new connection, whatever the ring waits for, and the client's
// request comes a moment later: two wake-ups. Where connections come fast, the acceptor lets that
// be and looks into the accept queue once a turn instead
// (src/decisions/0012-accepting-in-turns.md).
class Acceptor final : public ring::Completer, private ring::TurnWork {
 public:
  // Owns `fd` from now on. `fast`: as of AcceptPace.
  Acceptor(Context& context, std::uint32_t listen, int fd, unsigned fast);
  // False when the ring has no slot.
  bool start();
  // Takes what already waits in the accept queue, then closes: a connection that the kernel has
  // accepted is not reset.
  void close();
  bool closed() const { return closed_; }

  void on_complete(std::uint8_t kind, const ring::Completion& completion) override;

 private:
  enum Kind : std::uint8_t { kind_accept, kind_cancel, kind_close };
  void arm();
  void on_accept(const ring::Completion& completion);
  void run_turn() override;
  void begin_turns();
  void end_turns();
  int take_waiting(unsigned most, unsigned& taken);
  bool admit(int fd, std::optional<net::Address>& peer, AddressPlace& place);
  void take(int fd, std::optional<net::Address> peer);
  void pause(int negative_errno);
  void finish();
  static void resume(void* self);

  Context& context_;
  base::Timer timer_;
  AcceptPace pace_;
  std::uint32_t listen_;
  int fd_;
  bool armed_ = false;
  bool disarming_ = false;  // accepting in turns begins once the operation has ended
  bool closing_ = false;
  bool close_submitted_ = false;
  bool closed_ = false;
};

}  // namespace ringside::proxy
