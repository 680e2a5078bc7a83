// Connections to https servers, which stay with the ring that made them.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "../tls/peer.h"
#include "two_rings.h"

namespace ringside::upstream::test {
namespace {

const tls::Material& material() {
  static const auto without_trust = [] {
    auto out = std::make_unique<tls::Material>();
    out->trust.resize(1);
    return out;
  }();
  return *without_trust;
}

class SecureTest : public LendingTest {
 protected:
  explicit SecureTest(std::uint32_t connections_max = 0)
      : LendingTest(connections_max, 64, &material()) {}

  // The server at the other end of a connection.
  tls::test::Peer& peer(int fd) {
    std::unique_ptr<tls::test::Peer>& peer = peers_of_[fd];
    if (peer == nullptr)
      peer = std::make_unique<tls::test::Peer>(contexts_.of(tls::Role::server), tls::Role::server);
    return *peer;
  }
  // Until neither has anything to say.
  void talk(Side& side, int fd) {
    while (true) {
      const std::string out = side.machine.leave_all(fd);
      if (!out.empty()) peer(fd).give(out);
      const std::string in = peer(fd).take();
      if (out.empty() && in.empty()) return;
      for (std::size_t at = 0; at < in.size(); at += 512)
        side.machine.arrive(fd, std::string_view(in).substr(at, 512));
    }
  }
  // Connects by the newest descriptor, handshake included.
  int finish_connect(Side& side) {
    const int fd = newest();
    peers_of_.erase(fd);
    side.machine.finish(IORING_OP_CONNECT, fd, 0);
    talk(side, fd);
    return fd;
  }
  int connect(Side& side, Request& request) {
    acquire(side, request);
    const int fd = finish_connect(side);
    EXPECT_EQ(request.news(), (News{"session"}));
    return fd;
  }
  void serve(Side& side, Request& request, int fd) {
    request.send();
    talk(side, fd);
    EXPECT_TRUE(peer(fd).received.starts_with("GET /x HTTP/1.1\r\n")) << peer(fd).received;
    peer(fd).received.clear();
    peer(fd).send("HTTP/1.1 204 No Content\r\n\r\n");
    talk(side, fd);
    EXPECT_EQ(request.news(), (News{"head 204", "end"}));
    request.finish();
    side.machine.settle();
  }
  bool open_after(std::uint64_t ms, int fd) {
    one_.machine.pass_ms(ms);
    one_.machine.tidy();
    return sys_.open.contains(fd);
  }
  int leave_idle(Side& side) {
    Request request(chunks_);
    const int fd = connect(side, request);
    serve(side, request, fd);
    return fd;
  }

 private:
  tls::test::Contexts contexts_;
  std::map<int, std::unique_ptr<tls::test::Peer>> peers_of_;
};

TEST_F(SecureTest, a_session_is_had_after_the_handshake) {
  Request request(chunks_);
  acquire(one_, request);
  const int fd = newest();
  one_.machine.finish(IORING_OP_CONNECT, fd, 0);
  EXPECT_EQ(request.news(), News{}) << "no handshake yet";
  talk(one_, fd);
  EXPECT_EQ(request.news(), (News{"session"}));
  serve(one_, request, fd);
  EXPECT_EQ(server().idle(0), 1U);
}

TEST_F(SecureTest, a_handshake_that_fails_is_no_session_and_the_log_says_why) {
  Request request(chunks_);
  acquire(one_, request);
  const int fd = newest();
  one_.machine.finish(IORING_OP_CONNECT, fd, 0);
  one_.machine.leave_all(fd);
  one_.machine.arrive(fd, "HTTP/1.1 400 Bad Request\r\n\r\n");
  ASSERT_EQ(request.news(),
            (News{"none: " + std::string(base::describe(base::ErrorCode::insecure))}));
  EXPECT_EQ(request.error.origin, base::Origin::upstream);
  ASSERT_EQ(one_.log.lines.size(), 1U);
  EXPECT_TRUE(one_.log.lines[0].starts_with("server 10.0.0.1:80: handshake: "))
      << one_.log.lines[0];
  one_.machine.tidy();
  EXPECT_EQ(server().open(), 0U);
}

TEST_F(SecureTest, without_memory_for_tls_there_is_no_session_and_no_place_is_lost) {
  Request first(chunks_), second(chunks_), third(chunks_);
  connect(one_, first);
  connect(one_, second);
  acquire(one_, third);
  EXPECT_EQ(third.news(),
            (News{"none: " + std::string(base::describe(base::ErrorCode::no_memory))}));
  EXPECT_EQ(server().open(), 2U);
  EXPECT_EQ(sys_.open.size(), 2U);
  EXPECT_EQ(one_.channels.in_use(), 2U);
  first.abandon();
  second.abandon();
}

TEST_F(SecureTest, an_idle_connection_rests_and_is_closed_in_its_time) {
  config_.upstreams[0].idle_timeout_ms = 10'000;
  const int fd = leave_idle(one_);
  EXPECT_TRUE(open_after(1'500, fd)) << "it has rested";
  EXPECT_TRUE(open_after(8'000, fd));
  EXPECT_FALSE(open_after(1'000, fd));
}

TEST_F(SecureTest, a_short_idle_time_is_kept_too) {
  config_.upstreams[0].idle_timeout_ms = 500;
  const int fd = leave_idle(one_);
  EXPECT_TRUE(open_after(400, fd));
  EXPECT_FALSE(open_after(200, fd));
}

TEST_F(SecureTest, one_that_rested_serves_again) {
  const int fd = leave_idle(one_);
  one_.machine.pass_ms(1'500);
  Request request(chunks_);
  acquire(one_, request);
  ASSERT_EQ(request.news(), (News{"session"}));
  serve(one_, request, fd);
  EXPECT_TRUE(request.reused);
}

TEST_F(SecureTest, an_idle_connection_stays_with_its_ring) {
  const int fd = leave_idle(one_);
  Request request(chunks_);
  acquire(two_, request);
  mail();
  EXPECT_TRUE(sys_.open.contains(fd)) << "nobody has use for its end";
  EXPECT_EQ(server().idle(0), 1U);
  const int other = finish_connect(two_);
  EXPECT_NE(other, fd);
  EXPECT_EQ(request.news(), (News{"session"}));
  EXPECT_EQ(server().open(), 2U);
  EXPECT_EQ(one_.pools.counters().lent, 0U);
  serve(two_, request, other);
}

class OneSecurePlaceTest : public SecureTest {
 protected:
  OneSecurePlaceTest() : SecureTest(1) {}
};

TEST_F(OneSecurePlaceTest, an_idle_connection_gives_way_to_one_of_another_ring) {
  const int fd = leave_idle(one_);
  Request request(chunks_);
  acquire(two_, request);
  EXPECT_TRUE(sys_.open.contains(fd));
  mail();
  EXPECT_FALSE(sys_.open.contains(fd));
  const int other = finish_connect(two_);
  EXPECT_EQ(request.news(), (News{"session"}));
  EXPECT_EQ(server().open(), 1U);
  EXPECT_EQ(one_.pools.counters().lent, 0U);
  serve(two_, request, other);
}

TEST_F(OneSecurePlaceTest, one_that_falls_idle_gives_way_to_who_waits_elsewhere) {
  Request user(chunks_), waiting(chunks_);
  const int fd = connect(one_, user);
  acquire(two_, waiting);
  ASSERT_TRUE(waiting.queued());
  serve(one_, user, fd);
  mail();
  EXPECT_FALSE(sys_.open.contains(fd));
  const int other = finish_connect(two_);
  EXPECT_EQ(waiting.news(), (News{"session"}));
  serve(two_, waiting, other);
}

TEST_F(OneSecurePlaceTest, those_who_wait_here_come_first) {
  Request user(chunks_), here(chunks_), there(chunks_);
  const int fd = connect(one_, user);
  acquire(two_, there);
  acquire(one_, here);
  serve(one_, user, fd);
  EXPECT_EQ(here.news(), (News{"session"}));
  serve(one_, here, fd);
  mail();
  EXPECT_FALSE(sys_.open.contains(fd));
  const int other = finish_connect(two_);
  EXPECT_EQ(there.news(), (News{"session"}));
  serve(two_, there, other);
}

}  // namespace
}  // namespace ringside::upstream::test
