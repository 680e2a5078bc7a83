// How connections of HTTP/2 come to their end.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "h2_peer.h"
#include "proxy_rig.h"

namespace ringside::sim {
namespace {

Settings with_h2() {
  Settings out;
  out.http2 = true;
  out.buffers = 1024;  // enough for one client that lets its bytes lie
  return out;
}

// A client whose windows never make ringside wait.
std::string greeting() {
  constexpr std::uint32_t most = 0x7fff'ffff;
  return std::string(test::h2_preface) +
         test::h2_settings(test::h2_number(4, 2) + test::h2_number(most, 4)) +
         test::h2_window(0, most - 65'535);
}

std::string get(std::uint32_t stream) {
  return test::h2_headers(stream, test::h2_request("GET", "/e/x"), true);
}

// Its streams end by their own time-outs, but the frames that they leave behind fill its socket, so
// that no GOAWAY can follow them.
TEST(H2Lingering, a_client_that_reads_nothing_is_let_go) {
  const std::string body = body_of(2'000'000);
  ProxyRig rig(with_h2(), [&](TestPeer& peer) {
    if (!peer.got.ends_with("\r\n\r\n")) return;
    peer.got.clear();
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
              body);
  });
  TestPeer& client = rig.client(greeting() + get(1));
  client.read(false);
  ASSERT_TRUE(rig.until([&] { return rig.worker->holdings().exchanges == 1; }));
  const auto gone = [&] { return rig.worker->holdings().client_connections == 0; };
  EXPECT_TRUE(rig.until(gone, 300 * second_ns, 200'000));
  EXPECT_EQ(rig.end(), "");
}

// Whoever has ended his side still reads.
TEST(H2Lingering, a_client_that_has_ended_its_side_hears_of_a_reset) {
  ProxyRig rig(with_h2(), {});
  rig.set(Fault::short_write, 1);
  const std::string malformed = test::h2_headers(1, test::h2_request("GET", "e/x"), true);
  TestPeer& client = rig.client(greeting() + malformed);
  client.finish();
  ASSERT_TRUE(rig.until([&] { return client.ended() || client.reset(); }));
  EXPECT_FALSE(client.reset());
  const auto frames = test::h2_split(client.got);
  const auto is_reset = [](const test::H2Frame& frame) { return frame.type == 3; };
  EXPECT_TRUE(std::ranges::any_of(frames, is_reset));
  EXPECT_EQ(rig.end(), "");
}

}  // namespace
}  // namespace ringside::sim
