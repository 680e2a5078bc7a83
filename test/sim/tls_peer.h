// TLS of a scripted peer, and how it misbehaves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "core.h"
#include "early_data.h"
#include "tls_end.h"

namespace ringside::sim {

// Owner: a PeerConnection, which moves the bytes.
class TlsPeer {
 public:
  // A client that sends early data: what it draws from, and where it tells of it.
  struct Early {
    Random random;
    std::shared_ptr<EarlyData> state;
  };
  TlsPeer(Core& core, TlsEnd::Role role, bool h2 = false, const Early* early = nullptr);

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
  bool ready() const { return end_.can_send() && !cut_ && (!end_.early() || early_left_ != 0); }
  // What it sends now is early data.
  bool early() const { return end_.early(); }
  // It has yet to end the handshake, and does so then; `never_ns`: it does not.
  bool must_confirm() const { return end_.must_confirm() && !cut_; }
  std::uint64_t confirms_at_ns() const { return confirms_at_ns_; }
  void confirm();
  // Makes one record, or several, of some of it; how many bytes were taken.
  std::size_t seal(std::string_view plaintext);
  // Not while early data may have to be sent again.
  bool may_finish() const { return early_data_ == nullptr || established(); }
  // As the end of what it sends. To be called once.
  void finish();
  bool finished() const { return finish_said_; }
  // It goes away here, in the middle of whatever is under way.
  bool cut() const { return cut_ && drained(); }
  bool cut_by_reset() const { return cut_by_reset_; }

  // ---- what it hears

  using Event = TlsEnd::Event;
  Event hear(std::string_view bytes, std::size_t* taken);
  const std::string& data() { return end_.data(); }
  bool established() const { return end_.established(); }
  bool peer_ended() const { return end_.ended(); }
  // It failed over bytes that are no record, rather than by an alert.
  bool heard_nonsense() const { return end_.failed() && end_.peer_alert() == 0; }

 private:
  bool end_own_empty() const { return const_cast<TlsEnd&>(end_).own().empty(); }
  void draw_handshake();
  void draw_early();
  void heard_handshake();
  void note_early(std::string_view plaintext);
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
  std::shared_ptr<EarlyData> early_data_;  // null: it sends none
  Random early_random_{0};
  std::string early_sent_;  // until it is known whether it has to be sent again
  std::size_t early_left_ = 0;
  std::uint64_t confirms_at_ns_ = 0;
  unsigned messages_left_ = 30;  // that nobody asked for: 64 are too many for the proxy
  bool small_records_ = false;
  bool cut_ = false;
  bool cut_by_reset_ = false;
  bool finish_said_ = false;
};

}  // namespace ringside::sim
