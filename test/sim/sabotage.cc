#include "sabotage.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "ringside/ring/ring.h"

namespace ringside::sim {

namespace {

constexpr std::array<std::string_view, static_cast<std::size_t>(Sabotage::count)> names = {
    "none",
    "leak-lease",
    "leak-arena",
    "leak-slab",
    "leak-descriptor",
    "leak-operation",
    "drop-log-record",
    "double-log-record",
    "wrong-end-reason",
    "cross-bodies",
    "corrupt-request",
    "drop-bytes",
    "early-reuse",
    "stop-progress",
    "trust-truncation",
    "end-silently",
    "leak-layer",
    "hide-early-data",
    "trust-early-data",
    "ask-again",
    "allow-streams",
    "allow-bytes",
    "refuse-served",
};
static_assert(!names.back().empty());

// The body in a segment that begins with the head of a scripted message; npos when there is none.
std::size_t body_of(const std::string& bytes, std::string_view first) {
  if (!bytes.starts_with(first)) return std::string::npos;
  const std::size_t end = bytes.find("\r\n\r\n");
  return end == std::string::npos || end + 4 >= bytes.size() ? std::string::npos : end + 4;
}

bool framed_by(const std::string& bytes, std::string_view field) {
  return bytes.substr(0, bytes.find("\r\n\r\n")).find(field) != std::string::npos;
}

// Keeps the body of one response and puts it into a later one.
void cross(std::string& bytes, std::string& kept) {
  if (!framed_by(bytes, "Content-Length: ")) return;
  const std::size_t at = body_of(bytes, "HTTP/1.1 200 Scripted");
  if (at == std::string::npos || bytes.size() - at < 16) return;
  if (kept.empty()) {
    kept = bytes.substr(at);
    return;
  }
  const std::size_t count = std::min(kept.size(), bytes.size() - at);
  bytes.replace(at, count, kept, 0, count);
}

void corrupt(std::string& bytes) {
  if (!framed_by(bytes, "Content-Length: ")) return;
  const std::size_t at = body_of(bytes, "POST ");
  if (at != std::string::npos) bytes[at] = static_cast<char>(bytes[at] ^ 1);
}

// A body that lasts until the end of the connection is the one whose length nobody knows.
void drop(std::string& bytes) {
  if (framed_by(bytes, "Content-Length: ") || framed_by(bytes, "Transfer-Encoding: ")) return;
  if (body_of(bytes, "HTTP/1.1 200 Scripted") != std::string::npos) bytes.pop_back();
}

void hide(std::string& bytes) {
  constexpr std::string_view field = "Early-Data: 1\r\n";
  const std::size_t at = bytes.find(field);
  if (at != std::string::npos && framed_by(bytes, "Via: ")) bytes.erase(at, field.size());
}

// The first SETTINGS of a server, which begin what it says. Those of a client have its preface in
// front of them.
void raise_setting(std::string& bytes, char name, char value) {
  constexpr std::size_t frame_header = 9;
  constexpr std::size_t entry_bytes = 6;
  if (bytes.size() < frame_header || !bytes.starts_with(std::string_view("\0\0", 2))) return;
  if (bytes[3] != '\4' || bytes[4] != '\0' || bytes[8] != '\0') return;
  const std::size_t end = frame_header + static_cast<unsigned char>(bytes[2]);
  for (std::size_t at = frame_header; at + entry_bytes <= std::min(end, bytes.size());
       at += entry_bytes) {
    if (bytes[at] == '\0' && bytes[at + 1] == name) bytes[at + 3] = value;
  }
}

// RST_STREAM with INTERNAL_ERROR says REFUSED_STREAM.
void refuse_served(std::string& bytes) {
  constexpr std::string_view header("\0\0\4\3\0\0\0\0", 8);
  constexpr std::string_view code("\0\0\0\2", 4);
  constexpr std::size_t code_at = 9;
  for (std::size_t at = bytes.find(header); at != std::string::npos;
       at = bytes.find(header, at + 1)) {
    if (bytes.compare(at + code_at, code.size(), code) == 0) bytes[at + code_at + 3] = '\7';
  }
}

}  // namespace

std::string_view to_string(Sabotage sabotage) {
  return names[static_cast<std::size_t>(sabotage)];
}

Sabotage sabotage_named(std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<Sabotage>(i);
  }
  return Sabotage::count;
}

// Waits for an event that never comes; or keeps its ring busy for ever.
class Saboteur::Idler final : public ring::Completer, public ring::Deferred {
 public:
  Idler(ring::Ring& ring, SimWorld& world) : ring_(ring), world_(world) {}
  void wait() {
    ring_.attach(*this);
    ring_.read(*this, 1, world_.kernel().open_event(), &count_, sizeof(count_));
  }
  void spin() { ring_.defer(*this); }
  void on_complete(std::uint8_t, const ring::Completion&) override {}
  void run_deferred() override { spin(); }

 private:
  ring::Ring& ring_;
  SimWorld& world_;
  std::uint64_t count_ = 0;
};

Saboteur::Saboteur(Sabotage how, SimWorld& world, Referee& referee)
    : how_(how), world_(world), referee_(referee) {}
Saboteur::~Saboteur() = default;

void Saboteur::begin(ScriptedTls& tls) {
  tls.trusts_truncation = how_ == Sabotage::trust_truncation;
  tls.ends_silently = how_ == Sabotage::end_silently;
  tls.trusts_unsafe_early = how_ == Sabotage::trust_early_data;
  if (how_ == Sabotage::leak_layer) ++tls.layers;
  if (!tls.trusts_truncation) return;
  world_.faults().set(Fault::tls_small_records, 1);
  world_.faults().set(Fault::tls_truncated, 16);
}

void Saboteur::begin(const std::vector<std::unique_ptr<proxy::Worker>>& workers, ScriptedTls* tls) {
  if (tls != nullptr) begin(*tls);
  auto& tamper = world_.network().medium().tamper;
  switch (how_) {
    case Sabotage::leak_descriptor:
      world_.files().open(std::make_shared<EventFile>());
      break;
    case Sabotage::leak_operation:
      idler_ = std::make_unique<Idler>(workers[0]->ring(), world_);
      idler_->wait();
      break;
    case Sabotage::drop_log_record:
      referee_.tamper(Referee::Tamper::drop_record);
      break;
    case Sabotage::double_log_record:
      referee_.tamper(Referee::Tamper::double_record);
      break;
    case Sabotage::wrong_end_reason:
      referee_.tamper(Referee::Tamper::wrong_reason);
      break;
    case Sabotage::cross_bodies:
      tamper = [kept = std::string()](std::string& bytes) mutable { cross(bytes, kept); };
      break;
    case Sabotage::corrupt_request:
      tamper = corrupt;
      break;
    case Sabotage::drop_bytes:
      tamper = drop;
      break;
    case Sabotage::hide_early_data:
      tamper = hide;
      break;
    case Sabotage::ask_again:
      world_.faults().set(Fault::too_early, 1);
      referee_.tamper(Referee::Tamper::ask_again);
      break;
    case Sabotage::allow_streams:
      world_.faults().set(Fault::h2_few_streams, 1);
      tamper = [](std::string& bytes) { raise_setting(bytes, '\3', '\1'); };
      break;
    case Sabotage::allow_bytes:
      world_.faults().set(Fault::h2_small_windows, 1);
      tamper = [](std::string& bytes) { raise_setting(bytes, '\4', '\1'); };
      break;
    case Sabotage::refuse_served:
      tamper = refuse_served;
      break;
    case Sabotage::early_reuse:
      world_.sim_kernel().ring(0).buffers().hand_out_twice();
      break;
    case Sabotage::stop_progress:
      idler_ = std::make_unique<Idler>(workers[0]->ring(), world_);
      world_.clock().after(300 * millisecond_ns, [this] {
        world_.network().medium().frozen = true;
        idler_->spin();
      });
      break;
    default:
      break;
  }
}

proxy::Worker::Holdings Saboteur::holdings(const proxy::Worker& worker) const {
  proxy::Worker::Holdings held = worker.holdings();
  if (how_ == Sabotage::leak_lease) ++held.leases;
  if (how_ == Sabotage::leak_arena) ++held.arena_chunks;
  if (how_ == Sabotage::leak_slab) ++held.exchanges;
  return held;
}

}  // namespace ringside::sim
