// The pools of one ring, whose kernel does only what the test says.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ringside/config/snapshot.h"
#include "ringside/upstream/pools.h"

#include "../net/machine.h"
#include "request.h"

namespace ringside::upstream::test {

using net::test::FakeSys;
using net::test::Machine;

struct Log final : base::Logger {
  void log(base::LogLevel, std::string_view, std::string_view text) override {
    lines.emplace_back(text);
  }
  std::vector<std::string> lines;
};

// An upstream "app" of so many servers with literal addresses: 10.0.0.1, 10.0.0.2, ...
inline config::Snapshot snapshot(unsigned servers, std::uint32_t connections_max = 0) {
  config::Snapshot out;
  config::Upstream upstream;
  upstream.name = "app";
  for (unsigned i = 1; i <= servers; ++i) {
    config::UpstreamServer server;
    server.endpoint.kind = config::Endpoint::Kind::ipv4;
    server.endpoint.host = "10.0.0." + std::to_string(i);
    server.endpoint.port = 80;
    server.endpoint.text = server.endpoint.host + ":80";
    server.connections_max = connections_max;
    upstream.servers.push_back(server);
  }
  out.upstreams.push_back(upstream);
  return out;
}

inline std::string connect_target(const Machine& machine, int fd) {
  Machine::Operation operation = machine.look(IORING_OP_CONNECT, fd);
  return net::Address::from_raw(reinterpret_cast<const sockaddr*>(operation.addr),
                                static_cast<socklen_t>(operation.off))
      .to_string();
}

class PoolsTest : public testing::Test {
 protected:
  explicit PoolsTest(config::Snapshot config = snapshot(1), const PoolsOptions& options = {})
      : machine_(sys_, {.buffers = 64, .buffer_bytes = 512}),
        config_(std::move(config)),
        directory_(config_, 1),
        pools_(machine_.context, log_, options),
        table_(pools_.make_table(config_, directory_)) {}
  ~PoolsTest() override {
    pools_.close_idle();
    machine_.tidy();
    EXPECT_TRUE(pools_.idle()) << "a session is open";
    EXPECT_TRUE(machine_.kernel.submitted.empty()) << "something is in flight";
    EXPECT_TRUE(sys_.open.empty()) << "a descriptor is open";
    EXPECT_EQ(chunks_.in_use(), 0U);
    EXPECT_EQ(machine_.slices.in_use(), 0U);
    EXPECT_EQ(machine_.buffers->leased(), 0U);
    for (std::size_t i = 0; i < directory_.servers(0); ++i)
      EXPECT_EQ(directory_.server(0, static_cast<std::uint32_t>(i)).open(), 0U) << "a place";
  }

  void acquire(Request& request, const SharedServer* avoid = nullptr) {
    pools_.acquire(request, *table_, 0, avoid);
    machine_.settle();
  }
  // The descriptor that was opened last.
  int newest() const { return sys_.open.empty() ? -1 : *sys_.open.rbegin(); }
  // A connection of its own for the request. Returns its descriptor.
  int connect(Request& request) {
    acquire(request);
    int fd = newest();
    machine_.finish(IORING_OP_CONNECT, fd, 0);
    EXPECT_EQ(request.news(), (News{"session"}));
    return fd;
  }
  // Sends a request and lets it leave.
  std::string send(Request& request, int fd, http::Method method = http::Method::get,
                   const RequestFraming& framing = {}) {
    request.send(method, framing);
    std::string out = machine_.leave_all(fd);
    EXPECT_NE(out, "") << "the session is not on " << fd;
    return out;
  }
  // A whole exchange that leaves the connection fit for the next one.
  void serve(Request& request, int fd) {
    send(request, fd);
    machine_.arrive(fd, "HTTP/1.1 204 No Content\r\n\r\n");
    EXPECT_EQ(request.news(), (News{"head 204", "end"}));
    request.finish();
    machine_.settle();
  }
  SharedServer& server(std::uint32_t index = 0) const { return directory_.server(0, index); }
  config::Upstream& upstream() { return config_.upstreams[0]; }

  FakeSys sys_;
  Machine machine_;
  base::ChunkPool chunks_;
  Log log_;
  config::Snapshot config_;
  Directory directory_;
  Pools pools_;
  std::unique_ptr<PoolTable> table_;
};

}  // namespace ringside::upstream::test
