#include "traffic.h"

#include <utility>

#include "h2_traffic.h"

namespace ringside::budget {

namespace {

constexpr std::uint32_t origin_host = 0x0a020001;  // 10.2.0.1
constexpr std::uint16_t origin_port = 9000;

}  // namespace

std::unique_ptr<Client> make_client(sim::Core& core, const Scenario& scenario, Tally& tally) {
  if (scenario.http2) return std::make_unique<H2Client>(core, scenario, tally);
  return std::make_unique<H1Client>(core, scenario, tally);
}

bool Client::connect() {
  if (std::exchange(begun_, true)) return false;
  const net::Address to = sim::make_ipv4(web_host, web_port);
  dial_ = core_.network.dial(core_.network.ephemeral(to.family()), to);
  dial_->waker = this;
  return true;
}

bool Client::prepare() {
  if (dial_ == nullptr) return true;
  if (!dial_->done) return false;
  const auto dial = std::exchange(dial_, nullptr);
  if (dial->result != 0) {
    tally_.wrong = true;
    return false;
  }
  attach(std::exchange(dial->stream, nullptr));
  return true;
}

void H1Client::ask() {
  waiting_ = scenario_.depth;
  for (unsigned i = 0; i < scenario_.depth; ++i)
    send(scenario_.request);
  if (connect()) reader_.begin();
  wake_after(0);
}

void H1Client::on_data(std::string_view data) {
  while (!data.empty() && !tally_.wrong && !closed()) {
    data.remove_prefix(reader_.feed(data));
    if (reader_.state() == sim::MessageReader::State::failed) tally_.wrong = true;
    if (reader_.state() == sim::MessageReader::State::done) answered();
  }
}

void H1Client::answered() {
  if (reader_.status() != 200 || reader_.body_bytes() != scenario_.body_bytes || waiting_ == 0) {
    tally_.wrong = true;
  }
  reader_.begin();
  ++tally_.answers;
  if (--waiting_ == 0 && scenario_.reconnect) close();
}

OriginConnection::OriginConnection(sim::Core& core, const Scenario& scenario, Tally& tally,
                                   std::shared_ptr<sim::Stream> stream)
    : PeerConnection(core), scenario_(scenario), tally_(tally) {
  reader_.begin();
  attach(std::move(stream));
}

void OriginConnection::on_data(std::string_view data) {
  while (!data.empty() && !tally_.wrong) {
    data.remove_prefix(reader_.feed(data));
    if (reader_.state() == sim::MessageReader::State::failed) tally_.wrong = true;
    if (reader_.state() != sim::MessageReader::State::done) continue;
    reader_.begin();
    send(scenario_.response);
  }
}

Origin::Origin(sim::Core& core, const Scenario& scenario, Tally& tally)
    : core_(core), scenario_(scenario), tally_(tally) {
  net::Address address = sim::make_ipv4(origin_host, origin_port);
  core_.network.bind(address, {});
  listener_ = core_.network.listen(address, 4096);
  listener_->set_waker(this);
}

void Origin::on_ready() {
  while (auto stream = listener_->accept()) {
    connections_.push_back(
        std::make_unique<OriginConnection>(core_, scenario_, tally_, std::move(stream)));
  }
}

}  // namespace ringside::budget
