// The keys of one direction in the form that the kernel takes (SOL_TLS, kernel 5.11 for all three
// ciphers), and how they are derived.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "ringside/base/error.h"

namespace ringside::tls {

enum class Version : std::uint16_t { tls12 = 0x0303, tls13 = 0x0304 };
enum class Role : std::uint8_t { server, client };
enum class Aead : std::uint8_t { aes128_gcm, aes256_gcm, chacha20_poly1305 };

// Size of the key in bytes.
constexpr std::size_t key_bytes(Aead aead) {
  return aead == Aead::aes128_gcm ? 16 : 32;
}

// A value; cleansed when it goes.
class KernelKeys {
 public:
  static constexpr std::size_t iv_bytes = 12;
  static constexpr std::size_t crypto_info_bytes_max = 56;  // tls12_crypto_info_aes_gcm_256

  KernelKeys() = default;
  ~KernelKeys();
  KernelKeys(const KernelKeys&) = default;
  KernelKeys& operator=(const KernelKeys&) = default;

  // Writes the tls12_crypto_info_* of these keys; returns how many bytes of `out` it takes. The
  // caller cleanses `out`.
  std::size_t crypto_info(std::span<unsigned char, crypto_info_bytes_max> out) const;

  Version version = Version::tls13;
  Aead aead = Aead::aes128_gcm;
  // The first key_bytes(aead) count.
  std::array<unsigned char, 32> key{};
  // TLS 1.3 and ChaCha20: all of it. TLS 1.2 with GCM: the salt in the first 4 bytes, then, when
  // sending, the explicit nonce of the next record; ignored when receiving.
  std::array<unsigned char, iv_bytes> iv{};
  // Of the next record.
  std::uint64_t sequence = 0;
};

// Overwrites a secret in a way that is not optimised away.
void cleanse(std::span<unsigned char> secret);

}  // namespace ringside::tls
