#include "openssl.h"

#include <openssl/crypto.h>
#include <openssl/err.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "ringside/tls/library_context.h"
#include "ringside/tls/session.h"

namespace ringside::tls {

void SslDeleter::operator()(ssl_st* ssl) const {
  // Otherwise OpenSSL takes a connection that was not shut down for a broken one and forbids to
  // resume its session. A fatal alert has forbidden that already.
  SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
  SSL_free(ssl);
}

std::shared_ptr<LibraryContext> LibraryContext::shared() {
  return std::shared_ptr<LibraryContext>(new LibraryContext(nullptr));
}

std::shared_ptr<LibraryContext> LibraryContext::own() {
  OSSL_LIB_CTX* context = OSSL_LIB_CTX_new();
  if (context == nullptr) return nullptr;
  return std::shared_ptr<LibraryContext>(new LibraryContext(context));
}

LibraryContext::~LibraryContext() {
  OSSL_LIB_CTX_free(context_);
}

SecretBytes& SecretBytes::operator=(SecretBytes&& other) noexcept {
  if (this != &other) {
    clear();
    bytes_ = std::move(other.bytes_);
  }
  return *this;
}

void SecretBytes::clear() {
  if (!bytes_.empty()) OPENSSL_cleanse(bytes_.data(), bytes_.size());
  bytes_.clear();
}

std::string join(std::initializer_list<std::string_view> parts) {
  std::string out;
  for (std::string_view part : parts)
    out += part;
  return out;
}

std::string take_reason() {
  const unsigned long code = ERR_peek_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  std::string text = reason == nullptr ? "unknown error" : reason;
  ERR_clear_error();
  return text;
}

std::string take_details() {
  constexpr std::size_t bytes_max = 200;
  const char* data = nullptr;
  int flags = 0;
  const unsigned long code = ERR_peek_error_all(nullptr, nullptr, nullptr, &data, &flags);
  // Errors of system calls have a text that is not OpenSSL's.
  std::string text = ERR_SYSTEM_ERROR(code) && code != 0 ? std::strerror(ERR_GET_REASON(code)) : "";
  std::string more = data != nullptr && (flags & ERR_TXT_STRING) != 0 ? data : "";
  const std::string reason = take_reason();
  if (text.empty()) text = reason;
  if (!more.empty()) text += " (" + more + ")";
  if (text.size() > bytes_max) text.resize(bytes_max);
  for (char& c : text)
    c = c >= ' ' && c < '\x7f' ? c : '?';
  return text;
}

std::string name_text(const X509_NAME* name) {
  const BioPtr out(BIO_new(BIO_s_mem()));
  if (!out || X509_NAME_print_ex(out.get(), name, 0, XN_FLAG_RFC2253) < 0) return {};
  char* text = nullptr;
  const long size = BIO_get_mem_data(out.get(), &text);
  return size > 0 ? std::string(text, static_cast<std::size_t>(size)) : std::string();
}

std::string time_text(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return "an unreadable date";
  std::array<char, 64> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return {text.data(), size};
}

UnixSeconds seconds_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (time == nullptr || ASN1_TIME_to_tm(time, &parts) != 1) return 0;
  return ::timegm(&parts);
}

Der der_of(const X509* certificate) {
  unsigned char* bytes = nullptr;
  const int size = i2d_X509(certificate, &bytes);
  if (size <= 0) return {};
  Der der(bytes, bytes + size);
  OPENSSL_free(bytes);
  return der;
}

X509Ptr certificate_of(const Der& der, OSSL_LIB_CTX* library) {
  // d2i keeps the library context only of an object that it is given.
  X509* certificate = X509_new_ex(library, nullptr);
  if (certificate == nullptr) return nullptr;
  const unsigned char* bytes = der.data();
  // On failure d2i frees the object that it was given.
  if (d2i_X509(&certificate, &bytes, static_cast<long>(der.size())) == nullptr) return nullptr;
  return X509Ptr(certificate);
}

KeyPtr key_of(const SecretBytes& der, OSSL_LIB_CTX* library) {
  const unsigned char* bytes = der.data();
  return KeyPtr(
      d2i_AutoPrivateKey_ex(nullptr, &bytes, static_cast<long>(der.size()), library, nullptr));
}

}  // namespace ringside::tls
