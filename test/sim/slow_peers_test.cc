// Slow peers take no more than their part of the receive buffers: nobody else waits for them.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "proxy_rig.h"

namespace ringside::sim {
namespace {

constexpr std::size_t large_bytes = 512 * 1024;

std::string answer(const std::string& body) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

// "/e/large..." is answered with much, anything else with little.
// "/e/never" and "/e/trickle" are not answered here.
void serve(TestPeer& peer) {
  if (!peer.got.ends_with("\r\n\r\n")) return;
  if (peer.got.starts_with("GET /e/never") || peer.got.starts_with("GET /e/trickle")) return;
  const bool large = peer.got.starts_with("GET /e/large");
  peer.got.clear();
  peer.send(answer(body_of(large ? large_bytes : 100)));
}

std::string get(const std::string& path) {
  return "GET " + path + " HTTP/1.1\r\nHost: a.test\r\n\r\n";
}

// As few buffers as a group may have that others could take up.
Settings few_buffers(config::BodyMover mover) {
  Settings out;
  out.buffers = 64;
  out.buffer_bytes = 2048;
  out.body_mover = mover;
  return out;
}

class SlowPeersTest : public testing::TestWithParam<config::BodyMover> {
 protected:
  void expect_answered_here_at_once() {
    TestPeer& quick = rig_.client(get("/local/1"));
    EXPECT_TRUE(rig_.until([&] { return quick.got.starts_with("HTTP/1.1 200"); }, second_ns));
  }
  void expect_served_at_once() {
    expect_answered_here_at_once();
    TestPeer& proxied = rig_.client(get("/e/small"));
    EXPECT_TRUE(rig_.until([&] { return proxied.got.ends_with(body_of(100)); }, second_ns));
  }
  // From the first byte on.
  void no_server_reads() { rig_.origin.reads = false; }
  // Lets everybody get as far as it can.
  void wait() {
    rig_.until([] { return false; }, 200 * millisecond_ns);
  }

  ProxyRig rig_{few_buffers(GetParam()), serve};
};

TEST_P(SlowPeersTest, those_who_do_not_read_hold_up_nobody) {
  std::vector<TestPeer*> slow;
  for (unsigned i = 0; i < 100; ++i) {
    slow.push_back(&rig_.client(get("/e/large")));
    slow.back()->read(false);
  }
  wait();
  expect_served_at_once();
  // And they lose nothing by it.
  for (TestPeer* peer : slow)
    peer->read(true);
  const std::string whole = answer(body_of(large_bytes));
  const auto read = [&] {
    return std::all_of(slow.begin(), slow.end(),
                       [&](TestPeer* peer) { return peer->got.size() >= whole.size(); });
  };
  EXPECT_TRUE(rig_.until(read, 60 * second_ns, 1'000'000));
  for (TestPeer* peer : slow)
    EXPECT_TRUE(peer->got.ends_with(body_of(large_bytes)));
  EXPECT_EQ(rig_.end(), "");
}

// A few bytes a packet hold a whole buffer each.
TEST_P(SlowPeersTest, small_pieces_that_nobody_reads_hold_up_nobody) {
  // As much as there is room for in the client's socket, then a piece at a time.
  constexpr std::size_t fills = 65'600;
  const std::string whole = answer(body_of(fills + 500));
  std::vector<TestPeer*> slow;
  for (unsigned i = 0; i < 10; ++i) {
    slow.push_back(&rig_.client(get("/e/trickle")));
    slow.back()->read(false);
  }
  ASSERT_TRUE(rig_.until([&] { return rig_.origin.connections.size() == slow.size(); }));
  wait();
  for (auto& connection : rig_.origin.connections)
    connection->send(whole.substr(0, fills));
  for (std::size_t at = fills; at < whole.size(); at += 10) {
    wait();
    for (auto& connection : rig_.origin.connections)
      connection->send(whole.substr(at, 10));
  }
  wait();
  expect_served_at_once();
  for (TestPeer* peer : slow) {
    peer->read(true);
    EXPECT_TRUE(rig_.until([&] { return peer->got.ends_with(body_of(fills + 500)); }));
  }
  EXPECT_EQ(rig_.end(), "");
}

// Requests behind one whose answer takes its time wait in the proxy, and so do bodies that no
// server is there for yet.
TEST_P(SlowPeersTest, what_waits_for_a_slow_server_holds_up_nobody) {
  for (unsigned i = 0; i < 100; ++i) {
    TestPeer& client = rig_.client(get("/e/never") + get("/local/2"));
    rig_.until([&] { return client.sent_all() && client.connected(); }, 5 * millisecond_ns);
  }
  wait();
  expect_served_at_once();
  EXPECT_EQ(rig_.end(), "");
}

TEST_P(SlowPeersTest, servers_that_do_not_read_hold_up_nobody) {
  no_server_reads();
  for (unsigned i = 0; i < 100; ++i) {
    rig_.client("POST /e/upload HTTP/1.1\r\nHost: a.test\r\nContent-Length: 200000\r\n\r\n" +
                body_of(200'000));
  }
  wait();
  expect_answered_here_at_once();
  EXPECT_EQ(rig_.end(), "");
}

std::string name_of(const testing::TestParamInfo<config::BodyMover>& mover) {
  constexpr std::string_view names[] = {"copy", "large", "bundle", "zero_copy"};
  return std::string(names[mover.index]);
}

// Not through pipes, since they take no buffers.
INSTANTIATE_TEST_SUITE_P(Movers, SlowPeersTest,
                         testing::Values(config::BodyMover::copy, config::BodyMover::large,
                                         config::BodyMover::bundle, config::BodyMover::zero_copy),
                         name_of);

// A buffer holds thousands of chunks of one byte, and each of them is a piece; what may wait of
// them would be more pieces than there are.
TEST(SmallPieces, tiny_chunks_that_nobody_reads_take_no_pieces_from_others) {
  Settings settings;
  settings.buffers = 1024;
  settings.buffer_bytes = 16 * 1024;
  ProxyRig rig(settings, serve);
  rig.origin.reads = false;
  std::string chunks;
  for (unsigned i = 0; i < 150'000; ++i)
    chunks += "1\r\nx\r\n";
  TestPeer& slow = rig.client(
      "POST /e/upload HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks);
  rig.until([] { return false; }, second_ns);
  EXPECT_FALSE(slow.sent_all()) << "it was not put to the test";
  EXPECT_FALSE(slow.ended() || slow.reset()) << "it only waits";
  TestPeer& quick = rig.client(get("/local/1"));
  EXPECT_TRUE(rig.until([&] { return quick.got.starts_with("HTTP/1.1 200"); }, second_ns));
  EXPECT_EQ(rig.end(), "");
}

TEST(SmallPieces, what_comes_byte_by_byte_behind_a_request_is_not_read_for_ever) {
  ProxyRig rig(few_buffers(config::BodyMover::copy), serve);
  TestPeer& client = rig.client(get("/e/never"));
  ASSERT_TRUE(rig.until([&] { return !rig.origin.connections.empty(); }));
  for (unsigned i = 0; i < 500; ++i) {
    client.send("G");
    rig.until([] { return false; }, millisecond_ns);
  }
  EXPECT_LT(rig.worker->holdings().slices, 100U);
  EXPECT_EQ(rig.end(), "");
}

}  // namespace
}  // namespace ringside::sim
