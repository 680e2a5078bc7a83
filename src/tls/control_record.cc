#include "ringside/tls/control_record.h"

#include <linux/tls.h>

#include <algorithm>

namespace ringside::tls {

namespace {

using Kind = ControlRecord::Kind;

// RFC 8446 §5.1, §4 and §6.2.
constexpr std::uint8_t type_alert = 21;
constexpr std::uint8_t type_handshake = 22;
constexpr std::uint8_t type_data = 23;
constexpr std::uint32_t message_ticket = 4;
constexpr std::uint32_t message_key_update = 24;
constexpr std::uint8_t level_warning = 1;
constexpr AlertDescription alert_user_canceled = 90;
constexpr std::uint8_t message_header_bytes = 4;

}  // namespace

ControlRecord ControlParser::read(std::uint8_t type, std::span<const unsigned char> bytes) {
  // A message that has begun must be whole before anything else comes (RFC 8446 §5.1).
  if (header_have_ != 0 && type != type_handshake) return {.kind = Kind::unexpected};
  if (type == type_data) return {.kind = Kind::data};
  if (bytes.empty()) return {.kind = Kind::unexpected};
  if (type == type_alert) return read_alert(bytes);
  // TLS 1.2 has no messages after the handshake but those of a renegotiation.
  if (type == type_handshake && version_ == Version::tls13) return read_handshake(bytes);
  return {.kind = Kind::unexpected};
}

ControlRecord ControlParser::read_alert(std::span<const unsigned char> bytes) const {
  if (bytes.size() != 2) return {.kind = Kind::unexpected};
  if (bytes[1] == alert_close_notify) return {.kind = Kind::close};
  // In TLS 1.3 the level says nothing (RFC 8446 §6).
  const bool harmless =
      version_ == Version::tls13 ? bytes[1] == alert_user_canceled : bytes[0] == level_warning;
  return {.kind = harmless ? Kind::ignored : Kind::alert, .alert = bytes[1]};
}

ControlRecord ControlParser::read_handshake(std::span<const unsigned char> bytes) {
  while (!bytes.empty()) {
    if (header_have_ < message_header_bytes) {
      header_ = (header_ << 8) | bytes[0];
      bytes = bytes.subspan(1);
      if (++header_have_ < message_header_bytes) continue;
      body_left_ = header_ & 0xffffffU;
      if (messages_left_ == 0) return {.kind = Kind::too_many};
      --messages_left_;
    } else {
      if (header_ >> 24 == message_key_update) return read_key_update(bytes);
      const std::size_t some = std::min<std::size_t>(body_left_, bytes.size());
      bytes = bytes.subspan(some);
      body_left_ -= static_cast<std::uint32_t>(some);
    }
    const std::uint32_t type = header_ >> 24;
    const bool known = type == message_ticket || (type == message_key_update && body_left_ == 1);
    if (!known) return {.kind = Kind::unexpected};
    if (body_left_ == 0) header_have_ = 0;
  }
  return {.kind = Kind::ignored};
}

// The last message under its key, so nothing may follow it in the record (RFC 8446 §5.1).
ControlRecord ControlParser::read_key_update(std::span<const unsigned char> rest) {
  header_have_ = 0;
  if (rest.size() != 1 || rest[0] > 1) return {.kind = Kind::unexpected};
  return {.kind = Kind::key_update, .reply_requested = rest[0] == 1};
}

msghdr* ControlReceive::message() {
  piece_ = {.iov_base = bytes_.data(), .iov_len = bytes_.size()};
  message_ = {};
  message_.msg_iov = &piece_;
  message_.msg_iovlen = 1;
  message_.msg_control = control_.data();
  message_.msg_controllen = control_.size();
  return &message_;
}

std::optional<std::uint8_t> ControlReceive::type() const {
  const cmsghdr* header = CMSG_FIRSTHDR(&message_);
  if (header == nullptr || header->cmsg_level != SOL_TLS ||
      header->cmsg_type != TLS_GET_RECORD_TYPE || header->cmsg_len < CMSG_LEN(1)) {
    return std::nullopt;
  }
  return *CMSG_DATA(header);
}

ControlMessage::ControlMessage(std::uint8_t type, std::span<const unsigned char> bytes) {
  std::ranges::copy(bytes, bytes_.begin());
  piece_ = {.iov_base = bytes_.data(), .iov_len = bytes.size()};
  message_.msg_iov = &piece_;
  message_.msg_iovlen = 1;
  message_.msg_control = control_.data();
  message_.msg_controllen = CMSG_LEN(1);
  cmsghdr* header = CMSG_FIRSTHDR(&message_);
  header->cmsg_level = SOL_TLS;
  header->cmsg_type = TLS_SET_RECORD_TYPE;
  header->cmsg_len = CMSG_LEN(1);
  *CMSG_DATA(header) = type;
}

AlertMessage::AlertMessage(Level level, AlertDescription alert)
    : ControlMessage(type_alert,
                     std::array<unsigned char, 2>{static_cast<unsigned char>(level), alert}) {}

KeyUpdateMessage::KeyUpdateMessage()
    : ControlMessage(type_handshake, std::array<unsigned char, 5>{message_key_update, 0, 0, 1, 0}) {
}

}  // namespace ringside::tls
