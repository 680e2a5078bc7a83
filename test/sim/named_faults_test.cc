// Faults that others reported, each provoked in the whole proxy. The storm of KeyUpdates has a file
// of its own (key_update_storm_test.cc).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "proxy_rig.h"

namespace ringside::sim {
namespace {

using Clients = std::vector<TestPeer*>;

std::string answer(const std::string& body) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string get(std::size_t bytes, unsigned lane = 0) {
  return "GET /e/" + std::to_string(bytes) + "/" + std::to_string(lane) +
         " HTTP/1.1\r\nHost: a.test\r\n\r\n";
}

std::string post(const std::string& body) {
  return "POST /e/upload HTTP/1.1\r\nHost: a.test\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

// Answers get(bytes, lane) with body_of(bytes, lane); and a post, once it is whole, with its body.
void serve(TestPeer& peer) {
  const std::size_t head = peer.got.find("\r\n\r\n");
  if (head == std::string::npos) return;
  unsigned long bytes = 0;
  unsigned lane = 0;
  if (std::sscanf(peer.got.c_str(), "GET /e/%lu/%u", &bytes, &lane) == 2) {
    peer.got.clear();
    return peer.send(answer(body_of(bytes, lane)));
  }
  const std::size_t length = peer.got.find("Content-Length: ");
  if (length == std::string::npos) return;
  bytes = std::strtoul(peer.got.c_str() + length + 16, nullptr, 10);
  if (peer.got.size() < head + 4 + bytes) return;
  peer.send(answer(peer.got.substr(head + 4)));
  peer.got.clear();
}

// Hears everything and says nothing by itself.
void listen(TestPeer&) {}

Settings with(config::BodyMover mover) {
  Settings out;
  out.buffers = 256;
  out.body_mover = mover;
  out.buffer_bytes = 1024;
  return out;
}

bool answered(const TestPeer& peer, const std::string& body) {
  return peer.got.starts_with("HTTP/1.1 200") && peer.got.ends_with("\r\n\r\n" + body);
}

// sozu 1323: -EAGAIN of a splice was taken for "try again at once", for ever, at a body's end.
TEST(NamedFaults, splice_eagain_at_the_tail) {
  ProxyRig rig(with(config::BodyMover::splice), listen);
  const std::string body = body_of(300'000);
  const std::string whole = answer(body);
  TestPeer& client = rig.client(get(0));
  ASSERT_TRUE(rig.until([&] { return !rig.origin.connections.empty(); }));
  TestPeer& server = *rig.origin.connections.front();
  server.send(whole.substr(0, whole.size() - 5'000));
  ASSERT_TRUE(rig.until([&] { return client.got.size() >= whole.size() - 5'000; }));
  rig.set(Fault::splice_again, 1);
  server.send(whole.substr(whole.size() - 5'000));
  EXPECT_TRUE(rig.until([&] { return answered(client, body); }, second_ns, 200)) << "it spins";
  EXPECT_GT(rig.count(Fault::splice_again), 0U);
  EXPECT_EQ(rig.end(), "");
}

// mmproxy-rs 22: the end of the one side ended the other though its bytes were still in the pipe.
TEST(NamedFaults, eof_with_bytes_in_the_pipe) {
  ProxyRig rig(with(config::BodyMover::splice), listen);
  const std::string body = body_of(120'000);
  TestPeer& client = rig.client(get(0));
  client.read(false);
  ASSERT_TRUE(rig.until([&] { return !rig.origin.connections.empty(); }));
  TestPeer& server = *rig.origin.connections.front();
  // Its end is the body's end. About half fills the client's socket, the rest waits in the pipe.
  server.send("HTTP/1.1 200 OK\r\n\r\n" + body.substr(0, 70'000));
  EXPECT_TRUE(rig.rests_for(second_ns));
  server.send(body.substr(70'000));
  server.finish();
  EXPECT_TRUE(rig.rests_for(second_ns)) << "it spins";
  client.read(true);
  // It came in chunks, since its length was not known.
  EXPECT_TRUE(rig.until([&] { return client.got.ends_with("\r\n0\r\n\r\n"); }));
  EXPECT_NE(client.got.find(body.substr(body.size() - 10'000)), std::string::npos);
  constexpr auto splice = static_cast<std::size_t>(net::Mover::splice);
  EXPECT_GT(rig.worker->counters().moved_bytes[splice].load(), 0U);
  EXPECT_EQ(rig.end(), "");
}

// netty 17568, liburing 1409 and 1423: the buffers of one bundle are not those of neighbouring ids,
// and the last of them is not full.
TEST(NamedFaults, bundle_completions_that_span_buffers) {
  Settings settings = with(config::BodyMover::bundle);
  settings.buffer_bytes = 512;
  ProxyRig rig(settings, serve);
  rig.set(Fault::short_read, 3);
  Clients clients;
  for (unsigned lane = 0; lane < 6; ++lane)
    clients.push_back(&rig.client(get(60'000 + lane, lane)));
  const auto done = [&] {
    for (unsigned lane = 0; lane < 6; ++lane) {
      if (!answered(*clients[lane], body_of(60'000 + lane, lane))) return false;
    }
    return true;
  };
  EXPECT_TRUE(rig.until(done));
  TestPeer& upload = rig.client(post(body_of(200'000, 7)));
  EXPECT_TRUE(rig.until([&] { return answered(upload, body_of(200'000, 7)); }));
  EXPECT_EQ(rig.end(), "");
}

// liburing 778 and 1275: -ENOBUFS again and again, though there are buffers.
TEST(NamedFaults, enobufs_storm) {
  ProxyRig rig(with(config::BodyMover::copy), serve);
  rig.set(Fault::lost_buffers, 2);
  rig.set(Fault::early_no_buffers, 1);
  Clients clients;
  for (unsigned lane = 0; lane < 20; ++lane)
    clients.push_back(&rig.client(lane % 2 == 0 ? get(20'000, lane) : post(body_of(20'000, lane))));
  const auto done = [&] {
    for (unsigned lane = 0; lane < 20; ++lane) {
      if (!answered(*clients[lane], body_of(20'000, lane))) return false;
    }
    return true;
  };
  EXPECT_TRUE(rig.until(done, 10 * second_ns, 5'000));
  EXPECT_GT(rig.count(Fault::lost_buffers), 100U);
  EXPECT_EQ(rig.end(), "");
}

// liburing 1062: an accept said "descriptor 195", and there was none.
TEST(NamedFaults, bogus_descriptor_from_multishot_accept) {
  ProxyRig rig(with(config::BodyMover::copy), serve);
  TestPeer& before = rig.client(get(10));
  ASSERT_TRUE(rig.until([&] { return answered(before, body_of(10)); }));
  const std::vector<int> open = rig.world.files().in_use();
  SimRing& ring = rig.world.sim_kernel().ring(0);
  const std::vector<std::uint64_t> accepts = ring.user_data_of(IORING_OP_ACCEPT);
  ASSERT_FALSE(accepts.empty());
  ring.post_later(accepts.front(), 195, IORING_CQE_F_MORE);
  const auto gone = [&] {
    return rig.worker->counters().accepted.load() == 2 &&
           rig.worker->holdings().client_connections == 1;
  };
  EXPECT_TRUE(rig.until(gone, second_ns)) << "nobody is there, so nobody is waited for";
  EXPECT_EQ(rig.world.files().in_use(), open) << "nothing else was closed in its place";
  before.got.clear();
  before.send(get(10));
  TestPeer& after = rig.client(get(20));
  EXPECT_TRUE(
      rig.until([&] { return answered(before, body_of(10)) && answered(after, body_of(20)); }));
  EXPECT_EQ(rig.end(), "");
}

// liburing 1235 and 1192: a close waited for an operation in flight on the same socket, for ever.
TEST(NamedFaults, close_that_never_runs) {
  for (Fault fault : {Fault::late_execution, Fault::cancel_already, Fault::cancel_race}) {
    SCOPED_TRACE(to_string(fault));
    ProxyRig rig(with(config::BodyMover::copy), listen);
    // Nobody says anything: a receive is in flight when the time of the head is over. The other one
    // does not read, so a send is in flight.
    TestPeer& silent = rig.client("GET ");
    TestPeer& stuck = rig.client(get(0));
    stuck.read(false);
    ASSERT_TRUE(rig.until([&] { return !rig.origin.connections.empty(); }));
    rig.origin.connections.front()->send(answer(body_of(500'000)));
    rig.until([] { return false; }, second_ns);
    rig.set(fault, 1);
    const auto closed = [&] {
      return (silent.ended() || silent.reset()) && rig.worker->holdings().client_connections == 0;
    };
    EXPECT_TRUE(rig.until(closed, 300 * second_ns));
    rig.world.faults().all_off();
    EXPECT_EQ(rig.end(), "");
  }
}

// compio 746: a receive that was cancelled had succeeded, and nobody took its buffer.
TEST(NamedFaults, cancelled_receive_that_had_succeeded) {
  Settings settings = with(config::BodyMover::copy);
  settings.buffers = 16;
  ProxyRig rig(settings, listen);
  rig.set(Fault::cancel_race, 1);
  // More often than there are buffers: a response breaks off, and since an old client could take it
  // for whole, it is reset at once; all the while it goes on to send.
  for (unsigned i = 0; i < 40; ++i) {
    TestPeer& client = rig.client("GET /e/0 HTTP/1.0\r\nHost: a.test\r\n\r\n");
    ASSERT_TRUE(rig.until([&] { return rig.origin.connections.size() == i + 1; })) << i;
    TestPeer& server = *rig.origin.connections.back();
    server.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n");
    ASSERT_TRUE(rig.until([&] { return client.got.ends_with("half"); })) << i;
    server.finish();
    ASSERT_TRUE(rig.until([&] {
      client.send("x");
      return rig.worker->holdings().client_connections == 0;
    })) << i;
  }
  EXPECT_GT(rig.count(Fault::cancel_race), 16U);
  EXPECT_EQ(rig.worker->holdings().leases, 0U);
  TestPeer& last = rig.client(get(0));
  ASSERT_TRUE(rig.until([&] { return rig.origin.connections.size() == 41; }));
  rig.origin.connections.back()->send(answer(body_of(10'000)));
  EXPECT_TRUE(rig.until([&] { return answered(last, body_of(10'000)); }));
  EXPECT_EQ(rig.end(), "");
}

// tokio io-uring 302: with 3,000 clients completions found no room in the queue and were lost.
TEST(NamedFaults, completion_queue_overflow_at_3000_clients) {
  Settings settings = with(config::BodyMover::copy);
  settings.ring_entries = 64;
  settings.connections_max = 4000;
  ProxyRig rig(settings, serve);
  Clients clients;
  for (unsigned i = 0; i < 3'000; ++i)
    clients.push_back(&rig.client(get(100, i)));
  const auto done = [&] {
    return std::all_of(clients.begin(), clients.end(),
                       [](const TestPeer* peer) { return peer->got.size() > 100; });
  };
  EXPECT_TRUE(rig.until(done, 60 * second_ns, 200'000));
  EXPECT_GT(rig.worker->ring().counters().overflows, 0U) << "it was not put to the test";
  for (unsigned i = 0; i < 3'000; ++i)
    ASSERT_TRUE(answered(*clients[i], body_of(100, i))) << i;
  EXPECT_EQ(rig.end(), "");
}

// ioxide 228: a send took less than all though MSG_WAITALL was asked for. Here nobody counts on it.
TEST(NamedFaults, short_sends_despite_waitall) {
  using enum config::BodyMover;
  for (config::BodyMover mover : {copy, large, bundle, splice, zero_copy}) {
    SCOPED_TRACE(static_cast<int>(mover));
    ProxyRig rig(with(mover), serve);
    rig.set(Fault::short_write, 1);
    TestPeer& down = rig.client(get(100'000, 1));
    TestPeer& up = rig.client(post(body_of(100'000, 2)));
    EXPECT_TRUE(rig.until(
        [&] { return answered(down, body_of(100'000, 1)) && answered(up, body_of(100'000, 2)); },
        60 * second_ns, 100'000));
    EXPECT_GT(rig.count(Fault::short_write), 50U);
    EXPECT_EQ(rig.end(), "");
  }
}

}  // namespace
}  // namespace ringside::sim
