// What to ask about a certificate.
#pragma once

#include <expected>
#include <string>

#include "openssl.h"

namespace ringside::tls {

// Asks the first responder with http:// that the certificate names (RFC 5280 §4.2.2.1). Otherwise
// says why nobody can be asked.
std::expected<OcspQuestion, std::string> make_ocsp_question(X509* certificate, X509* issuer);

}  // namespace ringside::tls
