#include "ticket_seal.h"

#include <openssl/core_names.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>

namespace ringside::tls {

std::unique_ptr<TicketSeal> TicketSeal::make(std::shared_ptr<const TicketKeys> keys,
                                             OSSL_LIB_CTX* library) {
  auto seal = std::make_unique<TicketSeal>();
  seal->keys_ = std::move(keys);
  seal->library_ = library;
  seal->cipher_.reset(EVP_CIPHER_fetch(library, "AES-256-CBC", nullptr));
  return seal->cipher_ ? std::move(seal) : nullptr;
}

bool TicketSeal::set_mac(EVP_MAC_CTX* mac, const TicketKey& key) const {
  // The parameters are not written to, though their types do not say so.
  const std::array<OSSL_PARAM, 3> parameters{
      OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY,
                                        const_cast<unsigned char*>(key.mac.data()), key.mac.size()),
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, const_cast<char*>("SHA256"), 0),
      OSSL_PARAM_construct_end()};
  return EVP_MAC_CTX_set_params(mac, parameters.data()) == 1;
}

int TicketSeal::seal(unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher,
                     EVP_MAC_CTX* mac) const {
  const TicketKey key = keys_->current();
  const int iv_bytes = EVP_CIPHER_get_iv_length(cipher_.get());
  if (RAND_bytes_ex(library_, iv, static_cast<std::size_t>(iv_bytes), 0) != 1) return -1;
  std::copy(key.name.begin(), key.name.end(), name);
  const bool good =
      EVP_EncryptInit_ex2(cipher, cipher_.get(), key.cipher.data(), iv, nullptr) == 1 &&
      set_mac(mac, key);
  return good ? 1 : -1;
}

int TicketSeal::open(const unsigned char* name, const unsigned char* iv, EVP_CIPHER_CTX* cipher,
                     EVP_MAC_CTX* mac) const {
  TicketKey key;
  bool is_current = false;
  const std::span<const unsigned char, TicketKey::name_bytes> wanted(name, TicketKey::name_bytes);
  if (!keys_->find(wanted, key, is_current)) return 0;
  const bool good = set_mac(mac, key) &&
                    EVP_DecryptInit_ex2(cipher, cipher_.get(), key.cipher.data(), iv, nullptr) == 1;
  if (!good) return -1;
  return is_current ? 1 : 2;
}

}  // namespace ringside::tls
