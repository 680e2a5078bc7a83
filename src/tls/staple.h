// An OCSP response from a file, to be stapled (RFC 6066 §8).
#pragma once

#include <expected>
#include <span>
#include <string>

#include "openssl.h"

namespace ringside::tls {

struct ParsedOcsp {
  OcspBasicPtr basic;
  std::size_t size = 0;  // of the response, without what may stand behind it
};

// Otherwise why it is none, as in "cannot be read: ...".
std::expected<ParsedOcsp, std::string> parse_ocsp(std::span<const unsigned char> bytes);

// Takes a response that can be parsed, is about `certificate`, and is not out of date at `now`.
// Otherwise says why it is not stapled. The signature is the clients' to check.
std::expected<Staple, std::string> read_staple(const std::string& file, const X509* certificate,
                                               UnixSeconds now);

}  // namespace ringside::tls
