// TLS as it is configured: files by their paths, choices by name. Plain data; whether the files are
// any good is found out by whoever loads them (ringside/tls/credentials.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ringside::config {

enum class TlsVersion : std::uint8_t { tls12, tls13 };

// After Mozilla's guidelines for servers: intermediate is TLS 1.2 and 1.3, modern is 1.3 alone.
enum class TlsPolicy : std::uint8_t { intermediate, modern };

// Whether clients are asked for a certificate, and what happens to those that have none. One that
// is not valid ends the handshake in either case.
enum class ClientCertificate : std::uint8_t { off, optional, required };

// Whether records are left to the kernel once the handshake is over.
enum class KernelTls : std::uint8_t {
  automatic,  // where the kernel can
  off,
  require,  // a connection for which it cannot is closed
};

// Whether OCSP responses are fetched from those who issue them.
enum class Ocsp : std::uint8_t { off, fetch };

// One chain with its key. Paths are absolute or relative to the working directory.
struct TlsCertificate {
  std::string cert;  // PEM, the server's certificate and those that lead to a root
  std::string key;   // PEM, not encrypted
  std::string ocsp;  // DER, an OCSP response to staple; empty: none
};

// [tls.NAME]
struct Tls {
  std::string name;
  std::vector<TlsCertificate>
      certificates;  // at least one; the first is for clients that name none
  TlsPolicy policy = TlsPolicy::intermediate;
  std::optional<TlsVersion> min_version;  // absent: the policy's
  std::optional<TlsVersion> max_version;
  // OpenSSL's names, in order of preference. Empty: the policy's.
  std::vector<std::string> ciphers;       // TLS 1.2
  std::vector<std::string> ciphersuites;  // TLS 1.3
  std::vector<std::string> groups;
  ClientCertificate client_certificate = ClientCertificate::off;
  std::string client_ca;  // PEM; set unless client_certificate is off
  bool tickets = true;
  std::string ticket_keys_file;                   // empty: keys are made at random
  std::uint64_t ticket_rotation_ms = 43'200'000;  // 12 h; how long random keys are in use
  // Requests that come with the first flight of a session that is resumed (RFC 8446 §2.3), and how
  // much of them.
  bool early_data = false;
  std::uint32_t early_data_bytes_max = 16'384;
  KernelTls ktls = KernelTls::automatic;
  Ocsp ocsp = Ocsp::off;  // of certificates without a file of their own
};

// [upstream.NAME.tls]: how the https:// servers of an upstream are spoken to.
struct UpstreamTls {
  bool verify = true;
  std::string ca;           // PEM; empty: the system's store
  std::string server_name;  // for SNI and the check of the certificate; empty: the server's host
  std::string cert;         // PEM, with key; empty: none is shown
  std::string key;
  std::optional<TlsVersion> min_version;  // absent: TLS 1.2
  std::optional<TlsVersion> max_version;
  KernelTls ktls = KernelTls::automatic;
};

}  // namespace ringside::config
