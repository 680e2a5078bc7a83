// Two rings of one process, each on a kernel of its own that does only what the test says.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "ringside/ring/mailbox.h"
#include "ringside/tls/channel.h"
#include "ringside/tls/material.h"
#include "ringside/upstream/peers.h"

#include "pools_fixture.h"

namespace ringside::upstream::test {

class Side final : public ring::MessageHandler {
 public:
  Side(FakeSys& sys, const config::Snapshot& config, const Directory& directory, Peers& peers,
       unsigned index, std::uint32_t mail, const tls::Material* material = nullptr)
      : machine(
            sys,
            {.buffers = 64, .buffer_bytes = 512, .opened_buffers = 16, .opened_buffer_bytes = 512}),
        channels(machine.slices, channels_max),
        pools(machine.context, log,
              {.ring_index = index, .rings = 2, .peers = &peers, .limits = {}}),
        contexts(material == nullptr
                     ? nullptr
                     : material->contexts(material->make(config, nullptr, false), channels)),
        table(pools.make_table(config, directory, contexts.get())),
        mailbox(std::move(*ring::Mailbox::create(*machine.ring, *this, mail))) {
    peers.join(index, *mailbox);
    machine.settle();
    event_ = machine.kernel.submitted.front().fd;
  }
  void on_message(const ring::Message& message) override { pools.on_message(message); }

  // Takes what the other one posted. False when there is nothing.
  bool take_mail() {
    unsigned& signals = machine.kernel.signals[event_];
    if (signals == 0) return false;
    signals = 0;
    machine.finish(IORING_OP_READ, event_, 8);
    return true;
  }
  void close_mailbox() {
    mailbox->close();
    machine.finish(IORING_OP_READ, event_, 8);
    mailbox.reset();
  }

  static constexpr std::size_t channels_max = 2;
  Log log;
  Machine machine;
  tls::Channels channels;
  Pools pools;
  std::unique_ptr<tls::Contexts> contexts;
  std::unique_ptr<PoolTable> table;
  std::unique_ptr<ring::Mailbox> mailbox;

 private:
  int event_ = -1;
};

class LendingTest : public testing::Test {
 protected:
  explicit LendingTest(std::uint32_t connections_max = 0, std::uint32_t mail = 64,
                       const tls::Material* material = nullptr)
      : config_(snapshot(1, connections_max)),
        directory_((secure(config_, material != nullptr), config_), 2),
        one_(sys_, config_, directory_, peers_, 0, mail, material),
        two_(sys_, config_, directory_, peers_, 1, mail, material) {}
  ~LendingTest() override {
    for (Side* side : {&one_, &two_})
      side->pools.close_idle();
    one_.machine.tidy();
    two_.machine.tidy();
    mail();
    one_.machine.pass_ms(2);
    two_.machine.pass_ms(2);
    mail();
    EXPECT_TRUE(one_.pools.idle());
    EXPECT_TRUE(two_.pools.idle());
    peers_.leave(0);
    peers_.leave(1);
    one_.close_mailbox();
    two_.close_mailbox();
    EXPECT_TRUE(one_.machine.kernel.submitted.empty());
    EXPECT_TRUE(two_.machine.kernel.submitted.empty());
    EXPECT_TRUE(sys_.open.empty()) << "a descriptor is open";
    EXPECT_EQ(one_.channels.in_use() + two_.channels.in_use(), 0U);
    EXPECT_EQ(server().open(), 0U) << "a place is taken";
    EXPECT_EQ(server().idle(0) + server().idle(1), 0U);
    EXPECT_EQ(server().waiting(0) + server().waiting(1), 0U);
  }

  static void secure(config::Snapshot& config, bool tls) {
    config.upstreams[0].tls.verify = false;
    for (config::UpstreamServer& server : config.upstreams[0].servers)
      server.tls = tls;
  }
  SharedServer& server() const { return directory_.server(0, 0); }
  // Messages go back and forth until there are none.
  void mail() {
    do {
      one_.machine.tidy();
      two_.machine.tidy();
    } while (one_.take_mail() || two_.take_mail());
  }
  static void acquire(Side& side, Request& request) {
    side.pools.acquire(request, *side.table, 0, nullptr);
    side.machine.settle();
  }
  int newest() const { return sys_.open.empty() ? -1 : *sys_.open.rbegin(); }
  int connect(Side& side, Request& request) {
    acquire(side, request);
    side.machine.finish(IORING_OP_CONNECT, newest(), 0);
    EXPECT_EQ(request.news(), (News{"session"}));
    return newest();
  }
  static void answer(Side& side, Request& request, int fd) {
    request.send();
    EXPECT_NE(side.machine.leave_all(fd), "") << "the session is not on " << fd;
    side.machine.arrive(fd, "HTTP/1.1 204 No Content\r\n\r\n");
    EXPECT_EQ(request.news(), (News{"head 204", "end"}));
  }
  static void serve(Side& side, Request& request, int fd) {
    answer(side, request, fd);
    request.finish();
    side.machine.settle();
  }
  // An idle connection of that side.
  int leave_idle(Side& side) {
    Request request(chunks_);
    int fd = connect(side, request);
    serve(side, request, fd);
    return fd;
  }

  FakeSys sys_;
  base::ChunkPool chunks_;
  config::Snapshot config_;
  Directory directory_;
  Peers peers_{2};
  Side one_, two_;
};

}  // namespace ringside::upstream::test
