// An OCSP response from a file, to be stapled (RFC 6066 §8).
#pragma once

#include <expected>
#include <string>

#include "openssl.h"

namespace ringside::tls {

// Takes a response that can be parsed, is about `certificate`, and is not out of date at `now`.
// Otherwise says why it is not stapled. The signature is the clients' to check.
std::expected<Staple, std::string> read_staple(const std::string& file, const X509* certificate,
                                               UnixSeconds now);

}  // namespace ringside::tls
