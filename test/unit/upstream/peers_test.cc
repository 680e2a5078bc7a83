#include "ringside/upstream/peers.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace ringside::upstream {
namespace {

struct Inbox final : ring::MessageHandler {
  void on_message(const ring::Message& message) override { values.push_back(message.value); }
  std::vector<int> values;
};

TEST(Peers, a_message_reaches_the_ring_that_joined_and_no_other) {
  auto ring = ring::Ring::open(ring::real_kernel(), {.entries = 16, .completion_entries = 64});
  ASSERT_TRUE(ring.has_value()) << ring::Ring::explain(ring.error());
  Inbox inbox;
  auto mailbox = ring::Mailbox::create(**ring, inbox, 2);
  ASSERT_TRUE(mailbox.has_value());
  Peers peers(2);
  EXPECT_FALSE(peers.post(nullptr, 0, {.value = 1})) << "nobody is there yet";
  peers.join(0, **mailbox);
  EXPECT_TRUE(peers.post(nullptr, 0, {.value = 2}));
  EXPECT_TRUE(peers.post(nullptr, 0, {.value = 3}));
  EXPECT_FALSE(peers.post(nullptr, 0, {.value = 4})) << "the mailbox is full: the sender keeps it";
  EXPECT_FALSE(peers.post(nullptr, 1, {.value = 5}));
  while (inbox.values.size() < 2)
    (*ring)->run_once();
  EXPECT_EQ(inbox.values, (std::vector<int>{2, 3}));
  peers.leave(0);
  EXPECT_FALSE(peers.post(nullptr, 0, {.value = 6}));
  (*mailbox)->close();
  while ((*mailbox)->in_flight() != 0)
    (*ring)->run_once();
}

TEST(Peers, a_server_is_kept_once) {
  Peers peers(1);
  config::UpstreamServer config;
  auto server = std::make_shared<SharedServer>(config, 1);
  peers.keep(server);
  peers.keep(server);
  EXPECT_EQ(server.use_count(), 2);
}

}  // namespace
}  // namespace ringside::upstream
