#include "ringside/tls/kernel_keys.h"

#include <linux/tls.h>
#include <openssl/crypto.h>

#include <cstring>

namespace ringside::tls {

namespace {

// The three structures have the same fields, of different sizes.
template <typename Info>
std::size_t fill(const KernelKeys& keys, std::uint16_t cipher, unsigned char* out) {
  static_assert(sizeof(Info) <= KernelKeys::crypto_info_bytes_max);
  Info info{};
  info.info.version = static_cast<std::uint16_t>(keys.version);
  info.info.cipher_type = cipher;
  std::memcpy(info.key, keys.key.data(), sizeof info.key);
  // ChaCha20 has a salt of no bytes and all 12 in `iv`.
  constexpr std::size_t salt_bytes = KernelKeys::iv_bytes - sizeof info.iv;
  std::memcpy(info.salt, keys.iv.data(), salt_bytes);
  std::memcpy(info.iv, keys.iv.data() + salt_bytes, sizeof info.iv);
  for (std::size_t i = 0; i < sizeof info.rec_seq; ++i)
    info.rec_seq[i] = static_cast<unsigned char>(keys.sequence >> (8 * (7 - i)));
  std::memcpy(out, &info, sizeof info);
  OPENSSL_cleanse(&info, sizeof info);
  return sizeof info;
}

}  // namespace

KernelKeys::~KernelKeys() {
  cleanse(key);
  cleanse(iv);
}

std::size_t KernelKeys::crypto_info(std::span<unsigned char, crypto_info_bytes_max> out) const {
  switch (aead) {
    case Aead::aes128_gcm:
      return fill<tls12_crypto_info_aes_gcm_128>(*this, TLS_CIPHER_AES_GCM_128, out.data());
    case Aead::aes256_gcm:
      return fill<tls12_crypto_info_aes_gcm_256>(*this, TLS_CIPHER_AES_GCM_256, out.data());
    case Aead::chacha20_poly1305:
      break;
  }
  return fill<tls12_crypto_info_chacha20_poly1305>(*this, TLS_CIPHER_CHACHA20_POLY1305, out.data());
}

void cleanse(std::span<unsigned char> secret) {
  OPENSSL_cleanse(secret.data(), secret.size());
}

}  // namespace ringside::tls
