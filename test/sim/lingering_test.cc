// Ends that must not be overtaken by a reset (src/decisions/0003-closing-and-lingering.md).
#include <gtest/gtest.h>

#include "proxy_rig.h"

namespace ringside::sim {
namespace {

void listen(TestPeer&) {}

// It said that this was its last request, but its body is still to come.
TEST(Lingering, a_client_that_still_sends_is_read_when_the_response_breaks_off) {
  ProxyRig rig(Settings{}, listen);
  TestPeer& client = rig.client(
      "POST /e/0 HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nContent-Length: 10\r\n\r\n");
  ASSERT_TRUE(rig.until([&] { return !rig.origin.connections.empty(); }));
  TestPeer& server = *rig.origin.connections.front();
  server.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
  server.finish();
  EXPECT_TRUE(rig.rests_for(100 * millisecond_ns));
  EXPECT_TRUE(client.ended());
  EXPECT_TRUE(client.got.ends_with("half"));
  client.send("0123456789");
  EXPECT_TRUE(rig.rests_for(100 * millisecond_ns));
  EXPECT_FALSE(client.reset());
  EXPECT_EQ(rig.worker->holdings().client_connections, 1U);
  client.finish();
  EXPECT_TRUE(rig.until([&] { return rig.worker->holdings().client_connections == 0; }, second_ns));
  EXPECT_EQ(rig.end(), "");
}

}  // namespace
}  // namespace ringside::sim
