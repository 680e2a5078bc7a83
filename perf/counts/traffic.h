// The client and the upstream of the counted traffic, on the simulated network.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "message_reader.h"
#include "peer_connection.h"
#include "scenarios.h"

namespace ringside::budget {

// What has arrived at the clients so far.
struct Tally {
  std::uint64_t answers = 0;
  bool wrong = false;  // an answer was not the expected one, or a connection broke
};

// Connects when first asked. Everything happens in events of the clock.
class Client : protected sim::PeerConnection {
 public:
  Client(sim::Core& core, const Scenario& scenario, Tally& tally)
      : PeerConnection(core), scenario_(scenario), tally_(tally) {}
  // Sends a round of requests; the answers to the last one are in.
  virtual void ask() = 0;

 protected:
  // True: for the first time.
  bool connect();
  bool prepare() final;
  void on_end() final { tally_.wrong = true; }
  void on_error(int) final { tally_.wrong = true; }

  const Scenario& scenario_;
  Tally& tally_;
  unsigned waiting_ = 0;  // for so many answers

 private:
  std::shared_ptr<sim::Dial> dial_;
  bool begun_ = false;
};
// Of the protocol that the scenario names.
std::unique_ptr<Client> make_client(sim::Core& core, const Scenario& scenario, Tally& tally);

inline constexpr std::uint32_t web_host = 0x0a010001;  // 10.1.0.1
inline constexpr std::uint16_t web_port = 80;

class H1Client final : public Client {
 public:
  using Client::Client;
  void ask() override;

 private:
  void on_data(std::string_view data) override;
  void on_sent() override {}
  void answered();

  sim::MessageReader reader_{sim::MessageReader::Side::response};
};

class OriginConnection final : public sim::PeerConnection {
 public:
  OriginConnection(sim::Core& core, const Scenario& scenario, Tally& tally,
                   std::shared_ptr<sim::Stream> stream);

 private:
  void on_data(std::string_view data) override;
  void on_end() override { close(); }
  void on_error(int) override { close(); }
  void on_sent() override {}

  const Scenario& scenario_;
  Tally& tally_;
  sim::MessageReader reader_{sim::MessageReader::Side::request};
};

// Answers every request with the scenario's response.
class Origin final : public sim::Wakeable {
 public:
  Origin(sim::Core& core, const Scenario& scenario, Tally& tally);
  void on_ready() override;

 private:
  sim::Core& core_;
  const Scenario& scenario_;
  Tally& tally_;
  std::shared_ptr<sim::Listener> listener_;
  std::vector<std::unique_ptr<OriginConnection>> connections_;
};

}  // namespace ringside::budget
