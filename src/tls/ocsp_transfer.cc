#include <openssl/err.h>
#include <openssl/http.h>

#include "ringside/tls/ocsp.h"

#include "openssl.h"

namespace ringside::tls {
namespace {

constexpr int line_bytes_max = 4'096;

}  // namespace

struct OcspTransfer::Parts {
  // Behind the socket, which it uses.
  using Exchange = std::unique_ptr<OSSL_HTTP_REQ_CTX, Deleter<OSSL_HTTP_REQ_CTX_free>>;

  BioPtr socket;
  Exchange exchange;

  bool build(int descriptor, const OcspQuestion& question);
};

bool OcspTransfer::Parts::build(int descriptor, const OcspQuestion& question) {
  socket.reset(BIO_new_socket(descriptor, BIO_NOCLOSE));
  if (!socket) return false;
  exchange.reset(OSSL_HTTP_REQ_CTX_new(socket.get(), socket.get(), line_bytes_max));
  const unsigned char* at = question.request.data();
  const std::unique_ptr<OCSP_REQUEST, Deleter<OCSP_REQUEST_free>> request(
      d2i_OCSP_REQUEST(nullptr, &at, static_cast<long>(question.request.size())));
  if (!exchange || !request) return false;
  const bool is_v6 = question.host.contains(':');
  std::string host = is_v6 ? join({"[", question.host, "]"}) : question.host;
  if (question.port != "80") host += ":" + question.port;
  OSSL_HTTP_REQ_CTX_set_max_response_length(exchange.get(), response_bytes_max);
  constexpr int post = 1;
  // OpenSSL 3.0 forgets the type that it read when the header fields come in pieces, and then
  // misses it. What counts is the signature.
  constexpr const char* any_type = nullptr;
  constexpr int asn1 = 1;
  constexpr int no_timeout = -1;  // whoever waits for the socket has one
  constexpr int no_keep_alive = 0;
  return OSSL_HTTP_REQ_CTX_set_request_line(exchange.get(), post, nullptr, nullptr,
                                            question.path.c_str()) == 1 &&
         OSSL_HTTP_REQ_CTX_add1_header(exchange.get(), "Host", host.c_str()) == 1 &&
         OSSL_HTTP_REQ_CTX_set_expected(exchange.get(), any_type, asn1, no_timeout,
                                        no_keep_alive) == 1 &&
         OSSL_HTTP_REQ_CTX_set1_req(exchange.get(), "application/ocsp-request",
                                    ASN1_ITEM_rptr(OCSP_REQUEST),
                                    reinterpret_cast<const ASN1_VALUE*>(request.get())) == 1;
}

OcspTransfer::OcspTransfer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
OcspTransfer::~OcspTransfer() = default;

std::unique_ptr<OcspTransfer> OcspTransfer::make(int socket, const OcspQuestion& question) {
  ERR_clear_error();
  auto parts = std::make_unique<Parts>();
  const bool built = parts->build(socket, question);
  ERR_clear_error();
  return built ? std::unique_ptr<OcspTransfer>(new OcspTransfer(std::move(parts))) : nullptr;
}

OcspTransfer::Step OcspTransfer::advance() {
  ERR_clear_error();
  const int result = OSSL_HTTP_REQ_CTX_nbio(parts_->exchange.get());
  if (result < 0 && BIO_should_retry(parts_->socket.get()) != 0) {
    return BIO_should_write(parts_->socket.get()) != 0 ? Step::wants_to_write : Step::wants_to_read;
  }
  if (result <= 0) {
    failure_ = take_details();
    return Step::failed;
  }
  char* bytes = nullptr;
  const long size =
      BIO_get_mem_data(OSSL_HTTP_REQ_CTX_get0_mem_bio(parts_->exchange.get()), &bytes);
  if (size > 0) response_.assign(bytes, bytes + size);
  return Step::done;
}

}  // namespace ringside::tls
