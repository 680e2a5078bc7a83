// A server's certificate and those above it: their order, their dates, their names.
#pragma once

#include <string>
#include <vector>

#include "openssl.h"

namespace ringside::tls {

// Puts the certificates of a file into the order in which they are sent (RFC 8446 §4.4.2): the one
// of the key first, then each one's issuer. Warns when that is not the order of the file, and when
// some are no part of the chain. Empty when none belongs to the key.
std::vector<X509Ptr> order_chain(std::vector<X509Ptr> certificates, const EVP_PKEY* key,
                                 const std::string& file, std::vector<std::string>& warnings);

bool self_signed(X509* certificate);

// The root that signed `certificate`: among `known` or in the system's store. Null when there is
// none, which is so when an intermediate signed it. Reads the system's store: not for every
// certificate.
X509Ptr issuing_root(X509* certificate, const std::vector<X509Ptr>& known);

// Warns of certificates that are not valid at `now`.
void check_dates(const std::vector<X509Ptr>& chain, const std::string& file, UnixSeconds now,
                 std::vector<std::string>& warnings);

// The DNS names of the subject alternative name, lower-case; the common name only without one
// (RFC 6125 §6.4.4).
std::vector<std::string> names_of(X509* certificate);

}  // namespace ringside::tls
