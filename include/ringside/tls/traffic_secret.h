// What the keys of one direction follow from in TLS 1.3, kept while the kernel has the keys: a
// KeyUpdate of the peer leads to the next ones.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "ringside/tls/kernel_keys.h"

namespace ringside::tls {

// Owner: a Handoff; thread: its ring's. Cleansed when it goes.
class TrafficSecret {
 public:
  TrafficSecret() = default;
  ~TrafficSecret() { drop(); }
  TrafficSecret(const TrafficSecret&) = delete;
  TrafficSecret& operator=(const TrafficSecret&) = delete;

  // 32 or 48 bytes, those of the keys that are in use.
  void keep(Aead aead, std::span<const unsigned char> secret);
  void drop();
  bool kept() const { return bytes_ != 0; }
  // Goes on to the next secret (RFC 8446 §7.2), and gives the keys for its first record. Nothing:
  // none is kept, or OpenSSL failed, and none is kept any more.
  std::optional<KernelKeys> advance();

 private:
  std::array<unsigned char, 48> secret_{};
  std::uint8_t bytes_ = 0;
  Aead aead_ = Aead::aes128_gcm;
};

}  // namespace ringside::tls
