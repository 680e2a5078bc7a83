// Takes new connections from one listening socket.
#pragma once

#include <cstdint>

#include "ringside/base/timer_wheel.h"
#include "ringside/ring/completion.h"

#include "context.h"

namespace ringside::proxy {

// Owner: the worker. States: accepting ⇄ paused (after a shortage of descriptors or memory) →
// closing → closed.
class Acceptor final : public ring::Completer {
 public:
  // Owns `fd` from now on.
  Acceptor(Context& context, std::uint32_t listen, int fd);
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
  bool admit(int fd, AddressPlace& place);
  void take(int fd);
  void pause(int negative_errno);
  void finish();
  static void resume(void* self);

  Context& context_;
  base::Timer timer_;
  std::uint32_t listen_;
  int fd_;
  bool armed_ = false;
  bool closing_ = false;
  bool close_submitted_ = false;
  bool closed_ = false;
};

}  // namespace ringside::proxy
