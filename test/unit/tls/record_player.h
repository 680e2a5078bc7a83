// Seals and opens records as a kernel does that got a tls12_crypto_info_*: by EVP alone.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "peer.h"

namespace ringside::tls::test {

class RecordPlayer {
 public:
  // What setsockopt(SOL_TLS, TLS_TX or TLS_RX) was given.
  explicit RecordPlayer(std::string_view crypto_info);

  // A whole record.
  std::string seal(std::uint8_t type, std::string_view plaintext);
  // Takes the record at the front of `wire`. False when it is not whole or not authentic.
  bool open(std::string& wire, std::uint8_t& type, std::string& plaintext);
  // All of them, which must be application data.
  std::string open_data(std::string wire);

 private:
  bool tls13() const { return version_ == 0x0304; }
  bool explicit_nonce() const { return !tls13() && salt_bytes_ != 0; }
  std::array<unsigned char, 12> nonce(const unsigned char* explicit_part) const;
  std::string associated(std::uint8_t type, std::size_t bytes) const;

  const EVP_CIPHER* cipher_ = nullptr;
  std::uint16_t version_ = 0;
  std::size_t salt_bytes_ = 0;
  std::string key_;
  std::array<unsigned char, 12> iv_{};
  std::uint64_t sequence_ = 0;
};

}  // namespace ringside::tls::test
