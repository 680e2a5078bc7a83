// The keys of session tickets (RFC 5077, RFC 8446 §4.6.1), shared by all rings.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ringside::tls {

// One key with its name. Cleared when it goes.
struct TicketKey {
  static constexpr std::size_t name_bytes = 16;
  static constexpr std::size_t bytes = 80;

  std::array<unsigned char, name_bytes> name{};
  std::array<unsigned char, 32> cipher{};  // AES-256-CBC
  std::array<unsigned char, 32> mac{};     // HMAC-SHA-256

  TicketKey() = default;
  TicketKey(const TicketKey&) = default;
  TicketKey& operator=(const TicketKey&) = default;
  ~TicketKey();
};

// The key that seals new tickets, and older ones that still open theirs (which are then renewed).
// All keys are derived for one binding (Credentials::session_binding), so a file of keys that two
// entries share opens no ticket of the other's.
// Threads: `current` and `find` on any, without a lock; `rotate` and `reload` on one, the control
// thread.
class TicketKeys {
 public:
  // The most keys that a file can hold.
  static constexpr std::size_t keys_max = 8;

  // Keys made at random; `rotate` makes the next. Times are in milliseconds of any steady clock. A
  // ticket should live no longer than `period_ms`, since the key before the current one is the last
  // that is kept. Fails when the machine has no randomness.
  static std::expected<std::unique_ptr<TicketKeys>, std::string> random(
      std::span<const unsigned char> binding, std::uint64_t period_ms, std::uint64_t now_ms);

  // Keys from a file, so that several hosts open each other's tickets: keys of 80 bytes, or keys of
  // 48, one behind the other (a size that is both is taken as keys of 80). The first 16 bytes of a
  // key are its name. The first key seals. To rotate, put a new key in front and drop the last; let
  // every host know a key (behind the first) before any host seals with it.
  static std::expected<std::unique_ptr<TicketKeys>, std::string> from_file(
      std::span<const unsigned char> binding, const std::string& file);

  ~TicketKeys();
  TicketKeys(const TicketKeys&) = delete;
  TicketKeys& operator=(const TicketKeys&) = delete;

  // Makes a new key if the period is over; the current one becomes the previous one. False when
  // nothing changed: it was not time, the keys are from a file, or there was no randomness (the old
  // key then stays, and the next call tries again).
  bool rotate(std::uint64_t now_ms);

  // Reads the file again; the old keys stay when that fails. Nothing to do for random keys.
  std::expected<void, std::string> reload();

  // The key for new tickets.
  TicketKey current() const;
  // False when there is none of that name. `is_current` tells whether it is the one that seals.
  bool find(std::span<const unsigned char, TicketKey::name_bytes> name, TicketKey& key,
            bool& is_current) const;

  const std::string& file() const { return file_; }

 private:
  using Words = std::array<std::uint64_t, TicketKey::bytes / 8>;

  TicketKeys() = default;
  // Replaces all keys in one step, as readers see it.
  void publish(std::span<const TicketKey> keys);
  TicketKey load(std::size_t index) const;

  std::vector<unsigned char> binding_;
  std::string file_;
  std::uint64_t period_ms_ = 0;
  std::uint64_t rotated_ms_ = 0;
  // A sequence lock: odd while keys are being replaced. Keys are atomic words, so a reader that
  // meets a writer reads nonsense, notices, and reads again; nothing is undefined.
  std::atomic<std::uint64_t> sequence_{0};
  std::atomic<std::size_t> count_{0};
  std::array<std::array<std::atomic<std::uint64_t>, TicketKey::bytes / 8>, keys_max> words_{};
};

}  // namespace ringside::tls
