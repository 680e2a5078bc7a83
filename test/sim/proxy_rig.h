// The whole proxy on the simulated kernel, with peers that do only what the test says.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ringside/base/logger.h"
#include "ringside/net/listener_set.h"
#include "ringside/proxy/worker.h"

#include "scripted_tls.h"
#include "settings.h"
#include "sim_world.h"

namespace ringside::sim {

// One end of a connection. Everything happens in events of the clock; its owner keeps it until the
// world ends.
class TestPeer final : public Wakeable {
 public:
  using Heard = std::function<void(TestPeer&)>;
  explicit TestPeer(Core& core, Heard heard = {}) : core_(core), heard_(std::move(heard)) {}
  ~TestPeer();
  TestPeer(const TestPeer&) = delete;
  TestPeer& operator=(const TestPeer&) = delete;

  void dial(const net::Address& to);
  void attach(std::shared_ptr<Stream> stream);
  void send(std::string_view bytes);
  // FIN, behind what is still to be sent.
  void finish();
  // Stops or goes on to read. One that does not read does not hear of the end either.
  void read(bool on);

  // What was read; `heard` may take it.
  std::string got;
  bool ended() const { return ended_; }
  bool reset() const { return reset_; }
  bool connected() const { return stream_ != nullptr; }
  bool sent_all() const { return out_.empty(); }

  void on_ready() override;

 private:
  void serve();
  void read_some();

  Core& core_;
  Heard heard_;
  std::shared_ptr<Dial> dial_;
  std::shared_ptr<Stream> stream_;
  std::string out_;
  bool reading_ = true;
  bool planned_ = false;
  bool finishing_ = false;
  bool ended_ = false;
  bool reset_ = false;
};

// Listens where the proxy's first upstream is (routes "/e/...").
class TestOrigin final : public Wakeable {
 public:
  TestOrigin(Core& core, TestPeer::Heard heard);
  ~TestOrigin();
  TestOrigin(const TestOrigin&) = delete;
  TestOrigin& operator=(const TestOrigin&) = delete;
  void on_ready() override;

  std::vector<std::unique_ptr<TestPeer>> connections;
  // Whether the connections that come read.
  bool reads = true;

 private:
  struct Place {
    net::Address address;
    std::shared_ptr<Listener> listener;
  };
  Core& core_;
  TestPeer::Heard heard_;
  std::vector<Place> places_;
};

// One ring. The seed is fixed and no fault is on unless the test sets it.
class ProxyRig {
 public:
  // `heard` is told whenever an upstream connection has read something. `certificate`: the listener
  // that speaks TLS speaks it by OpenSSL, with this; null: it is simulated.
  ProxyRig(const Settings& settings, TestPeer::Heard heard,
           const config::TlsCertificate* certificate = nullptr);
  ~ProxyRig();
  ProxyRig(const ProxyRig&) = delete;
  ProxyRig& operator=(const ProxyRig&) = delete;

  TestPeer& client() { return client({}, false); }
  // `secure`: at the listener that speaks TLS (Settings::tls).
  TestPeer& client(TestPeer::Heard heard, bool secure);
  TestPeer& client(std::string_view request) {
    TestPeer& peer = client();
    peer.send(request);
    return peer;
  }
  // Turns the loop until it holds. False when so many turns, or so much time, were not enough.
  bool until(const std::function<bool()>& holds, std::uint64_t limit_ns = 10 * second_ns,
             unsigned turns_max = 20'000);
  // Lets so much time pass; false when the loop did not rest, but turned and turned.
  bool rests_for(std::uint64_t time_ns) {
    const std::uint64_t end_ns = now_ns() + time_ns;
    until([] { return false; }, time_ns, 1'000);
    return now_ns() >= end_ns;
  }
  // Drains, ends, and says what was left behind; empty: nothing.
  std::string end();

  void set(Fault fault, std::uint32_t one_in) { world.faults().set(fault, one_in); }
  std::uint64_t count(Fault fault) const { return world_counts()[static_cast<std::size_t>(fault)]; }
  std::uint64_t now_ns() { return world.clock().now_ns(); }

  SimWorld world{1};

 private:
  ScriptedTls tls_{world.core()};

 public:
  std::unique_ptr<proxy::Worker> worker;
  TestOrigin origin;

 private:
  struct Silent final : base::Logger {
    void log(base::LogLevel, std::string_view, std::string_view) override {}
  };
  struct NoRecords final : proxy::AccessSink {
    void record(const proxy::AccessRecord&) override {}
  };
  const FaultCounts& world_counts() const { return const_cast<SimWorld&>(world).faults().counts(); }

  Silent log_;
  NoRecords records_;
  proxy::RuntimeRef runtime_;
  std::vector<std::unique_ptr<TestPeer>> clients_;
};

// Bytes of which each tells its place.
std::string body_of(std::size_t bytes, unsigned lane = 0);

}  // namespace ringside::sim
