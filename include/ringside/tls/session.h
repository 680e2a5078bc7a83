// Owning pointers to OpenSSL's objects, for code that does not see OpenSSL's headers.
#pragma once

#include <memory>

struct ssl_st;

namespace ringside::tls {

struct SslDeleter {
  void operator()(ssl_st* ssl) const;
};

// One connection's TLS state. Used by one thread at a time; must end before the context that made
// it.
using SslPtr = std::unique_ptr<ssl_st, SslDeleter>;

}  // namespace ringside::tls
