#include "ringside/tls/peer_identity.h"

#include <arpa/inet.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <array>

#include "openssl.h"

namespace ringside::tls {
namespace {

std::string hex(const unsigned char* bytes, std::size_t size) {
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (std::size_t i = 0; i < size; ++i) {
    out += digits[bytes[i] >> 4];
    out += digits[bytes[i] & 15];
  }
  return out;
}

std::string serial_of(const X509* certificate) {
  const std::unique_ptr<BIGNUM, Deleter<BN_free>> number(
      ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr));
  char* text = number ? BN_bn2hex(number.get()) : nullptr;
  if (text == nullptr) return {};
  std::string out(text);
  OPENSSL_free(text);
  return out;
}

std::string address_text(const ASN1_OCTET_STRING* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int size = ASN1_STRING_length(address);
  if (size != 4 && size != 16) return {};
  const int family = size == 4 ? AF_INET : AF_INET6;
  return ::inet_ntop(family, ASN1_STRING_get0_data(address), text.data(), text.size()) == nullptr
             ? std::string()
             : std::string(text.data());
}

void add_text(std::vector<std::string>& names, std::string_view kind, const ASN1_STRING* text) {
  const std::string_view bytes(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                               static_cast<std::size_t>(ASN1_STRING_length(text)));
  // A NUL inside would let one name pass for another.
  if (!bytes.contains('\0')) names.push_back(join({kind, bytes}));
}

std::vector<std::string> alternative_names(X509* certificate) {
  std::vector<std::string> names;
  const NamesPtr all(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; all && i < sk_GENERAL_NAME_num(all.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(all.get(), i);
    if (name->type == GEN_DNS) add_text(names, "DNS:", name->d.dNSName);
    if (name->type == GEN_EMAIL) add_text(names, "email:", name->d.rfc822Name);
    if (name->type == GEN_URI) add_text(names, "URI:", name->d.uniformResourceIdentifier);
    if (name->type == GEN_IPADD) names.push_back("IP:" + address_text(name->d.iPAddress));
  }
  return names;
}

std::string pem_of(X509* certificate) {
  const BioPtr out(BIO_new(BIO_s_mem()));
  if (!out || PEM_write_bio_X509(out.get(), certificate) != 1) return {};
  char* text = nullptr;
  const long size = BIO_get_mem_data(out.get(), &text);
  return size > 0 ? std::string(text, static_cast<std::size_t>(size)) : std::string();
}

}  // namespace

std::optional<PeerIdentity> peer_identity(const ssl_st* ssl, WithPem with_pem) {
  X509* certificate = SSL_get0_peer_certificate(ssl);
  if (certificate == nullptr || (SSL_get_verify_mode(ssl) & SSL_VERIFY_PEER) == 0 ||
      SSL_get_verify_result(ssl) != X509_V_OK) {
    return std::nullopt;
  }
  PeerIdentity identity;
  identity.subject = name_text(X509_get_subject_name(certificate));
  identity.issuer = name_text(X509_get_issuer_name(certificate));
  identity.serial = serial_of(certificate);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (X509_digest(certificate, EVP_sha256(), digest.data(), &size) == 1) {
    identity.fingerprint = hex(digest.data(), size);
  }
  identity.names = alternative_names(certificate);
  if (with_pem == WithPem::yes) identity.pem = pem_of(certificate);
  ERR_clear_error();
  return identity;
}

}  // namespace ringside::tls
