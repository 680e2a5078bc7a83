// Why a TLS connection cannot go on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ringside::tls {

// What an alert says (RFC 8446 §6), as a number: descriptions that nobody knows arrive too.
using AlertDescription = std::uint8_t;
inline constexpr AlertDescription alert_close_notify = 0;
inline constexpr AlertDescription alert_no_renegotiation = 100;

// Trivially copyable; owns nothing.
struct Failure {
  enum class Cause : std::uint8_t {
    none,
    peer_alert,         // the peer sent a fatal alert: `alert`
    protocol,           // the peer's bytes were refused: `reason`, and `alert` if one is to be sent
    plain_http,         // server role: the first bytes are those of an HTTP request in clear
    truncated,          // the stream ended without close_notify (RFC 8446 §6.1)
    too_many_messages,  // more KeyUpdates or the like than the limit allows
    write_after_handoff,  // OpenSSL had to answer under a key that the kernel has by now
    unknown_key,  // the peer goes on under a key that the kernel does not take; sending still works
    internal,     // OpenSSL failed by itself, for example for lack of memory: `reason`
  };

  Cause cause = Cause::none;
  bool during_handshake = false;
  bool has_alert = false;  // `alert` was received (peer_alert), or is among the bytes to be sent
  bool alert_to_send = false;  // `alert` is for the owner to send (AlertMessage): the kernel has TX
  AlertDescription alert = 0;
  // OpenSSL's words, never freed; null when it gave none.
  const char* reason = nullptr;

  explicit operator bool() const { return cause != Cause::none; }
};

// "unknown ca", "close notify"; "unknown" for numbers that have no name. Lives for ever.
std::string_view describe_alert(AlertDescription alert);

// One line for a log, such as "handshake: no shared cipher (alert sent: handshake failure)".
std::string describe(const Failure& failure);

}  // namespace ringside::tls
