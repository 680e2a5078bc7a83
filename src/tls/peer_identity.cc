#include "ringside/tls/peer_identity.h"

#include <arpa/inet.h>
#include <openssl/bn.h>
#include <openssl/err.h>

#include <algorithm>
#include <array>

#include "ringside/base/text.h"

#include "openssl.h"

namespace ringside::tls {
namespace {

constexpr std::string_view lower_digits = "0123456789abcdef";
constexpr std::string_view upper_digits = "0123456789ABCDEF";

void append_hex(std::string& out, unsigned char byte, std::string_view digits) {
  out += digits[byte >> 4];
  out += digits[byte & 15];
}

// What a comma, a blank or a line's end inside of a name could make of a list.
void append_escaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (c > ' ' && c < '\x7f' && c != ',' && c != '\\' && c != '"') {
      out += c;
      continue;
    }
    out += '\\';
    append_hex(out, static_cast<unsigned char>(c), upper_digits);
  }
}

void append_item(std::string& list, std::string_view kind, std::string_view text) {
  if (!list.empty()) list += ", ";
  list += kind;
  append_escaped(list, text);
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

std::string fingerprint_of(const X509* certificate) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  std::string out;
  if (X509_digest(certificate, EVP_sha256(), digest.data(), &size) != 1) return out;
  for (unsigned i = 0; i < size; ++i)
    append_hex(out, digest[i], lower_digits);
  return out;
}

std::string common_name_of(const X509_NAME* subject) {
  int last = -1;
  for (int at = -1; (at = X509_NAME_get_index_by_NID(subject, NID_commonName, at)) >= 0;)
    last = at;
  const BioPtr out(BIO_new(BIO_s_mem()));
  const X509_NAME_ENTRY* entry = last < 0 ? nullptr : X509_NAME_get_entry(subject, last);
  if (entry == nullptr || !out ||
      ASN1_STRING_print_ex(out.get(), X509_NAME_ENTRY_get_data(entry), ASN1_STRFLGS_RFC2253) < 0) {
    return {};
  }
  char* text = nullptr;
  const long size = BIO_get_mem_data(out.get(), &text);
  return size > 0 ? std::string(text, static_cast<std::size_t>(size)) : std::string();
}

std::string_view bytes_of(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
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

void read_name(const GENERAL_NAME& name, PeerIdentity& identity) {
  auto add = [&](std::string_view kind, std::string& own_list, const ASN1_STRING* text) {
    append_item(identity.names, kind, bytes_of(text));
    append_item(own_list, {}, bytes_of(text));
  };
  if (name.type == GEN_DNS) add("DNS:", identity.dns, name.d.dNSName);
  if (name.type == GEN_EMAIL) add("email:", identity.email, name.d.rfc822Name);
  if (name.type == GEN_URI) add("URI:", identity.uri, name.d.uniformResourceIdentifier);
  if (name.type == GEN_IPADD) append_item(identity.names, "IP:", address_text(name.d.iPAddress));
}

void read_alternative_names(const X509* certificate, PeerIdentity& identity) {
  const NamesPtr all(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; all && i < sk_GENERAL_NAME_num(all.get()); ++i)
    read_name(*sk_GENERAL_NAME_value(all.get(), i), identity);
}

// The client's certificate when it was asked for and found good; in resumed sessions, then.
X509* verified_certificate(const ssl_st* ssl) {
  X509* certificate = SSL_get0_peer_certificate(ssl);
  const bool good = certificate != nullptr && (SSL_get_verify_mode(ssl) & SSL_VERIFY_PEER) != 0 &&
                    SSL_get_verify_result(ssl) == X509_V_OK;
  return good && X509_up_ref(certificate) == 1 ? certificate : nullptr;
}

bool is_host_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
}

}  // namespace

void CertificateDeleter::operator()(x509_st* certificate) const {
  X509_free(certificate);
}

Peer::Peer(const ssl_st* ssl)
    : version_(SSL_version(ssl) == TLS1_3_VERSION ? "TLSv1.3" : "TLSv1.2"),
      cipher_(SSL_CIPHER_get_name(SSL_get_current_cipher(ssl))),
      certificate_(verified_certificate(ssl)) {
  const unsigned char* alpn = nullptr;
  unsigned alpn_bytes = 0;
  SSL_get0_alpn_selected(ssl, &alpn, &alpn_bytes);
  alpn_.assign(reinterpret_cast<const char*>(alpn), alpn_bytes);
  const char* name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  if (name != nullptr) name_server(name);
}

Peer::Peer(const ConnectionInfo& info)
    : version_(info.version == Version::tls13 ? "TLSv1.3" : "TLSv1.2"),
      cipher_(info.cipher),
      alpn_(info.alpn) {
  name_server(info.server_name);
}

void Peer::name_server(std::string_view name) {
  server_name_ = name;
  if (server_name_.ends_with('.')) server_name_.pop_back();
  std::transform(server_name_.begin(), server_name_.end(), server_name_.begin(), base::to_lower);
  names_host_ =
      !server_name_.empty() && std::all_of(server_name_.begin(), server_name_.end(), is_host_byte);
}

const PeerIdentity* Peer::identity() {
  if (!certificate_ || identity_) return identity_.get();
  identity_ = std::make_unique<PeerIdentity>();
  const X509* certificate = certificate_.get();
  identity_->subject = name_text(X509_get_subject_name(certificate));
  identity_->common_name = common_name_of(X509_get_subject_name(certificate));
  identity_->issuer = name_text(X509_get_issuer_name(certificate));
  identity_->serial = serial_of(certificate);
  identity_->fingerprint = fingerprint_of(certificate);
  read_alternative_names(certificate, *identity_);
  ERR_clear_error();
  return identity_.get();
}

std::string_view Peer::certificate_field() {
  if (!certificate_ || !field_.empty()) return field_;
  const Der der = der_of(certificate_.get());
  if (der.empty()) return {};
  // EVP_EncodeBlock ends its text with a NUL, where the second colon is to be.
  field_.assign(1 + (der.size() + 2) / 3 * 4 + 1, ':');
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(field_.data() + 1), der.data(),
                  static_cast<int>(der.size()));
  field_.back() = ':';
  return field_;
}

}  // namespace ringside::tls
