#include "ringside/tls/traffic_secret.h"

#include <algorithm>

#include "key_schedule.h"

namespace ringside::tls {

void TrafficSecret::keep(Aead aead, std::span<const unsigned char> secret) {
  drop();
  if (secret.size() > secret_.size()) return;
  std::ranges::copy(secret, secret_.begin());
  bytes_ = static_cast<std::uint8_t>(secret.size());
  aead_ = aead;
}

void TrafficSecret::drop() {
  if (bytes_ != 0) cleanse(secret_);
  bytes_ = 0;
}

std::optional<KernelKeys> TrafficSecret::advance() {
  if (!kept()) return std::nullopt;
  const std::span<unsigned char> secret(secret_.data(), bytes_);
  const Digest digest = bytes_ == digest_bytes(Digest::sha256) ? Digest::sha256 : Digest::sha384;
  KernelKeys keys;
  keys.aead = aead_;
  if (next_secret(digest, secret) && derive_tls13(digest, secret, keys)) return keys;
  drop();
  return std::nullopt;
}

}  // namespace ringside::tls
