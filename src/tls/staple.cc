#include "staple.h"

#include <array>

#include "pem_file.h"

namespace ringside::tls {
namespace {

// Whether an answer is about a certificate: its serial number and its issuer's name. (The issuer's
// key is a third part, and is not always at hand.)
bool is_about(OCSP_SINGLERESP* single, const X509* certificate) {
  ASN1_OCTET_STRING* name_hash = nullptr;
  ASN1_OBJECT* algorithm = nullptr;
  ASN1_INTEGER* serial = nullptr;
  auto* id = const_cast<OCSP_CERTID*>(OCSP_SINGLERESP_get0_id(single));
  if (OCSP_id_get0_info(&name_hash, &algorithm, nullptr, &serial, id) != 1) return false;
  if (ASN1_INTEGER_cmp(serial, X509_get0_serialNumber(certificate)) != 0) return false;
  const EVP_MD* digest = EVP_get_digestbyobj(algorithm);
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  unsigned size = 0;
  if (digest == nullptr ||
      X509_NAME_digest(X509_get_issuer_name(certificate), digest, hash.data(), &size) != 1) {
    return false;
  }
  return static_cast<unsigned>(ASN1_STRING_length(name_hash)) == size &&
         std::equal(hash.begin(), hash.begin() + size, ASN1_STRING_get0_data(name_hash));
}

}  // namespace

std::expected<ParsedOcsp, std::string> parse_ocsp(std::span<const unsigned char> bytes) {
  const unsigned char* at = bytes.data();
  const OcspPtr response(d2i_OCSP_RESPONSE(nullptr, &at, static_cast<long>(bytes.size())));
  if (!response) return std::unexpected(join({"cannot be read: ", take_reason()}));
  if (const int status = OCSP_response_status(response.get());
      status != OCSP_RESPONSE_STATUS_SUCCESSFUL) {
    return std::unexpected(join({"is a failure: ", OCSP_response_status_str(status)}));
  }
  OcspBasicPtr basic(OCSP_response_get1_basic(response.get()));
  if (!basic) return std::unexpected(join({"cannot be read: ", take_reason()}));
  return ParsedOcsp{std::move(basic), static_cast<std::size_t>(at - bytes.data())};
}

std::expected<Staple, std::string> read_staple(const std::string& file, const X509* certificate,
                                               UnixSeconds now) {
  const auto bytes = read_file(file);
  if (!bytes) return std::unexpected(join({bytes.error(), "; nothing is stapled"}));
  auto refuse = [&](std::string_view why) {
    return std::unexpected(join({file, ": the OCSP response ", why, "; it is not stapled"}));
  };
  const auto parsed = parse_ocsp({bytes->data(), bytes->size()});
  if (!parsed) return refuse(parsed.error());
  OCSP_BASICRESP* basic = parsed->basic.get();
  for (int i = 0; i < OCSP_resp_count(basic); ++i) {
    OCSP_SINGLERESP* single = OCSP_resp_get0(basic, i);
    if (!is_about(single, certificate)) continue;
    ASN1_GENERALIZEDTIME* since = nullptr;
    ASN1_GENERALIZEDTIME* next = nullptr;
    const int status = OCSP_single_get0_status(single, nullptr, nullptr, &since, &next);
    if (status != V_OCSP_CERTSTATUS_GOOD) {
      return refuse(join({"says that the certificate is ", OCSP_cert_status_str(status)}));
    }
    if (next == nullptr) return refuse("does not say until when it is good");
    if (seconds_of(next) <= now) return refuse(join({"expired on ", time_text(next)}));
    return Staple{
        {bytes->data(), bytes->data() + parsed->size}, seconds_of(since), seconds_of(next)};
  }
  return refuse("is about another certificate");
}

}  // namespace ringside::tls
