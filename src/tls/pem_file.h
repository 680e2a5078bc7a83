// PEM files, read whole.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "openssl.h"

namespace ringside::tls {

// The bytes of a file of at most 1 MiB; otherwise "FILE cannot be read: REASON".
std::expected<SecretBytes, std::string> read_file(const std::string& file);

// All certificates of a file, at least one, in its order.
std::expected<std::vector<X509Ptr>, std::string> read_certificates(const std::string& file);

// The first private key of a file. It must not be encrypted: nobody is there to type.
std::expected<KeyPtr, std::string> read_key(const std::string& file);

// Whether any user of the machine can read the file.
bool world_readable(const std::string& file);

}  // namespace ringside::tls
