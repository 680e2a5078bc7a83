// The certificates, keys and rules of one [tls.NAME], read from their files and checked.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ringside/config/tls.h"
#include "ringside/tls/ocsp.h"

namespace ringside::tls {

// Bytes that are cleared before their memory is given back. Never printed.
class SecretBytes {
 public:
  SecretBytes() = default;
  explicit SecretBytes(std::vector<unsigned char> bytes) : bytes_(std::move(bytes)) {}
  SecretBytes(SecretBytes&& other) noexcept : bytes_(std::move(other.bytes_)) {}
  SecretBytes& operator=(SecretBytes&& other) noexcept;
  ~SecretBytes() { clear(); }

  const unsigned char* data() const { return bytes_.data(); }
  std::size_t size() const { return bytes_.size(); }

 private:
  void clear();

  std::vector<unsigned char> bytes_;
};

// A chain with its key, as bytes: each ring makes OpenSSL's objects of its own from them, since the
// objects have locks and counters that threads would fight for.
struct Certificate {
  std::string file;                // the chain's, for messages
  std::vector<Der> chain;          // the server's own one first, each the issuer of the one before
  SecretBytes key;                 // PKCS #8
  int key_type = 0;                // EVP_PKEY_RSA, EVP_PKEY_EC, ...
  std::vector<std::string> names;  // lower-case DNS names, "*.a.test" among them
  UnixSeconds not_after = 0;
  std::shared_ptr<StapleSlot> staple;  // null: nothing is ever stapled
  // Set where the response is to be fetched, and put into `staple`.
  std::optional<OcspQuestion> ocsp_question;
};

// Immutable but for what is stapled; shared by all rings. Owner: std::shared_ptr<const
// Credentials>.
struct Credentials {
  config::Tls config;
  std::vector<Certificate> certificates;
  std::vector<Der> client_ca;
  // Binds sessions to the entry and to its rules about client certificates, so that none is resumed
  // under another (RFC 8446 §4.6.1). 32 bytes.
  std::vector<unsigned char> session_binding;
};

// What loading came to. `credentials` is null when there are errors; each text names the file and,
// where OpenSSL had one, its reason. No key material is in any text.
struct LoadedCredentials {
  std::shared_ptr<const Credentials> credentials;
  std::vector<std::string> errors;
  std::vector<std::string> warnings;
};

// Reads and checks all files of one entry, and tries its algorithms. Blocks on the file system:
// never on a ring. Certificates that are not valid at `now` are warned about and served.
LoadedCredentials load_credentials(const config::Tls& config, UnixSeconds now);

// Every file that `load_credentials` reads, for whoever watches them.
std::vector<std::string> files_of(const config::Tls& config);

}  // namespace ringside::tls
