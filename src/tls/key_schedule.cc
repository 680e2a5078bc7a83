#include "key_schedule.h"

#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <algorithm>
#include <array>
#include <memory>

#include "openssl.h"

namespace ringside::tls {

namespace {

using Context = std::unique_ptr<EVP_KDF_CTX, Deleter<EVP_KDF_CTX_free>>;

// Fetched once and kept: looking an algorithm up takes a lock that all threads share.
Context hkdf() {
  static EVP_KDF* const kdf = EVP_KDF_fetch(nullptr, "HKDF", nullptr);
  return Context(EVP_KDF_CTX_new(kdf));
}
Context tls1_prf() {
  static EVP_KDF* const kdf = EVP_KDF_fetch(nullptr, "TLS1-PRF", nullptr);
  return Context(EVP_KDF_CTX_new(kdf));
}

OSSL_PARAM digest_param(Digest digest) {
  // The parameter is read only; the type knows no const.
  const char* name = digest == Digest::sha256 ? "SHA2-256" : "SHA2-384";
  return OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, const_cast<char*>(name), 0);
}

OSSL_PARAM octets(const char* name, Secret bytes) {
  return OSSL_PARAM_construct_octet_string(name, const_cast<unsigned char*>(bytes.data()),
                                           bytes.size());
}

}  // namespace

bool expand_label(Digest digest, Secret secret, std::string_view label,
                  std::span<unsigned char> out) {
  constexpr std::string_view prefix = "tls13 ";
  // struct HkdfLabel: length, label with its length, context with its length.
  std::array<unsigned char, 64> info{};
  if (4 + prefix.size() + label.size() > info.size() || out.size() > 64) return false;
  auto at = info.begin();
  *at++ = 0;
  *at++ = static_cast<unsigned char>(out.size());
  *at++ = static_cast<unsigned char>(prefix.size() + label.size());
  at = std::copy(prefix.begin(), prefix.end(), at);
  at = std::copy(label.begin(), label.end(), at);
  *at++ = 0;
  int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
  const std::array params{
      digest_param(digest),
      OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
      octets(OSSL_KDF_PARAM_KEY, secret),
      octets(OSSL_KDF_PARAM_INFO, {info.data(), static_cast<std::size_t>(at - info.begin())}),
      OSSL_PARAM_construct_end(),
  };
  Context context = hkdf();
  return context && EVP_KDF_derive(context.get(), out.data(), out.size(), params.data()) == 1;
}

bool derive_tls13(Digest digest, Secret secret, KernelKeys& keys) {
  std::span<unsigned char> key(keys.key.data(), key_bytes(keys.aead));
  return expand_label(digest, secret, "key", key) && expand_label(digest, secret, "iv", keys.iv);
}

bool next_secret(Digest digest, std::span<unsigned char> secret) {
  std::array<unsigned char, 48> next;
  std::span<unsigned char> out(next.data(), secret.size());
  const bool good =
      secret.size() <= next.size() && expand_label(digest, secret, "traffic upd", out);
  if (good) std::copy(out.begin(), out.end(), secret.begin());
  cleanse(next);
  return good;
}

bool derive_tls12(Digest digest, const Tls12Secrets& secrets, Role writer, KernelKeys& keys) {
  constexpr std::string_view label = "key expansion";
  const Secret label_bytes(reinterpret_cast<const unsigned char*>(label.data()), label.size());
  // The seed is what its parts make up together.
  const std::array params{
      digest_param(digest),
      octets(OSSL_KDF_PARAM_SECRET, secrets.master),
      octets(OSSL_KDF_PARAM_SEED, label_bytes),
      octets(OSSL_KDF_PARAM_SEED, secrets.server_random),
      octets(OSSL_KDF_PARAM_SEED, secrets.client_random),
      OSSL_PARAM_construct_end(),
  };
  // AEAD ciphers have no MAC keys: client key, server key, client IV, server IV.
  const std::size_t key = key_bytes(keys.aead);
  const std::size_t iv = keys.aead == Aead::chacha20_poly1305 ? KernelKeys::iv_bytes : 4;
  std::array<unsigned char, 2 * (32 + KernelKeys::iv_bytes)> block;
  Context context = tls1_prf();
  const bool good =
      context && EVP_KDF_derive(context.get(), block.data(), 2 * (key + iv), params.data()) == 1;
  if (good) {
    const std::size_t second = writer == Role::server ? 1 : 0;
    std::copy_n(block.data() + second * key, key, keys.key.data());
    std::copy_n(block.data() + 2 * key + second * iv, iv, keys.iv.data());
  }
  cleanse(block);
  return good;
}

}  // namespace ringside::tls
