// What the running kernel can do for TLS.
#pragma once

#include <string>

#include "ringside/net/sys_port.h"
#include "ringside/tls/kernel_keys.h"

namespace ringside::tls {

struct KernelSupport {
  bool aes128_gcm = false;
  bool aes256_gcm = false;
  bool chacha20_poly1305 = false;
  // Takes a new key for a connection of TLS 1.3 that it has (Linux 6.14), so that a KeyUpdate does
  // not end the connection.
  bool rekey = false;
  // Why some or all are missing, and what can be done about it; empty when nothing is missing.
  std::string reason;

  bool any() const { return aes128_gcm || aes256_gcm || chacha20_poly1305; }
  bool has(Aead aead) const;
};

// Tries it, on connections of its own over loopback. At start; some system calls, none of which
// waits for anybody else.
KernelSupport probe_kernel_tls(net::SysPort& sys);

}  // namespace ringside::tls
