// A record layer whose records a test can write down: no cipher, and every failure on demand.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ringside/net/record_layer.h"

namespace ringside::net::test {

// A record is a type, a length and so many bytes, which are the plaintext with its case changed.
inline std::string record(std::string_view plaintext) {
  std::string out = {'d', static_cast<char>(plaintext.size())};
  for (const char c : plaintext)
    out += static_cast<char>(c ^ 0x20);
  return out;
}
inline const std::string close_record("c\0", 2);
inline const std::string bad_record("?\0", 2);
inline const std::string alert("a\0", 2);  // what a failure has to say

// The handshake: the client says "hi", the server "yo", the client "ok". Who has read the last word
// meant for it is secured; a server with `early_data`, when a record comes before "ok".
class ScriptedLayer final : public RecordLayer {
 public:
  static constexpr std::size_t record_max = 100;  // plaintext bytes

  ScriptedLayer(SlicePool& pool, bool client) : RecordLayer(pool), client_(client) {
    if (client) own_ = "hi";
  }

  Opened open(std::string_view bytes, std::span<char> room) override {
    Opened out;
    while (true) {
      const std::size_t some = std::min(plain_.size(), room.size() - out.plaintext);
      std::copy_n(plain_.data(), some, room.data() + out.plaintext);
      plain_.erase(0, some);
      out.plaintext += some;
      out.secured |= (established || early_) && !std::exchange(told_, established || early_);
      if (early_ && out.plaintext != 0) return with(out, Status::more);
      if (early_ && established) {
        early_ = false;
        out.confirmed = true;
        return with(out, out.consumed == bytes.size() ? Status::need_input : Status::more);
      }
      if (!plain_.empty()) return with(out, Status::more);
      if (failed) return with(out, Status::failed);
      if (closed) return with(out, Status::ended);
      if (out.consumed == bytes.size()) return with(out, Status::need_input);
      take(bytes[out.consumed++]);
    }
  }
  bool early() const override { return early_; }
  Status end_of_input() override {
    ++ends;
    if (!closed) failed = true;
    return closed ? Status::ended : Status::failed;
  }

  Sealed seal(std::span<const std::string_view> pieces, std::span<char> room) override {
    EXPECT_TRUE(can_seal());
    if (fail_seal) return {};
    std::string all;
    for (const std::string_view piece : pieces)
      all += piece;
    std::string wire = std::exchange(own_, {});
    Sealed out;
    for (unsigned made = 0; out.taken < all.size() && made < records_a_seal; ++made) {
      const std::string next = record(all.substr(out.taken, record_max));
      if (wire.size() + next.size() > room.size()) break;
      wire += next;
      out.taken += next.size() - 2;
    }
    std::ranges::copy(wire, room.data());
    out.produced = wire.size();
    return out;
  }
  bool can_seal() const override { return (established || early_) && !failed && !close_said; }
  std::size_t own_bytes() const override { return own_.size(); }
  std::size_t take_own(std::span<char> room) override {
    const std::string own = std::exchange(own_, {});
    std::ranges::copy(own, room.data());
    return own.size();
  }
  void close() override {
    if (established && !failed && !std::exchange(close_said, true)) own_ += close_record;
  }
  void rest() override { ++rests; }
  // Something that it has to say by itself, with the next thing that comes.
  void say(std::string_view bytes) { own_ += bytes; }

  // ---- kernel TLS, with `kernel`

  void on_socket(SysPort&, int fd) override {
    calls.push_back("attach " + std::to_string(fd));
    moving_ = kernel;
  }
  bool hand_over_sending(SysPort&, int) override {
    if (!established || tx) return tx;
    calls.push_back("tx");
    EXPECT_EQ(own_, "") << "it would follow what the kernel sends";
    tx = !refuse_tx;
    if (refuse_tx) give_up();
    return tx;
  }
  bool holds_receiving() const override { return moving_ && established && !client_ && !tx; }
  bool wants_to_hand_over() const override { return moving_ && tx; }
  std::size_t bytes_to_hand_over() const override {
    if (partial_.size() < 2) return partial_.size();
    return 2 + static_cast<unsigned char>(partial_[1]) - partial_.size();
  }
  bool hand_over_receiving(SysPort&, int) override {
    calls.push_back("rx");
    EXPECT_EQ(partial_, "") << "not between two records";
    EXPECT_EQ(plain_, "") << "it would come after what the kernel opens";
    rx = !refuse_rx;
    moving_ = false;
    if (refuse_rx) give_up();
    return rx;
  }
  bool refused() const override { return refused_; }
  msghdr* control_message() override {
    if (no_memory) return nullptr;
    piece_ = {.iov_base = control_bytes, .iov_len = sizeof control_bytes};
    message_ = {};
    message_.msg_iov = &piece_;
    message_.msg_iovlen = 1;
    return &message_;
  }
  Control on_control(SysPort&, int, std::size_t bytes) override {
    controls.push_back(bytes);
    if (control.status == Status::ended) closed = true;
    return control;
  }
  msghdr* own_message() override {
    if (to_say.empty()) return nullptr;
    own_piece_ = {.iov_base = to_say.data(), .iov_len = to_say.size()};
    own_message_ = {};
    own_message_.msg_iov = &own_piece_;
    own_message_.msg_iovlen = 1;
    return &own_message_;
  }
  int said(SysPort&, int) override {
    calls.push_back("said " + std::exchange(to_say, {}));
    return said_result;
  }
  msghdr* closing_message() override {
    if (std::exchange(close_said, true)) return nullptr;
    closing_piece_ = {.iov_base = farewell_, .iov_len = 3};
    closing_ = {};
    closing_.msg_iov = &closing_piece_;
    closing_.msg_iovlen = 1;
    return &closing_;
  }

  // The state.
  bool established = false;
  bool failed = false;
  bool closed = false;      // by the peer
  bool close_said = false;  // by us
  bool tx = false;
  bool rx = false;
  unsigned ends = 0;   // calls of end_of_input
  unsigned rests = 0;  // of rest
  std::vector<std::string> calls;
  std::vector<std::size_t> controls;

  // What is to happen.
  bool early_data = false;
  unsigned records_a_seal = 1000;
  bool fail_seal = false;
  bool kernel = false;  // may take over
  bool refuse_tx = false;
  bool refuse_rx = false;
  bool required = false;  // that it takes over
  bool no_memory = false;
  Control control;      // what the next one is
  std::string to_say;   // the own_message()
  int said_result = 0;  // what becomes of it
  char control_bytes[16] = {};

 private:
  static Opened with(Opened opened, Status status) {
    opened.status = status;
    return opened;
  }
  void give_up() {
    moving_ = false;
    refused_ = required;
  }
  void fail() {
    failed = true;
    own_ += alert;
  }
  void take(char byte) {
    partial_ += byte;
    const bool early = early_data && heard_ && partial_[0] == 'd';
    if (!established && !early) return take_word(client_ ? "yo" : heard_ ? "ok" : "hi");
    if (partial_.size() < 2) return;
    const auto bytes = static_cast<unsigned char>(partial_[1]);
    if (partial_.size() < 2U + bytes) return;
    const std::string whole = std::exchange(partial_, {});
    early_ = !established;
    if (whole[0] == 'd')
      plain_ = record(std::string_view(whole).substr(2)).substr(2);
    else if (whole[0] == 'c')
      closed = true;
    else if (whole[0] != 'i')  // to be ignored
      fail();
  }
  void take_word(std::string_view word) {
    if (!word.starts_with(partial_)) return fail();
    if (partial_ != word) return;
    partial_.clear();
    established = client_ || heard_;
    if (client_ || !heard_) own_ += client_ ? "ok" : "yo";
    heard_ = true;
  }

  const bool client_;
  bool heard_ = false;
  bool early_ = false;
  bool told_ = false;
  bool refused_ = false;
  std::string own_;
  std::string partial_;
  std::string plain_;
  msghdr message_{};
  iovec piece_{};
  msghdr closing_{};
  iovec closing_piece_{};
  msghdr own_message_{};
  iovec own_piece_{};
  char farewell_[4] = "bye";
};

}  // namespace ringside::net::test
