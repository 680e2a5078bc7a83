// Versions, ciphers, groups and options of a context.
#pragma once

#include <expected>
#include <optional>
#include <string>

#include "openssl.h"

namespace ringside::tls {

// What the configuration and Mozilla's guidelines say of a server. The error names the key that
// OpenSSL does not take.
std::expected<void, std::string> apply_server_policy(SSL_CTX* context, const config::Tls& config);

// What holds for either side: versions, no renegotiation, no compression, no chain but that of the
// file. Secrets go to the engine of their connection, and nowhere else. Record buffers are not
// OpenSSL's to release, which would allocate for every record: see Engine::release_buffers().
std::expected<void, std::string> apply_common(SSL_CTX* context, config::TlsVersion least,
                                              std::optional<config::TlsVersion> most);

}  // namespace ringside::tls
