// From the secrets of a handshake to keys: RFC 8446 §7 and RFC 5246 §6.3.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "ringside/tls/kernel_keys.h"

namespace ringside::tls {

enum class Digest : std::uint8_t { sha256, sha384 };

constexpr std::size_t digest_bytes(Digest digest) {
  return digest == Digest::sha256 ? 32 : 48;
}

using Secret = std::span<const unsigned char>;

// HKDF-Expand-Label with an empty context (RFC 8446 §7.1). At most 64 bytes. False when OpenSSL
// failed.
bool expand_label(Digest digest, Secret secret, std::string_view label,
                  std::span<unsigned char> out);

// RFC 8446 §7.3: fills key and iv.
bool derive_tls13(Digest digest, Secret secret, KernelKeys& keys);

// What KeyUpdate makes of a secret (RFC 8446 §7.2), in place.
bool next_secret(Digest digest, std::span<unsigned char> secret);

// What TLS 1.2 derives its keys from. Views.
struct Tls12Secrets {
  Secret master;
  Secret client_random;
  Secret server_random;
};

// RFC 5246 §6.3: fills key and iv (with GCM only its first 4 bytes) of the direction in which
// `writer` writes.
bool derive_tls12(Digest digest, const Tls12Secrets& secrets, Role writer, KernelKeys& keys);

}  // namespace ringside::tls
