#include "ocsp_question.h"

#include <openssl/http.h>

#include <algorithm>
#include <optional>
#include <string_view>

namespace ringside::tls {
namespace {

struct UrlsDeleter {
  void operator()(STACK_OF(OPENSSL_STRING) * urls) const { X509_email_free(urls); }
};
using TextPtr = std::unique_ptr<char, decltype([](char* text) { OPENSSL_free(text); })>;

// A space or a line's end would be another request than the one that is meant.
bool is_visible(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

std::optional<OcspQuestion> parse_url(const char* url) {
  int secure = 0;
  char *host = nullptr, *port = nullptr, *path = nullptr, *query = nullptr;
  if (!is_visible(url) || OSSL_HTTP_parse_url(url, &secure, nullptr, &host, &port, nullptr, &path,
                                              &query, nullptr) != 1) {
    return std::nullopt;
  }
  const TextPtr owners[] = {TextPtr(host), TextPtr(port), TextPtr(path), TextPtr(query)};
  if (secure != 0) return std::nullopt;
  OcspQuestion question{.url = url, .host = host, .port = port, .path = path};
  if (query != nullptr && *query != '\0') question.path.append("?").append(query);
  if (question.host.starts_with('['))
    question.host = question.host.substr(1, question.host.size() - 2);
  if (question.host.empty()) return std::nullopt;
  return question;
}

bool write_request(X509* certificate, X509* issuer, Der& out) {
  using RequestPtr = std::unique_ptr<OCSP_REQUEST, Deleter<OCSP_REQUEST_free>>;
  const RequestPtr request(OCSP_REQUEST_new());
  OCSP_CERTID* id = OCSP_cert_to_id(nullptr, certificate, issuer);
  if (!request || id == nullptr || OCSP_request_add0_id(request.get(), id) == nullptr) {
    OCSP_CERTID_free(id);
    return false;
  }
  unsigned char* bytes = nullptr;
  const int size = i2d_OCSP_REQUEST(request.get(), &bytes);
  if (size <= 0) return false;
  out.assign(bytes, bytes + size);
  OPENSSL_free(bytes);
  return true;
}

}  // namespace

std::expected<OcspQuestion, std::string> make_ocsp_question(X509* certificate, X509* issuer) {
  using UrlsPtr = std::unique_ptr<STACK_OF(OPENSSL_STRING), UrlsDeleter>;
  const UrlsPtr urls(X509_get1_ocsp(certificate));
  if (!urls || sk_OPENSSL_STRING_num(urls.get()) <= 0)
    return std::unexpected("the certificate names no OCSP responder");
  std::optional<OcspQuestion> question;
  for (int i = 0; !question && i < sk_OPENSSL_STRING_num(urls.get()); ++i)
    question = parse_url(sk_OPENSSL_STRING_value(urls.get(), i));
  take_reason();
  if (!question) return std::unexpected("the certificate names no OCSP responder with http://");
  question->certificate = der_of(certificate);
  question->issuer = der_of(issuer);
  if (!write_request(certificate, issuer, question->request)) return std::unexpected(take_reason());
  return *std::move(question);
}

}  // namespace ringside::tls
