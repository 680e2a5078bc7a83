// Owners of OpenSSL's objects, and its errors as text.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ocsp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "ringside/tls/credentials.h"

namespace ringside::tls {

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};

using BioPtr = std::unique_ptr<BIO, Deleter<BIO_free>>;
struct CertificatesDeleter {
  void operator()(STACK_OF(X509) * certificates) const {
    sk_X509_pop_free(certificates, X509_free);
  }
};

using X509Ptr = std::unique_ptr<X509, Deleter<X509_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using CtxPtr = std::unique_ptr<SSL_CTX, Deleter<SSL_CTX_free>>;
using StorePtr = std::unique_ptr<X509_STORE, Deleter<X509_STORE_free>>;
using OcspPtr = std::unique_ptr<OCSP_RESPONSE, Deleter<OCSP_RESPONSE_free>>;
using OcspBasicPtr = std::unique_ptr<OCSP_BASICRESP, Deleter<OCSP_BASICRESP_free>>;
using CertificatesPtr = std::unique_ptr<STACK_OF(X509), CertificatesDeleter>;
using NamesPtr = std::unique_ptr<GENERAL_NAMES, Deleter<GENERAL_NAMES_free>>;
using SessionPtr = std::unique_ptr<SSL_SESSION, Deleter<SSL_SESSION_free>>;

// The parts in one string.
std::string join(std::initializer_list<std::string_view> parts);

// The reason of the oldest error of this thread's queue, which is the cause; empties the queue.
std::string take_reason();

// The same with what OpenSSL tells beside it, in printable ASCII: a peer's words may be among it.
std::string take_details();

// A name as in RFC 2253, for people.
std::string name_text(const X509_NAME* name);

// "2026-03-01 12:00:00 UTC".
std::string time_text(const ASN1_TIME* time);
UnixSeconds seconds_of(const ASN1_TIME* time);

Der der_of(const X509* certificate);
// Null, with OpenSSL's error left in the queue, when it cannot be decoded.
X509Ptr certificate_of(const Der& der, OSSL_LIB_CTX* library);
KeyPtr key_of(const SecretBytes& der, OSSL_LIB_CTX* library);

}  // namespace ringside::tls
