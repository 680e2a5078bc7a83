// Seals and opens tickets for OpenSSL with the keys of a TicketKeys.
#pragma once

#include <memory>

#include "ringside/tls/ticket_keys.h"

#include "openssl.h"

namespace ringside::tls {

// Owner: a ServerContext; used by its thread.
class TicketSeal {
 public:
  // Null when the algorithm cannot be had.
  static std::unique_ptr<TicketSeal> make(std::shared_ptr<const TicketKeys> keys,
                                          OSSL_LIB_CTX* library);

  // The two halves of OpenSSL's callback, with its results: -1 is an error; for `open`, 0 is a
  // ticket of nobody's, 1 a good one, 2 one to be renewed.
  int seal(unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac) const;
  int open(const unsigned char* name, const unsigned char* iv, EVP_CIPHER_CTX* cipher,
           EVP_MAC_CTX* mac) const;

 private:
  bool set_mac(EVP_MAC_CTX* mac, const TicketKey& key) const;

  std::shared_ptr<const TicketKeys> keys_;
  OSSL_LIB_CTX* library_ = nullptr;
  // Fetched once: a fetch takes a lock.
  std::unique_ptr<EVP_CIPHER, Deleter<EVP_CIPHER_free>> cipher_;
};

}  // namespace ringside::tls
