// TLS of a scripted peer, and how it misbehaves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "core.h"
#include "tls_end.h"

namespace ringside::sim {

// Owner: a PeerConnection, which moves the bytes.
class TlsPeer {
 public:
  TlsPeer(Core& core, TlsEnd::Role role, bool h2 = false);

  // ---- what it wants to send

  // The bytes that may leave now. Empty: nothing to say, or it stalls (then woken by `stalls_for`).
  std::string_view wire();
  // So many bytes have; how many of plaintext are in the records that are out whole by that.
  std::size_t left(std::size_t bytes);
  // Nothing of it will leave.
  void drop();
  // Until then nothing leaves; 0: it does not stall.
  std::uint64_t stalled_until_ns() const { return stalled_until_ns_; }
  // All that was sealed has left.
  bool drained() const { return at_ == wire_.size() && end_own_empty(); }
  bool ready() const { return end_.can_send() && !cut_; }
  // Makes one record, or several, of some of it; how many bytes were taken.
  std::size_t seal(std::string_view plaintext);
  // As the end of what it sends. To be called once.
  void finish();
  bool finished() const { return finish_said_; }
  // It goes away here, in the middle of whatever is under way.
  bool cut() const { return cut_ && drained(); }
  bool cut_by_reset() const { return cut_by_reset_; }

  // ---- what it hears

  using Event = TlsEnd::Event;
  Event hear(std::string_view bytes, std::size_t* taken) { return end_.hear(bytes, taken); }
  const std::string& data() { return end_.data(); }
  bool established() const { return end_.established(); }
  bool peer_ended() const { return end_.ended(); }
  // It failed over bytes that are no record, rather than by an alert.
  bool heard_nonsense() const { return end_.failed() && end_.peer_alert() == 0; }

 private:
  bool end_own_empty() const { return const_cast<TlsEnd&>(end_).own().empty(); }
  void draw_handshake();
  void fetch();
  void say_more();
  void misbehave();
  void garble(std::size_t at);

  Core& core_;
  Random random_;
  TlsEnd end_;
  std::string wire_;
  std::size_t at_ = 0;
  std::uint64_t passed_ = 0;  // bytes of the wire so far
  struct Sealed {
    std::uint64_t end;  // of its record, as `passed_`
    std::size_t plaintext;
  };
  std::deque<Sealed> sealed_;
  // Where in its handshake it does what; `never` otherwise.
  static constexpr std::uint64_t never = ~std::uint64_t{0};
  std::uint64_t stall_at_ = never;
  std::uint64_t cut_at_ = never;
  std::uint64_t alert_at_ = never;
  std::uint64_t garble_at_ = never;
  std::uint64_t stalled_until_ns_ = 0;
  unsigned messages_left_ = 30;  // that nobody asked for: 64 are too many for the proxy
  bool small_records_ = false;
  bool cut_ = false;
  bool cut_by_reset_ = false;
  bool finish_said_ = false;
};

}  // namespace ringside::sim
