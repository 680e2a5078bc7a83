#include "tls_peer.h"

#include <algorithm>

namespace ringside::sim {

namespace {
// Every handshake has so many bytes from either side.
constexpr std::uint64_t handshake_bytes_min = 90;
constexpr std::uint64_t small_bytes_max = 60;
constexpr unsigned small_records_max = 6;
// What tickets allow (early_data_max).
constexpr std::size_t early_bytes_max = 16'384;
// Shorter than ringside lingers.
constexpr std::uint64_t late_ns_max = 400 * millisecond_ns;
}  // namespace

TlsPeer::TlsPeer(Core& core, TlsEnd::Role role, bool h2, const Early* early)
    : core_(core), random_(core.random.fork()), end_(role, random_.fork(), h2) {
  draw_handshake();
  if (early != nullptr) {
    early_data_ = early->state;
    early_random_ = early->random;
    draw_early();
    end_.offer_early();
  }
  if (role == TlsEnd::Role::client) end_.begin();
}

void TlsPeer::draw_handshake() {
  Faults& faults = core_.faults;
  const auto somewhere = [this] { return random_.below(handshake_bytes_min); };
  if (faults.hit(Fault::tls_handshake_stall)) stall_at_ = somewhere();
  if (faults.hit(Fault::tls_handshake_cut)) cut_at_ = somewhere();
  if (faults.hit(Fault::tls_handshake_alert)) alert_at_ = somewhere();
  if (faults.hit(Fault::tls_handshake_garbage)) garble_at_ = somewhere();
  small_records_ = faults.hit(Fault::tls_small_records);
  cut_by_reset_ = random_.coin();
}

void TlsPeer::draw_early() {
  Faults& faults = core_.faults;
  early_left_ = early_bytes_max;
  if (faults.hit(Fault::early_part)) early_left_ = early_random_.below(200);
  const bool late = faults.hit(Fault::early_late);
  const bool not_at_all = faults.hit(Fault::early_never);
  if (late) confirms_at_ns_ = early_random_.below(late_ns_max);
  if (not_at_all) confirms_at_ns_ = early_random_.coin() ? never_ns : 90 * second_ns;
}

TlsPeer::Event TlsPeer::hear(std::string_view bytes, std::size_t* taken) {
  const Event event = end_.hear(bytes, taken);
  if (early_data_ != nullptr && event == Event::secured) heard_handshake();
  return event;
}

void TlsPeer::heard_handshake() {
  early_data_->refused = end_.early_refused();
  early_data_->confirmed = end_.established();
  if (must_confirm()) {
    early_sent_.clear();
    if (confirms_at_ns_ != never_ns) confirms_at_ns_ += core_.clock.now_ns();
    return;
  }
  for (std::string_view rest = early_sent_; !rest.empty();) {
    const std::string_view piece = rest.substr(0, record_payload_max);
    append_record(end_.own(), RecordType::data, piece, end_.sending());
    rest.remove_prefix(piece.size());
  }
}

void TlsPeer::confirm() {
  end_.confirm();
  early_data_->confirmed = true;
}

// What the end has to say is next, or what takes its place.
void TlsPeer::fetch() {
  wire_.clear();
  at_ = 0;
  if (cut_) return;
  wire_.swap(end_.own());
  if (alert_at_ < passed_ + wire_.size()) {
    wire_.clear();
    end_.say_alert(TlsEnd::internal_error);
    wire_.swap(end_.own());
    alert_at_ = never;
    cut_ = true;
  }
  if (garble_at_ >= passed_ + wire_.size() || wire_.empty()) return;
  garble(static_cast<std::size_t>(garble_at_ - std::min(garble_at_, passed_)));
  garble_at_ = never;
}

// One byte of what is on the wire now.
void TlsPeer::garble(std::size_t at) {
  wire_[at] = static_cast<char>(wire_[at] ^ random_.between(1, 255));
}

std::string_view TlsPeer::wire() {
  const std::uint64_t now = core_.clock.now_ns();
  if (now < stalled_until_ns_) return {};
  stalled_until_ns_ = 0;
  if (at_ == wire_.size()) fetch();
  if (passed_ == stall_at_) {
    stall_at_ = never;
    stalled_until_ns_ = now + random_.between(second_ns, 60 * second_ns);
    return {};
  }
  if (passed_ == cut_at_) {
    cut_ = true;
    drop();
    return {};
  }
  const std::uint64_t limit = std::min(stall_at_, cut_at_) - passed_;
  return std::string_view(wire_).substr(
      at_, static_cast<std::size_t>(std::min<std::uint64_t>(limit, wire_.size() - at_)));
}

std::size_t TlsPeer::left(std::size_t bytes) {
  at_ += bytes;
  passed_ += bytes;
  std::size_t plaintext = 0;
  for (; !sealed_.empty() && sealed_.front().end <= passed_; sealed_.pop_front())
    plaintext += sealed_.front().plaintext;
  return plaintext;
}

void TlsPeer::drop() {
  sealed_.clear();
  wire_.clear();
  at_ = 0;
  end_.own().clear();
}

// What a peer may say whenever it likes. A server that asks for keys may be gone when they come,
// and its answer with it.
void TlsPeer::say_more() {
  Faults& faults = core_.faults;
  const bool server = end_.role() == TlsEnd::Role::server;
  const bool ticket = server && faults.hit(Fault::tls_ticket);
  const bool asks = server ? faults.hit(Fault::tls_asks_for_keys) : random_.coin();
  const bool keys = faults.hit(Fault::tls_key_update) || faults.hit(Fault::tls_kernel_key_update);
  if (ticket) end_.say_ticket();
  if (keys || (server && asks)) end_.say_key_update(asks);
  if (ticket || keys || (server && asks)) --messages_left_;
}

// Between two records of data.
void TlsPeer::misbehave() {
  Faults& faults = core_.faults;
  if (messages_left_ != 0 && !end_.early()) say_more();
  const bool alert = faults.hit(Fault::tls_alert);
  if (alert) end_.say_alert(TlsEnd::internal_error);
  // The FIN alone, as somebody in between could send it.
  const bool truncated = faults.hit(Fault::tls_truncated);
  if (truncated) cut_by_reset_ = false;
  cut_ = alert || truncated;
}

std::size_t TlsPeer::seal(std::string_view plaintext) {
  if (at_ == wire_.size()) fetch();
  std::size_t taken = 0;
  for (unsigned records = small_records_ ? small_records_max : 1; records != 0; --records) {
    const std::size_t most =
        small_records_ ? random_.between(1, small_bytes_max) : record_payload_max;
    const std::size_t allowed = end_.early() ? std::min(most, early_left_) : most;
    const std::string_view piece = plaintext.substr(taken, allowed);
    if (piece.empty()) break;
    misbehave();
    wire_ += end_.own();
    end_.own().clear();
    if (cut_) break;
    const std::size_t from = wire_.size();
    append_record(wire_, RecordType::data, piece, end_.sending());
    if (end_.early()) note_early(piece);
    taken += piece.size();
    sealed_.push_back({.end = passed_ + wire_.size() - at_, .plaintext = piece.size()});
    if (core_.faults.hit(Fault::tls_garbage)) garble(from + random_.below(wire_.size() - from));
  }
  return taken;
}

void TlsPeer::note_early(std::string_view plaintext) {
  early_left_ -= plaintext.size();
  early_data_->bytes += plaintext.size();
  if (!end_.must_confirm()) early_sent_ += plaintext;
}

void TlsPeer::finish() {
  finish_said_ = true;
  if (!ready() || end_.early()) return;
  if (core_.faults.hit(Fault::tls_no_close_notify)) return;
  end_.say_close();
  if (!core_.faults.hit(Fault::tls_bytes_after_close)) return;
  for (std::uint64_t count = random_.between(1, 300); count != 0; --count)
    end_.own() += static_cast<char>(random_.next());
}

}  // namespace ringside::sim
