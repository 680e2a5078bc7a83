// Handshakes in memory between a session of ours and a plain one of OpenSSL's.
#pragma once

#include <functional>
#include <string>

#include "ringside/tls/server_context.h"

#include "openssl.h"

namespace ringside::tls::test {

struct Handshake {
  bool done = false;   // both sides, and the server's tickets were read
  std::string client;  // the client's error
  std::string server;  // the server's error
};

// Joins the two by a pair of memory BIOs and shakes hands. Also sends a byte from the server, so
// that a TLS 1.3 client learns whether its certificate was taken, and reads the tickets.
Handshake shake(SSL* client, SSL* server);

// A plain client, for what a test wants to vary.
class Client {
 public:
  Client();
  SSL_CTX* context() { return context_.get(); }
  // A session for a server name; empty: none is sent.
  SslPtr session(const std::string& name = {});
  void use(const struct Issued& issued);
  // The session that the server gave last, for the next one.
  SessionPtr take_ticket() { return std::move(ticket_); }

 private:
  static int on_session(SSL* ssl, SSL_SESSION* session);

  CtxPtr context_;
  SessionPtr ticket_;
};

// The common name of the certificate that the server has shown.
std::string shown(const SSL* client);

}  // namespace ringside::tls::test
