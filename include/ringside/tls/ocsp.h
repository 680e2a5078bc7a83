// What an authority says of a certificate (OCSP, RFC 6960), asked for and kept to be stapled
// (RFC 6066 §8).
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace ringside::tls {

// Seconds since 1970, given by the caller, so that validity can be tested.
using UnixSeconds = std::int64_t;

using Der = std::vector<unsigned char>;

// A response that was found to belong to its certificate, and to say that it is good.
struct Staple {
  Der response;
  UnixSeconds this_update = 0;
  UnixSeconds next_update = 0;  // not to be shown from then on
};

// What is stapled to one certificate at the moment. Shared by all rings; any thread. Its lock is
// held for as long as it takes to copy a pointer.
class StapleSlot {
 public:
  // Null: nothing.
  void put(std::shared_ptr<const Staple> staple) {
    const std::lock_guard lock(mutex_);
    staple_.swap(staple);  // the old one goes without the lock
  }
  std::shared_ptr<const Staple> get() const {
    const std::lock_guard lock(mutex_);
    return staple_;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Staple> staple_;
};

// Whom to ask about a certificate, and what.
struct OcspQuestion {
  std::string url;   // http://, as it is in the certificate, in visible ASCII
  std::string host;  // a name or an address, without brackets
  std::string port;  // a number
  std::string path;  // with its query
  Der certificate;
  Der issuer;
  Der request;  // without a nonce: responders answer from a cache (RFC 5019 §2.1.1)
};

struct OcspAnswer {
  bool revoked = false;
  std::string revoked_on;  // for people; with `revoked`
  Staple staple;           // with `revoked`, not to be stapled: its times tell when to ask again
};

// Takes a response to `question` that its issuer signed, or somebody whom it has charged with that
// (RFC 6960 §4.2.2.2), and that is good at `now`. Otherwise says why not, as in "expired on ...".
std::expected<OcspAnswer, std::string> read_ocsp_answer(std::span<const unsigned char> bytes,
                                                        const OcspQuestion& question,
                                                        UnixSeconds now);

// One question, put by OpenSSL's HTTP client. Owner and thread: whoever asks, never a ring.
class OcspTransfer {
 public:
  static constexpr std::size_t response_bytes_max = 65'536;

  enum class Step : std::uint8_t { wants_to_read, wants_to_write, done, failed };

  // `socket` is connected and does not block; it stays the caller's, and open for as long as this
  // lives. Null when there is no memory.
  static std::unique_ptr<OcspTransfer> make(int socket, const OcspQuestion& question);
  ~OcspTransfer();
  OcspTransfer(const OcspTransfer&) = delete;
  OcspTransfer& operator=(const OcspTransfer&) = delete;

  // As far as the socket allows; to be called again when it is ready, until `done` or `failed`.
  Step advance();
  const Der& response() const { return response_; }        // once done
  const std::string& failure() const { return failure_; }  // once failed

 private:
  struct Parts;
  explicit OcspTransfer(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
  Der response_;
  std::string failure_;
};

}  // namespace ringside::tls
