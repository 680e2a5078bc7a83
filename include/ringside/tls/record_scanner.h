// Follows the framing of TLS records in a stream of bytes (RFC 8446 §5.1), without looking inside.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ringside::tls {

inline constexpr std::size_t record_header_bytes = 5;

// Part of an engine, one a direction.
class RecordScanner {
 public:
  static constexpr std::size_t nonce_bytes = 8;

  // The next bytes of the stream, in pieces of any size.
  void pass(std::span<const char> bytes) {
    while (!bytes.empty())
      bytes = bytes.subspan(header_bytes_ < record_header_bytes ? pass_header(bytes)
                                                                : pass_body(bytes));
  }

  // How many bytes certainly belong to the record that has begun: the rest of its header, or the
  // rest of its body. 0: between two records.
  std::size_t bytes_to_boundary() const {
    if (header_bytes_ == 0) return 0;
    if (header_bytes_ < record_header_bytes) return record_header_bytes - header_bytes_;
    return body_left_;
  }

  // The first 8 bytes of the last record's body: in TLS 1.2 with GCM that is the explicit nonce
  // (RFC 5288 §3), big-endian.
  const std::array<unsigned char, nonce_bytes>& nonce() const { return nonce_; }

 private:
  std::size_t pass_header(std::span<const char> bytes) {
    const std::size_t some = std::min(record_header_bytes - header_bytes_, bytes.size());
    for (std::size_t i = 0; i < some; ++i) {
      // Only the length counts: its two bytes are the last ones.
      body_left_ = ((body_left_ << 8) | static_cast<unsigned char>(bytes[i])) & 0xffffU;
    }
    header_bytes_ += static_cast<std::uint8_t>(some);
    nonce_have_ = 0;
    end_if_whole();
    return some;
  }
  std::size_t pass_body(std::span<const char> bytes) {
    const std::size_t some = std::min<std::size_t>(body_left_, bytes.size());
    for (std::size_t i = 0; i < some && nonce_have_ < nonce_bytes; ++i)
      nonce_[nonce_have_++] = static_cast<unsigned char>(bytes[i]);
    body_left_ -= static_cast<std::uint32_t>(some);
    end_if_whole();
    return some;
  }
  void end_if_whole() {
    if (header_bytes_ == record_header_bytes && body_left_ == 0) header_bytes_ = 0;
  }

  std::array<unsigned char, nonce_bytes> nonce_{};
  std::uint32_t body_left_ = 0;
  std::uint8_t header_bytes_ = 0;
  std::uint8_t nonce_have_ = 0;
};

}  // namespace ringside::tls
