// Certificates made at test time, and files to put them in. No key is ever stored in the
// repository.
#pragma once

#include <gtest/gtest.h>

#include <ctime>
#include <string>
#include <vector>

#include "openssl.h"

namespace ringside::tls::test {

enum class KeyKind : std::uint8_t { ec, rsa, weak_rsa };

struct Issued {
  X509Ptr certificate;
  KeyPtr key;
};

struct Wish {
  std::string common_name;
  std::vector<std::string> names;  // "DNS:a.test", "IP:127.0.0.1"
  KeyKind kind = KeyKind::ec;
  bool authority = false;
  long from_s = -3600;  // against now
  long until_s = 86'400;
  std::vector<std::string> responders;  // URLs for OCSP
  std::string usage;                    // extended, like "OCSPSigning"
};

// Signed by `issuer`, or by itself. Keys of one kind and common name are new each time, but RSA
// keys are made once a process, since that takes long.
Issued issue(const Wish& wish, const Issued* issuer = nullptr);

std::string pem_of(const X509* certificate);

// A folder that goes with the test.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string path(const std::string& name) const { return path_ + "/" + name; }
  // Each returns the path. Files are readable by their owner alone.
  std::string write(const std::string& name, const std::string& bytes) const;
  std::string chain(const std::string& name, std::vector<const Issued*> chain) const;
  std::string key(const std::string& name, const Issued& issued,
                  const char* password = nullptr) const;
  // One certificate with its key, as the configuration names them.
  config::TlsCertificate files(const std::string& name, const Issued& issued,
                               const Issued* issuer = nullptr) const;

 private:
  std::string path_;
};

struct OcspWish {
  long from_s = -7200;  // against now
  long until_s = 3600;
  int status = V_OCSP_CERTSTATUS_GOOD;
  // Who signs it, with his certificate in it; null: the issuer, without.
  const Issued* signer = nullptr;
};

// An OCSP response about `issued`.
std::string ocsp_response(const Issued& issued, const Issued& issuer, const OcspWish& wish);
// Signed by its issuer.
inline std::string ocsp_response(const Issued& issued, const Issued& issuer, long until_s,
                                 int status = V_OCSP_CERTSTATUS_GOOD) {
  return ocsp_response(issued, issuer, OcspWish{.until_s = until_s, .status = status});
}

inline UnixSeconds now() {
  return std::time(nullptr);
}

}  // namespace ringside::tls::test
