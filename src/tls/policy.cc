#include "policy.h"

#include <openssl/err.h>

#include <vector>

namespace ringside::tls {
namespace {

// Mozilla's guidelines of 2026: forward secrecy and authenticated encryption alone, no finite-field
// Diffie-Hellman, and the client's preference counts, since each of these is good.
constexpr const char* tls12_ciphers =
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:"
    "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"
    "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305";
constexpr const char* tls13_suites =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
constexpr const char* hybrid_groups = "X25519MLKEM768:X25519:P-256:P-384";
// OpenSSL before 3.5 knows no ML-KEM, and takes a list whole or not at all.
constexpr const char* classic_groups = "X25519:P-256:P-384";
// 112 bits: RSA from 2048 bits, no SHA-1. Debian's default, said here because a library context of
// our own does not read openssl.cnf.
constexpr int security_level = 2;

int number(config::TlsVersion version) {
  return version == config::TlsVersion::tls12 ? TLS1_2_VERSION : TLS1_3_VERSION;
}

std::string colons(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) {
    if (!out.empty()) out += ':';
    out += name;
  }
  return out;
}

std::expected<void, std::string> refused(std::string_view key,
                                         const std::vector<std::string>& names) {
  return std::unexpected(
      join({key, " = \"", colons(names), "\" is not what OpenSSL knows: ", take_reason()}));
}

std::expected<void, std::string> apply_groups(SSL_CTX* context,
                                              const std::vector<std::string>& names) {
  if (!names.empty()) {
    if (SSL_CTX_set1_groups_list(context, colons(names).c_str()) == 1) return {};
    return refused("groups", names);
  }
  if (SSL_CTX_set1_groups_list(context, hybrid_groups) == 1) return {};
  ERR_clear_error();
  if (SSL_CTX_set1_groups_list(context, classic_groups) == 1) return {};
  return refused("groups", {classic_groups});
}

}  // namespace

std::expected<void, std::string> apply_common(SSL_CTX* context, config::TlsVersion least,
                                              std::optional<config::TlsVersion> most) {
  SSL_CTX_set_security_level(context, security_level);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  // What is sent is the chain of the file, not one made up from the authorities of peers.
  SSL_CTX_set_mode(context, SSL_MODE_NO_AUTO_CHAIN);
  if (SSL_CTX_set_min_proto_version(context, number(least)) != 1 ||
      SSL_CTX_set_max_proto_version(context, most ? number(*most) : 0) != 1) {
    return std::unexpected(join({"the TLS versions cannot be set: ", take_reason()}));
  }
  return {};
}

std::expected<void, std::string> apply_server_policy(SSL_CTX* context, const config::Tls& config) {
  const auto least = config.policy == config::TlsPolicy::modern ? config::TlsVersion::tls13
                                                                : config::TlsVersion::tls12;
  if (auto done = apply_common(context, config.min_version.value_or(least), config.max_version);
      !done) {
    return done;
  }
  SSL_CTX_clear_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE);
  const std::string ciphers = config.ciphers.empty() ? tls12_ciphers : colons(config.ciphers);
  if (SSL_CTX_set_cipher_list(context, ciphers.c_str()) != 1) {
    return refused("ciphers", config.ciphers);
  }
  const std::string suites =
      config.ciphersuites.empty() ? tls13_suites : colons(config.ciphersuites);
  if (SSL_CTX_set_ciphersuites(context, suites.c_str()) != 1) {
    return refused("ciphersuites", config.ciphersuites);
  }
  return apply_groups(context, config.groups);
}

}  // namespace ringside::tls
