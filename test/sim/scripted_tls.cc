#include "scripted_tls.h"

#include <linux/tls.h>
#include <sys/socket.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "ringside/tls/handoff.h"

namespace ringside::sim {

using Status = net::RecordLayer::Status;

namespace {

class ScriptedContexts final : public tls::Contexts {
 public:
  ScriptedContexts(ScriptedTls& shared, net::SlicePool& slices)
      : shared_(shared), slices_(slices) {}
  tls::LayerPtr accept(std::size_t) override { return make(TlsEnd::Role::server, true); }
  tls::LayerPtr connect(std::size_t, const config::Endpoint& server) override {
    const bool h2 = std::ranges::find(shared_.h2_servers, server.text) != shared_.h2_servers.end();
    return make(TlsEnd::Role::client, h2);
  }

 private:
  tls::LayerPtr make(TlsEnd::Role role, bool h2) {
    if (shared_.core.faults.hit(Fault::tls_no_memory)) return nullptr;
    return tls::LayerPtr(new ScriptedLayer(shared_, slices_, role, h2));
  }
  ScriptedTls& shared_;
  net::SlicePool& slices_;
};

}  // namespace

std::unique_ptr<tls::Contexts> ScriptedMaterial::contexts(const tls::ContextSet&,
                                                          tls::Channels& channels) const {
  return std::make_unique<ScriptedContexts>(shared_, channels.slices());
}

ScriptedLayer::ScriptedLayer(ScriptedTls& shared, net::SlicePool& slices, TlsEnd::Role role,
                             bool h2)
    : tls::Layer(slices), shared_(shared), end_(role, shared.random.fork(), h2) {
  static constexpr std::size_t sizes[] = {100, 1'400, record_payload_max, record_payload_max};
  record_max_ = shared_.random.pick(sizes);
  ++shared_.layers;
  if (role == TlsEnd::Role::client)
    end_.begin();
  else if (shared_.early_data)
    end_.take_early([this] { return !shared_.core.faults.hit(Fault::early_refused); });
}

ScriptedLayer::~ScriptedLayer() {
  --shared_.layers;
}

tls::ConnectionInfo ScriptedLayer::info() const {
  tls::ConnectionInfo out;
  out.cipher = "SIMULATED";
  if (end_.h2()) out.alpn = "h2";
  return out;
}

std::string ScriptedLayer::failure_text() const {
  if (!end_.failed()) return "truncated";
  return end_.peer_alert() != 0 ? "alert " + std::to_string(end_.peer_alert()) : "a bad record";
}

Status ScriptedLayer::status_of(TlsEnd::Event event) const {
  if (event == TlsEnd::Event::failed) return Status::failed;
  return event == TlsEnd::Event::ended ? Status::ended : Status::need_input;
}

// Hands plaintext out. False: there is more than room.
bool ScriptedLayer::give(Opened& out, std::span<char> room) {
  std::string& plaintext = end_.data();
  const std::size_t some = std::min(plaintext.size() - given_, room.size() - out.plaintext);
  std::copy_n(plaintext.data() + given_, some, room.data() + out.plaintext);
  given_ += some;
  out.plaintext += some;
  if (given_ != plaintext.size()) return false;
  plaintext.clear();
  given_ = 0;
  return true;
}

net::RecordLayer::Opened ScriptedLayer::open(std::string_view bytes, std::span<char> room) {
  Opened out;
  for (;;) {
    if (!give(out, room)) {
      out.status = Status::more;
      return out;
    }
    std::size_t taken = 0;
    const TlsEnd::Event event = end_.hear(bytes.substr(out.consumed), &taken);
    out.consumed += taken;
    // It had something to say under keys that the kernel has by now.
    if (kernel_sends_ && !end_own().empty()) {
      end_.own().clear();
      end_.data().clear();
      moving_ = false;
      out.status = Status::failed;
      return out;
    }
    if (happened(event, out)) return out;
  }
}

// True: that is all for now. What came early is given out in a call of its own, and so is the end
// of its handshake, as tls::Engine does it.
bool ScriptedLayer::happened(TlsEnd::Event event, Opened& out) {
  using Event = TlsEnd::Event;
  data_received_ |= event == Event::data;
  if (event == Event::data) {
    if (end_.early() && !std::exchange(early_told_, true)) out.secured = true;
    if (early_told_ && shared_.trusts_unsafe_early) trusted_ |= end_.data().contains("POST ");
    return false;
  }
  if (event == Event::early_ended) {
    out.status = Status::more;
    return out.plaintext != 0;
  }
  if (event == Event::secured) {
    out.secured |= !early_told_;
    out.confirmed = early_told_;
    out.status = refused_ ? Status::failed : Status::more;
    return refused_ || early_told_;
  }
  if (event == Event::ended || event == Event::failed) moving_ = false;
  out.status = status_of(event);
  return true;
}

Status ScriptedLayer::end_of_input() {
  return end_.ended() || close_read_ || shared_.trusts_truncation ? Status::ended : Status::failed;
}

net::RecordLayer::Sealed ScriptedLayer::seal(std::span<const std::string_view> pieces,
                                             std::span<char> room) {
  assert(can_seal());
  Sealed out;
  out.produced = take_own(room);
  std::size_t piece = 0, at = 0;
  while (piece < pieces.size() && end_own().empty()) {
    const std::size_t left = room.size() - out.produced;
    if (left <= record_overhead) break;
    const std::size_t most = std::min(record_max_, left - record_overhead);
    char* record = room.data() + out.produced;
    std::size_t bytes = 0;
    while (piece < pieces.size() && bytes < most) {
      const std::size_t some = std::min(pieces[piece].size() - at, most - bytes);
      std::copy_n(pieces[piece].data() + at, some, record + record_head_bytes + bytes);
      bytes += some;
      at += some;
      if (at != pieces[piece].size()) break;
      ++piece;
      at = 0;
    }
    out.produced += seal_record(record, RecordType::data, bytes, end_.sending());
    out.taken += bytes;
  }
  return out;
}

std::size_t ScriptedLayer::take_own(std::span<char> room) {
  std::string& own = end_.own();
  const std::size_t bytes = std::min(own.size(), room.size());
  std::copy_n(own.data(), bytes, room.data());
  own.erase(0, bytes);
  return bytes;
}

// ---- the kernel takes over; as tls::Channel and tls::Handoff do it

// In user space after all, or not at all.
void ScriptedLayer::stay() {
  moving_ = false;
  refused_ = shared_.kernel == config::KernelTls::require;
}

void ScriptedLayer::on_socket(net::SysPort& sys, int fd) {
  if (shared_.kernel == config::KernelTls::off) return;
  moving_ = tls::attach_kernel_tls(sys, fd) == 0;
  if (!moving_) stay();
}

bool ScriptedLayer::install(net::SysPort& sys, int fd, bool tx) {
  const RecordKeys keys = tx ? end_.sending() : end_.receiving();
  if (sys.set_option_bytes(fd, SOL_TLS, tx ? TLS_TX : TLS_RX, &keys, sizeof keys) == 0) return true;
  stay();
  return false;
}

bool ScriptedLayer::holds_receiving() const {
  return moving_ && end_.established() && end_.role() == TlsEnd::Role::server && !kernel_sends_;
}

bool ScriptedLayer::hand_over_sending(net::SysPort& sys, int fd) {
  if (!moving_ || !end_.established() || kernel_sends_) return kernel_sends_;
  if (!end_.can_send()) moving_ = false;
  if (moving_ && end_own().empty()) kernel_sends_ = install(sys, fd, true);
  return kernel_sends_;
}

bool ScriptedLayer::wants_to_hand_over() const {
  if (!moving_ || !kernel_sends_) return false;
  return end_.role() == TlsEnd::Role::server || data_received_;
}

std::size_t ScriptedLayer::bytes_to_hand_over() const {
  const std::size_t missing = end_.reader().missing();
  return missing == 0 && end_.message_pending() ? record_head_bytes : missing;
}

bool ScriptedLayer::hand_over_receiving(net::SysPort& sys, int fd) {
  assert(bytes_to_hand_over() == 0 && end_.data().empty());
  kernel_opens_ = install(sys, fd, false);
  moving_ = false;
  return kernel_opens_;
}

net::RecordLayer::Control ScriptedLayer::on_control(net::SysPort&, int, std::size_t count) {
  using Kind = tls::ControlRecord::Kind;
  const auto bytes = control_.bytes(count);
  const tls::ControlRecord record = parser_.read(control_.type().value_or(23), bytes);
  switch (record.kind) {
    case Kind::data:
      return {.status = Status::more,
              .data = {reinterpret_cast<const char*>(bytes.data()), bytes.size()}};
    case Kind::ignored:
      return {.status = Status::need_input, .data = {}};
    case Kind::close:
      close_read_ = true;
      return {.status = Status::ended, .data = {}};
    case Kind::key_update:
      // The simulated kernel takes no further keys.
      if (record.reply_requested) break;
      return {.status = Status::unreadable, .data = {}};
    case Kind::alert:
    case Kind::too_many:
    case Kind::unexpected:
      break;
  }
  return {.status = Status::failed, .data = {}};
}

msghdr* ScriptedLayer::closing_message() {
  if (shared_.ends_silently || std::exchange(close_said_, true)) return nullptr;
  return closing_.message();
}

}  // namespace ringside::sim
