// Mailboxes between threads; registered in the `threads` suite, which runs under ThreadSanitizer.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "ringside/ring/mailbox.h"
#include "ringside/ring/ring.h"

namespace ringside::ring::test {
namespace {

constexpr std::uint64_t messages = 20'000;

std::unique_ptr<Ring> open() {
  return std::move(*Ring::open(real_kernel(), {.entries = 64, .completion_entries = 256}));
}

void close(Ring& ring, std::unique_ptr<Mailbox>& mailbox) {
  mailbox->close();
  while (mailbox->in_flight() != 0)
    ring.run_once();
  mailbox.reset();
}

// Checks that every sender's messages come once and in order. `object` is memory that the sender
// wrote and the receiver reads: the queue must order that too.
struct InOrder final : MessageHandler {
  explicit InOrder(std::size_t senders) : next(senders) {}
  void on_message(const Message& message) override {
    EXPECT_EQ(message.a, next[message.kind]);
    auto* owned = static_cast<std::uint64_t*>(message.object);
    EXPECT_EQ(*owned, message.a);
    delete owned;
    ++next[message.kind];
    ++received;
  }
  std::vector<std::uint64_t> next;
  std::uint64_t received = 0;
};

void post_all(Mailbox& mailbox, Ring* from, std::uint32_t sender) {
  for (std::uint64_t i = 0; i < messages; ++i) {
    auto* owned = new std::uint64_t(i);
    while (!mailbox.post(from, {.kind = sender, .a = i, .object = owned})) {
      // Full: let the wake-up out that the receiver needs to make room.
      if (from != nullptr) from->run_once(0);
      std::this_thread::yield();
    }
    if (from != nullptr && i % 16 == 0) from->run_once(0);
  }
  while (from != nullptr && from->attached() != 0)
    from->run_once(10);
}

TEST(MailboxThreads, many_senders_one_receiver) {
  constexpr std::uint32_t senders = 4;
  auto ring = open();
  InOrder handler(senders);
  auto mailbox = std::move(*Mailbox::create(*ring, handler, 64));
  std::vector<std::thread> threads;
  for (std::uint32_t sender = 0; sender < senders; ++sender) {
    threads.emplace_back([&, sender] {
      // Half of them have a ring and wake by MSG_RING, half have none.
      std::unique_ptr<Ring> own = sender % 2 == 0 ? open() : nullptr;
      post_all(*mailbox, own.get(), sender);
    });
  }
  // It sleeps without a limit: a lost wake-up hangs the test.
  while (handler.received < senders * messages)
    ring->run_once();
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(handler.received, senders * messages);
  close(*ring, mailbox);
}

// Two rings throw one message to and fro: every throw needs its wake-up.
class Player final : public MessageHandler {
 public:
  void on_message(const Message& message) override {
    last = message.a;
    if (message.a < messages) {
      EXPECT_TRUE(peer->post(ring, {.a = message.a + 1}));
    }
  }
  Ring* ring = nullptr;
  Mailbox* peer = nullptr;
  std::uint64_t last = 0;
};

TEST(MailboxThreads, two_rings_wake_each_other) {
  Player players[2];
  std::unique_ptr<Mailbox> boxes[2];
  std::atomic<int> ready = 0;
  std::atomic<int> done = 0;
  auto play = [&](int self) {
    auto ring = open();
    players[self].ring = ring.get();
    boxes[self] = std::move(*Mailbox::create(*ring, players[self], 4));
    ++ready;
    while (ready != 2)
      std::this_thread::yield();
    players[self].peer = boxes[1 - self].get();
    if (self == 0) boxes[1]->post(ring.get(), {.a = 0});
    // The last two throws are `messages` - 1 and `messages`, one to each side.
    while (players[self].last + 1 < messages)
      ring->run_once();
    while (ring->attached() > 1)
      ring->run_once();  // a wake-up that is still under way
    ++done;
    while (done != 2)
      std::this_thread::yield();
    close(*ring, boxes[self]);
  };
  std::thread first(play, 0);
  std::thread second(play, 1);
  first.join();
  second.join();
  EXPECT_EQ(players[0].last + players[1].last, 2 * messages - 1);
}

}  // namespace
}  // namespace ringside::ring::test
