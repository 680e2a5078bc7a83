#include "handshake.h"

#include <openssl/err.h>

#include "authority.h"

namespace ringside::tls::test {
namespace {

// True while there is something to wait for; an error goes to `error`.
bool step(SSL* ssl, std::string& error) {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl);
  if (result == 1) return true;
  const int kind = SSL_get_error(ssl, result);
  if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE) return true;
  error = take_reason();
  return false;
}

}  // namespace

Handshake shake(SSL* client, SSL* server) {
  BIO* client_side = nullptr;
  BIO* server_side = nullptr;
  BIO_new_bio_pair(&client_side, 65'536, &server_side, 65'536);
  SSL_set_bio(client, client_side, client_side);
  SSL_set_bio(server, server_side, server_side);
  Handshake out;
  for (int round = 0; round < 20; ++round) {
    // Both sides get to see the other's alert.
    const bool client_good = step(client, out.client);
    const bool server_good = step(server, out.server);
    if (!client_good) step(server, out.server);
    if (!server_good && out.client.empty()) step(client, out.client);
    if (!client_good || !server_good) break;
    if (SSL_is_init_finished(client) && SSL_is_init_finished(server)) break;
  }
  if (!SSL_is_init_finished(client) || !SSL_is_init_finished(server)) {
    if (SSL_is_init_finished(client) && out.client.empty()) {
      char byte = 0;
      if (SSL_read(client, &byte, 1) <= 0) out.client = take_reason();
    }
    return out;
  }
  char byte = 'x';
  out.done = SSL_write(server, &byte, 1) == 1 && SSL_read(client, &byte, 1) == 1 && byte == 'x';
  if (!out.done) out.client = take_reason();
  return out;
}

Client::Client() : context_(SSL_CTX_new(TLS_client_method())) {
  SSL_CTX_set_session_cache_mode(context(), SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_set_app_data(context(), this);
  SSL_CTX_sess_set_new_cb(context(), on_session);
}

int Client::on_session(SSL* ssl, SSL_SESSION* session) {
  static_cast<Client*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)))->ticket_.reset(session);
  return 1;
}

SslPtr Client::session(const std::string& name) {
  SslPtr ssl(SSL_new(context()));
  SSL_set_connect_state(ssl.get());
  if (!name.empty()) SSL_set_tlsext_host_name(ssl.get(), name.c_str());
  return ssl;
}

void Client::use(const Issued& issued) {
  SSL_CTX_use_certificate(context(), issued.certificate.get());
  SSL_CTX_use_PrivateKey(context(), issued.key.get());
}

std::string shown(const SSL* client) {
  const X509* certificate = SSL_get0_peer_certificate(client);
  return certificate == nullptr ? std::string() : name_text(X509_get_subject_name(certificate));
}

}  // namespace ringside::tls::test
