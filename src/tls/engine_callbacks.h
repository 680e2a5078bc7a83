// What OpenSSL calls: a BIO whose two ends are an engine's spans, and the callbacks that see
// records, messages and secrets.
#pragma once

#include "ringside/tls/engine.h"

#include "openssl.h"

namespace ringside::tls {

struct EngineCallbacks {
  // Hands an engine's connection its BIO and callbacks. False when memory ran out.
  static bool install(Engine& engine, SSL* ssl);
  // For every context: it passes secrets on to engines. Takes the place of any other callback.
  static void watch_secrets(SSL_CTX* context);

  static Engine* engine_of(const SSL* ssl);
  static int read(BIO* bio, char* out, std::size_t bytes, std::size_t* done);
  static int write(BIO* bio, const char* from, std::size_t bytes, std::size_t* done);
  static void message(int sent, int version, int content_type, const void* bytes, std::size_t size,
                      SSL* ssl, void* engine);
  static void secret(const SSL* ssl, const char* line);
};

}  // namespace ringside::tls
