// Records other than application data on a socket whose TLS the kernel does: how they are received
// and sent, and what they mean.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "ringside/tls/failure.h"
#include "ringside/tls/kernel_keys.h"

namespace ringside::tls {

// What the owner of a connection has to do after a control record.
struct ControlRecord {
  enum class Kind : std::uint8_t {
    data,        // none at all: application data
    ignored,     // a ticket, an alert without consequence: receiving goes on
    close,       // close_notify: no more data will come
    alert,       // fatal: `alert`. The connection is over
    key_update,  // the peer's next record has another key. Nothing may be received until the kernel
                 // has it (Handoff::renew_rx). `reply_requested`: nor may data be sent before a
                 // KeyUpdateMessage
    too_many,    // messages: the connection is to be closed
    unexpected,  // whatever else: the connection is to be closed
  };
  Kind kind = Kind::ignored;
  AlertDescription alert = 0;
  bool reply_requested = false;

  friend bool operator==(const ControlRecord&, const ControlRecord&) = default;
};

// Reads the control records of one connection in order. Handshake messages may be split over
// records, and share one (RFC 8446 §5.1). Owner: a stream; thread: its ring's.
class ControlParser {
 public:
  // As EngineOptions::messages_max: more messages than that are `too_many`.
  explicit ControlParser(Version version, unsigned messages_max = 64)
      : messages_left_(messages_max), version_(version) {}

  // `type`: the record's (RFC 8446 §5.1). `bytes`: the plaintext, whole or in parts.
  ControlRecord read(std::uint8_t type, std::span<const unsigned char> bytes);

 private:
  ControlRecord read_alert(std::span<const unsigned char> bytes) const;
  ControlRecord read_handshake(std::span<const unsigned char> bytes);
  ControlRecord read_key_update(std::span<const unsigned char> rest);

  unsigned messages_left_;
  std::uint32_t body_left_ = 0;
  std::uint32_t header_ = 0;      // type and length of a message, as far as they came
  std::uint8_t header_have_ = 0;  // 4: in the body
  Version version_;
};

// A message for recvmsg, and what it points to. Immovable; must stay in place until the operation
// is complete. One record at a time: never by multishot, which would run past a KeyUpdate.
class ControlReceive {
 public:
  // Control records are small; of a larger one the rest comes with the next call.
  static constexpr std::size_t bytes_max = 1024;

  ControlReceive() = default;
  ControlReceive(const ControlReceive&) = delete;
  ControlReceive& operator=(const ControlReceive&) = delete;

  // To be called before every use.
  msghdr* message();
  // After recvmsg returned `bytes` (> 0): the type that the kernel named, or nothing when it named
  // none (then the bytes are data).
  std::optional<std::uint8_t> type() const;
  std::span<const unsigned char> bytes(std::size_t received) const {
    return std::span<const unsigned char>(bytes_).first(received);
  }

 private:
  msghdr message_{};
  iovec piece_{};
  alignas(cmsghdr) std::array<unsigned char, CMSG_SPACE(1)> control_{};
  std::array<unsigned char, bytes_max> bytes_{};
};

// A control record for sendmsg, and what it points to. Immovable; must stay in place until the
// operation is complete. Never with MSG_MORE, which would hold it back.
class ControlMessage {
 public:
  static constexpr std::size_t bytes_max = 5;

  ControlMessage(const ControlMessage&) = delete;
  ControlMessage& operator=(const ControlMessage&) = delete;

  msghdr* message() { return &message_; }

 protected:
  ControlMessage(std::uint8_t type, std::span<const unsigned char> bytes);
  ~ControlMessage() = default;

 private:
  msghdr message_{};
  iovec piece_{};
  alignas(cmsghdr) std::array<unsigned char, CMSG_SPACE(1)> control_{};
  std::array<unsigned char, bytes_max> bytes_{};
};

class AlertMessage final : public ControlMessage {
 public:
  enum class Level : std::uint8_t { warning = 1, fatal = 2 };

  AlertMessage() : AlertMessage(Level::warning, alert_close_notify) {}
  AlertMessage(Level level, AlertDescription alert);
};

// The answer to a KeyUpdate that requests one: the last record under our present key.
class KeyUpdateMessage final : public ControlMessage {
 public:
  KeyUpdateMessage();
};

}  // namespace ringside::tls
