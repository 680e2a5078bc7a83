#include "authority.h"

#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace ringside::tls::test {
namespace {

KeyPtr make_key(KeyKind kind) {
  if (kind == KeyKind::ec) return KeyPtr(EVP_EC_gen("P-256"));
  if (kind == KeyKind::weak_rsa) return KeyPtr(EVP_RSA_gen(1024));
  static const KeyPtr rsa(EVP_RSA_gen(2048));
  EVP_PKEY_up_ref(rsa.get());
  return KeyPtr(rsa.get());
}

void extend(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  ASSERT_NE(extension, nullptr) << value;
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

std::string text_in(BIO* bio) {
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio, &text);
  return {text, static_cast<std::size_t>(size)};
}

}  // namespace

Issued issue(const Wish& wish, const Issued* issuer) {
  static long serial = 1000;
  Issued out{X509Ptr(X509_new()), make_key(wish.kind)};
  X509* certificate = out.certificate.get();
  X509_set_version(certificate, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate), wish.from_s);
  X509_gmtime_adj(X509_getm_notAfter(certificate), wish.until_s);
  X509_NAME* name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(wish.common_name.c_str()), -1,
                             -1, 0);
  X509* above = issuer == nullptr ? certificate : issuer->certificate.get();
  X509_set_issuer_name(certificate, X509_get_subject_name(above));
  X509_set_pubkey(certificate, out.key.get());
  extend(certificate, above, NID_basic_constraints,
         wish.authority ? "critical,CA:TRUE" : "critical,CA:FALSE");
  std::string names;
  for (const std::string& each : wish.names)
    names += (names.empty() ? "" : ",") + each;
  if (!names.empty()) extend(certificate, above, NID_subject_alt_name, names);
  std::string responders;
  for (const std::string& each : wish.responders)
    responders += (responders.empty() ? "OCSP;URI:" : ",OCSP;URI:") + each;
  if (!responders.empty()) extend(certificate, above, NID_info_access, responders);
  if (!wish.usage.empty()) extend(certificate, above, NID_ext_key_usage, wish.usage);
  EVP_PKEY* signer = issuer == nullptr ? out.key.get() : issuer->key.get();
  EXPECT_GT(X509_sign(certificate, signer, EVP_sha256()), 0);
  return out;
}

std::string pem_of(const X509* certificate) {
  const BioPtr out(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(out.get(), certificate);
  return text_in(out.get());
}

Folder::Folder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "unit-tls-XXXXXX").string();
  const char* made = ::mkdtemp(pattern.data());
  EXPECT_NE(made, nullptr);
  path_ = pattern;
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string Folder::write(const std::string& name, const std::string& bytes) const {
  // Renamed into place, so that a file that is replaced has another inode.
  const std::string fresh = path(name + ".new");
  std::ofstream(fresh, std::ios::binary) << bytes;
  ::chmod(fresh.c_str(), 0600);
  std::filesystem::rename(fresh, path(name));
  return path(name);
}

std::string Folder::chain(const std::string& name, std::vector<const Issued*> chain) const {
  std::string text;
  for (const Issued* each : chain)
    text += pem_of(each->certificate.get());
  return write(name, text);
}

std::string Folder::key(const std::string& name, const Issued& issued, const char* password) const {
  const BioPtr out(BIO_new(BIO_s_mem()));
  PEM_write_bio_PKCS8PrivateKey(out.get(), issued.key.get(),
                                password == nullptr ? nullptr : EVP_aes_128_cbc(), nullptr, 0,
                                nullptr, const_cast<char*>(password));
  return write(name, text_in(out.get()));
}

config::TlsCertificate Folder::files(const std::string& name, const Issued& issued,
                                     const Issued* issuer) const {
  std::vector<const Issued*> certificates{&issued};
  if (issuer != nullptr) certificates.push_back(issuer);
  return {chain(name + ".pem", certificates), key(name + ".key", issued), {}};
}

std::string ocsp_response(const Issued& issued, const Issued& issuer, const OcspWish& wish) {
  const OcspBasicPtr basic(OCSP_BASICRESP_new());
  OCSP_CERTID* id = OCSP_cert_to_id(nullptr, issued.certificate.get(), issuer.certificate.get());
  ASN1_TIME* from = X509_gmtime_adj(nullptr, wish.from_s);
  ASN1_TIME* until = X509_gmtime_adj(nullptr, wish.until_s);
  ASN1_TIME* revoked = wish.status == V_OCSP_CERTSTATUS_REVOKED ? from : nullptr;
  OCSP_basic_add1_status(basic.get(), id, wish.status, 0, revoked, from, until);
  const Issued& signer = wish.signer == nullptr ? issuer : *wish.signer;
  OCSP_basic_sign(basic.get(), signer.certificate.get(), signer.key.get(), EVP_sha256(), nullptr,
                  wish.signer == nullptr ? OCSP_NOCERTS : 0);
  const OcspPtr response(OCSP_response_create(OCSP_RESPONSE_STATUS_SUCCESSFUL, basic.get()));
  unsigned char* bytes = nullptr;
  const int size = i2d_OCSP_RESPONSE(response.get(), &bytes);
  std::string out(reinterpret_cast<char*>(bytes), static_cast<std::size_t>(size));
  OPENSSL_free(bytes);
  ASN1_TIME_free(from);
  ASN1_TIME_free(until);
  OCSP_CERTID_free(id);
  return out;
}

}  // namespace ringside::tls::test
