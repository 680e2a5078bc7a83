#include "proxy_rig.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <utility>

namespace ringside::sim {

namespace {

void no_sleep(unsigned) {}

}  // namespace

TestPeer::~TestPeer() {
  if (dial_ != nullptr) dial_->waker = nullptr;
  if (stream_ == nullptr) return;
  stream_->set_waker(nullptr);
  stream_->reset();
}

void TestPeer::dial(const net::Address& to) {
  dial_ = core_.network.dial(core_.network.ephemeral(to.family()), to);
  dial_->waker = this;
}

void TestPeer::attach(std::shared_ptr<Stream> stream) {
  stream_ = std::move(stream);
  stream_->set_waker(this);
  on_ready();
}

void TestPeer::send(std::string_view bytes) {
  out_ += bytes;
  on_ready();
}

void TestPeer::finish() {
  finishing_ = true;
  on_ready();
}

void TestPeer::read(bool on) {
  reading_ = on;
  on_ready();
}

// Not from inside of whoever woke it.
void TestPeer::on_ready() {
  if (std::exchange(planned_, true)) return;
  core_.clock.after(0, [this] {
    planned_ = false;
    serve();
  });
}

void TestPeer::serve() {
  if (dial_ != nullptr && dial_->done) {
    auto dial = std::exchange(dial_, nullptr);
    dial->waker = nullptr;
    if (dial->result == 0) return attach(std::exchange(dial->stream, nullptr));
    reset_ = true;
  }
  if (stream_ == nullptr) return;
  // Until there is no room: only who was told so hears of room again.
  while (!out_.empty()) {
    const int taken = stream_->write(out_.data(), out_.size());
    if (taken == -EAGAIN) break;
    out_.erase(0, taken > 0 ? static_cast<std::size_t>(taken) : out_.size());
  }
  if (finishing_ && out_.empty()) {
    finishing_ = false;
    stream_->shutdown(SHUT_WR);
  }
  if (reading_) read_some();
}

void TestPeer::read_some() {
  char buffer[16'384];
  bool news = false;
  while (!ended_ && !reset_) {
    const int read = stream_->read(buffer, sizeof buffer);
    if (read == -EAGAIN) break;
    if (read > 0) got.append(buffer, static_cast<std::size_t>(read));
    ended_ = read == 0;
    reset_ = read < 0;
    news = true;
  }
  if (news && heard_) heard_(*this);
}

TestOrigin::TestOrigin(Core& core, TestPeer::Heard heard) : core_(core), heard_(std::move(heard)) {
  for (unsigned i = 0; i < 2; ++i) {
    net::Address address = server_address(i);
    if (core_.network.bind(address, {}) != 0) std::abort();
    places_.push_back({address, core_.network.listen(address, 4096)});
    places_.back().listener->set_waker(this);
  }
}

TestOrigin::~TestOrigin() {
  for (const Place& place : places_) {
    place.listener->set_waker(nullptr);
    core_.network.stop(place.listener);
    core_.network.unbind(place.address);
  }
}

void TestOrigin::on_ready() {
  for (const Place& place : places_) {
    while (auto stream = place.listener->accept()) {
      connections.push_back(std::make_unique<TestPeer>(core_, heard_));
      connections.back()->read(reads);
      connections.back()->attach(std::move(stream));
    }
  }
}

ProxyRig::ProxyRig(const Settings& settings, TestPeer::Heard heard,
                   const config::TlsCertificate* certificate)
    : origin(world.core(), std::move(heard)) {
  std::shared_ptr<const tls::Material> material;
  if (settings.tls) material = std::make_shared<ScriptedMaterial>(tls_);
  tls_.kernel = settings.kernel_tls;
  config::SnapshotRef snapshot = make_snapshot(settings, 0);
  if (certificate != nullptr) {
    auto changed = std::make_shared<config::Snapshot>(*snapshot);
    changed->tls[0].certificates = {*certificate};
    material = tls::load_material(*changed, std::time(nullptr), 0, {}).material;
    if (material == nullptr) std::abort();
    snapshot = std::move(changed);
  }
  runtime_ =
      std::make_shared<const proxy::Runtime>(std::move(snapshot), 1, nullptr, std::move(material));
  net::ListenerSet set(world.sys());
  if (!set.open(*runtime_->snapshot, 1, no_sleep).empty()) std::abort();
  auto made = proxy::Worker::create({.kernel = world.kernel(),
                                     .sys = world.sys(),
                                     .logger = log_,
                                     .access = &records_,
                                     .connections_max = settings.connections_max},
                                    runtime_, set.release());
  if (!made) std::abort();
  worker = std::move(*made);
  world.sim_kernel().attend(worker->ring().descriptor(), true);
}

ProxyRig::~ProxyRig() {
  world.clock().clear();
}

TestPeer& ProxyRig::client(TestPeer::Heard heard, bool secure) {
  clients_.push_back(std::make_unique<TestPeer>(world.core(), std::move(heard)));
  clients_.back()->dial(client_target(2, secure));
  return *clients_.back();
}

bool ProxyRig::until(const std::function<bool()>& holds, std::uint64_t limit_ns,
                     unsigned turns_max) {
  const std::uint64_t end_ns = now_ns() + limit_ns;
  world.clock().at(end_ns, [this] { world.sim_kernel().interrupt(); });
  for (unsigned turn = 0; !holds(); ++turn) {
    if (turn == turns_max || now_ns() >= end_ns) return false;
    worker->run_once();
  }
  return true;
}

std::string ProxyRig::end() {
  worker->request_stop();
  if (!until([this] { return worker->finished(); }, 600 * second_ns)) return "it does not end";
  const proxy::Worker::Holdings held = worker->holdings();
  std::string left;
  const std::pair<const char*, std::uint32_t> all[] = {
      {"client connections", held.client_connections},
      {"exchanges", held.exchanges},
      {"server connections", held.upstream_connections},
      {"leases", held.leases},
      {"slices", held.slices}};
  for (const auto& [what, count] : all) {
    if (count != 0) left += std::to_string(count) + " " + what + "; ";
  }
  const std::size_t operations = world.sim_kernel().operations_in_flight();
  if (operations != 0) left += std::to_string(operations) + " operations; ";
  worker.reset();
  if (tls_.layers != 0) left += std::to_string(tls_.layers) + " record layers; ";
  const std::size_t open = world.files().in_use().size();
  if (open != 0) left += std::to_string(open) + " descriptors; ";
  return left;
}

std::string body_of(std::size_t bytes, unsigned lane) {
  std::string out(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) {
    const std::size_t mixed = (i + 1) * 2'654'435'761U ^ (lane + 1) * 40'503U;
    out[i] = static_cast<char>('a' + (mixed >> 7) % 26);
  }
  return out;
}

}  // namespace ringside::sim
