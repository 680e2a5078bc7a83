#include <openssl/err.h>

#include "ringside/tls/ocsp.h"

#include "openssl.h"
#include "staple.h"

namespace ringside::tls {
namespace {

// Clocks differ; as much is usual.
constexpr long clock_skew_s = 300;

using CertIdPtr = std::unique_ptr<OCSP_CERTID, Deleter<OCSP_CERTID_free>>;

bool is_signed(OCSP_BASICRESP* basic, X509* issuer) {
  const StorePtr store(X509_STORE_new());
  const CertificatesPtr known(sk_X509_new_null());
  if (!store || !known || X509_STORE_add_cert(store.get(), issuer) != 1 ||
      X509_add_cert(known.get(), issuer, X509_ADD_FLAG_UP_REF) != 1) {
    return false;
  }
  // The issuer is trusted for its own certificates, whether or not it is a root.
  return OCSP_basic_verify(basic, known.get(), store.get(), OCSP_PARTIAL_CHAIN) == 1;
}

}  // namespace

std::expected<OcspAnswer, std::string> read_ocsp_answer(std::span<const unsigned char> bytes,
                                                        const OcspQuestion& question,
                                                        UnixSeconds now) {
  ERR_clear_error();
  const auto parsed = parse_ocsp(bytes);
  if (!parsed) return std::unexpected(parsed.error());
  OCSP_BASICRESP* basic = parsed->basic.get();
  const X509Ptr certificate = certificate_of(question.certificate, nullptr);
  const X509Ptr issuer = certificate_of(question.issuer, nullptr);
  const CertIdPtr id(
      certificate && issuer ? OCSP_cert_to_id(nullptr, certificate.get(), issuer.get()) : nullptr);
  if (!id) return std::unexpected(join({"cannot be judged: ", take_reason()}));
  if (!is_signed(basic, issuer.get()))
    return std::unexpected(join({"is not signed by the issuer: ", take_reason()}));
  int status = 0;
  ASN1_GENERALIZEDTIME *revoked = nullptr, *from = nullptr, *until = nullptr;
  if (OCSP_resp_find_status(basic, id.get(), &status, nullptr, &revoked, &from, &until) != 1)
    return std::unexpected("is about another certificate");
  if (until == nullptr) return std::unexpected("does not say until when it is good");
  OcspAnswer answer{.staple = {.response = {bytes.data(), bytes.data() + parsed->size},
                               .this_update = seconds_of(from),
                               .next_update = seconds_of(until)}};
  if (answer.staple.next_update <= now)
    return std::unexpected(join({"expired on ", time_text(until)}));
  if (answer.staple.this_update > now + clock_skew_s)
    return std::unexpected(join({"is not good before ", time_text(from)}));
  if (status == V_OCSP_CERTSTATUS_REVOKED) {
    answer.revoked = true;
    answer.revoked_on = time_text(revoked);
  } else if (status != V_OCSP_CERTSTATUS_GOOD) {
    return std::unexpected("says that the responder does not know the certificate");
  }
  return answer;
}

}  // namespace ringside::tls
