// A worker on the real kernel: its own client and upstream in one thread, so that what it allocates
// can be counted.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ringside/proxy/worker.h"

namespace ringside::proxy {

// Keeps what the worker says of its holdings.
struct HoldingsLogger final : base::Logger {
  void log(base::LogLevel level, std::string_view event, std::string_view text) override {
    if (event == "holdings") lines.emplace_back(level, text);
  }
  std::vector<std::pair<base::LogLevel, std::string>> lines;
};

// Counts; keeps the last record of the proxying listener. Allocates nothing.
struct Records final : AccessSink {
  void record(const AccessRecord& record) override {
    if (record.listener == "web") {
      ++count;
      status = record.status;
      end = record.end;
      of_loopback = record.client_address == "127.0.0.1";
      tries = record.tries;
      reused = record.reused;
    }
  }
  int count = 0;
  std::uint16_t status = 0;
  std::uint8_t tries = 0;
  bool reused = false;
  bool of_loopback = false;
  EndReason end;
};

inline config::Listen listen(std::string name) {
  config::Listen out;
  out.name = std::move(name);
  config::Endpoint any;
  any.text = "127.0.0.1:0";
  any.host = "127.0.0.1";
  out.addresses = {any};
  return out;
}

inline config::Route respond(std::string path, std::string body) {
  config::Route route;
  route.path = std::move(path);
  route.respond = config::Respond{.status = 200, .body = std::move(body), .headers = {}};
  return route;
}

// "web" proxies "/up/*" to "origin", which answers `origin_body`.
inline config::SnapshotRef snapshot(const std::string& origin_body, std::uint16_t origin_port) {
  auto out = std::make_shared<config::Snapshot>();
  out->listens = {listen("web"), listen("origin")};
  out->listens[0].http2 = true;
  out->timeouts.linger_ms = 50;
  config::Upstream upstream;
  upstream.name = "app";
  config::UpstreamServer server;
  server.endpoint.host = "127.0.0.1";
  server.endpoint.port = origin_port;
  server.endpoint.text = "127.0.0.1:" + std::to_string(origin_port);
  upstream.servers = {server};
  out->upstreams = {upstream};
  config::Site web;
  web.hosts = {"*"};
  web.listens = {0};
  config::Route proxied;
  proxied.path = "/up/*";
  proxied.upstream = 0;
  web.routes = {proxied};
  config::Site origin;
  origin.hosts = {"*"};
  origin.listens = {1};
  origin.routes = {respond("/*", origin_body)};
  out->sites = {web, origin};
  return out;
}

inline void no_sleep(unsigned) {}

class WorkerTest : public testing::Test {
 protected:
  void SetUp() override {
    net::ListenerSet listeners(net::real_sys());
    ASSERT_TRUE(listeners.open(*snapshot("", 1), 1, no_sleep).empty());
    web_ = listeners.listeners()[0].address;
    origin_port_ = listeners.listeners()[1].address.port();
    runtime_ = std::make_shared<Runtime>(snapshot("one", origin_port_), 1);
    auto worker = Worker::create({.kernel = ring::real_kernel(),
                                  .sys = net::real_sys(),
                                  .logger = logger_,
                                  .access = &records_,
                                  .connections_max = connections_max_,
                                  .accept_fast = accept_fast_},
                                 runtime_, listeners.release());
    ASSERT_TRUE(worker.has_value()) << ring::Ring::explain(worker.error());
    worker_ = std::move(*worker);
  }
  void TearDown() override {
    for (int fd : clients_)
      ::close(fd);
    worker_->request_drain();
    while (!worker_->finished())
      worker_->run_once(100);
    Worker::Holdings held = worker_->holdings();
    EXPECT_EQ(held.client_connections + held.exchanges + held.upstream_connections + held.leases +
                  held.arena_chunks + held.slices + held.pipes + held.operations,
              0U);
  }

  int connect() {
    int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::connect(fd, web_.raw(), web_.length()), 0);
    clients_.push_back(fd);
    return fd;
  }
  void send(int fd, std::string_view bytes) {
    ASSERT_EQ(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL), ssize_t(bytes.size()));
  }
  // Turns the loop until the client has `bytes` bytes, or the connection's end.
  std::size_t receive(int fd, char* out, std::size_t bytes) {
    std::size_t have = 0;
    for (int turns = 0; have < bytes && turns < 5000; ++turns) {
      worker_->run_once(1);
      ssize_t got = ::recv(fd, out + have, bytes - have, MSG_DONTWAIT);
      if (got == 0) break;
      if (got > 0) have += std::size_t(got);
      if (got > 0 && std::string_view(out, have).ends_with(expected_end_)) break;
    }
    return have;
  }
  std::string get(int fd, std::string_view path) {
    send(fd, "GET " + std::string(path) + " HTTP/1.1\r\nHost: a.test\r\n\r\n");
    char out[4096];
    return {out, receive(fd, out, sizeof out)};
  }

  std::uint32_t connections_max_ = 64;
  unsigned accept_fast_ = 0;
  HoldingsLogger logger_;
  Records records_;
  net::Address web_;
  std::uint16_t origin_port_ = 0;
  RuntimeRef runtime_;
  std::unique_ptr<Worker> worker_;
  std::vector<int> clients_;
  std::string_view expected_end_ = "\r\n\r\none";
};

}  // namespace ringside::proxy
