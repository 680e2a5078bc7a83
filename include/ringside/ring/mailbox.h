// Messages between ring threads, and from other threads to a ring.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "ringside/base/error.h"
#include "ringside/ring/completion.h"
#include "ringside/ring/ring.h"

namespace ringside::ring {

class Doorbell;

// Small and trivially copyable; what the words mean is between sender and receiver.
struct Message {
  std::uint32_t kind = 0;
  std::int32_t value = 0;
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  void* object = nullptr;
};

class MessageHandler {
 public:
  // On the receiving ring's thread.
  virtual void on_message(const Message& message) = 0;

 protected:
  ~MessageHandler() = default;
};

// Owner: the receiving ring's thread creates and destroys it (nobody may post by then). Bounded
// queue of many senders and one receiver; wakes the receiver by MSG_RING when the sender has a ring
// and the kernel can, by an eventfd otherwise, and only when it is not awake already.
class Mailbox final : public Completer {
 public:
  static base::Result<std::unique_ptr<Mailbox>> create(Ring& ring, MessageHandler& handler,
                                                       std::uint32_t capacity = 4096);
  ~Mailbox() override;

  // From any thread. `from` is the calling thread's ring (one that keeps running: a wake-up by
  // MSG_RING leaves with its next enter), or null. False when the queue is full: the sender keeps
  // the message.
  bool post(Ring* from, const Message& message);

  // Stops receiving: ends the wake-up operation. Destroy when in_flight() == 0.
  void close();

  void on_complete(std::uint8_t kind, const Completion& completion) override;

 private:
  class Queue;
  Mailbox(Ring& ring, MessageHandler& handler);
  void drain();
  void arm();

  Ring& ring_;
  MessageHandler& handler_;
  std::unique_ptr<Queue> queue_;
  Doorbell* doorbell_ = nullptr;
  std::uint64_t event_count_ = 0;
  std::atomic<bool> awake_{false};
  bool closing_ = false;
};

}  // namespace ringside::ring
