#include "record_player.h"

#include <gtest/gtest.h>
#include <linux/tls.h>
#include <openssl/evp.h>

#include <algorithm>
#include <cstring>

namespace ringside::tls::test {

namespace {

using CipherPtr = std::unique_ptr<EVP_CIPHER_CTX, Deleter<EVP_CIPHER_CTX_free>>;

constexpr std::size_t tag_bytes = 16;

template <typename Info>
void read_info(std::string_view bytes, std::string& key, std::array<unsigned char, 12>& iv,
               std::size_t& salt, std::uint64_t& sequence) {
  Info info;
  ASSERT_EQ(bytes.size(), sizeof info);
  std::memcpy(&info, bytes.data(), sizeof info);
  key.assign(reinterpret_cast<const char*>(info.key), sizeof info.key);
  salt = iv.size() - sizeof info.iv;
  std::memcpy(iv.data(), info.salt, salt);
  std::memcpy(iv.data() + salt, info.iv, sizeof info.iv);
  sequence = 0;
  for (const unsigned char byte : info.rec_seq)
    sequence = sequence * 256 + byte;
}

const unsigned char* raw(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

RecordPlayer::RecordPlayer(std::string_view crypto_info) {
  tls_crypto_info info{};
  if (crypto_info.size() < sizeof info) {
    ADD_FAILURE() << "no keys were given";
    return;
  }
  std::memcpy(&info, crypto_info.data(), sizeof info);
  version_ = info.version;
  switch (info.cipher_type) {
    case TLS_CIPHER_AES_GCM_128:
      cipher_ = EVP_aes_128_gcm();
      read_info<tls12_crypto_info_aes_gcm_128>(crypto_info, key_, iv_, salt_bytes_, sequence_);
      break;
    case TLS_CIPHER_AES_GCM_256:
      cipher_ = EVP_aes_256_gcm();
      read_info<tls12_crypto_info_aes_gcm_256>(crypto_info, key_, iv_, salt_bytes_, sequence_);
      break;
    case TLS_CIPHER_CHACHA20_POLY1305:
      cipher_ = EVP_chacha20_poly1305();
      read_info<tls12_crypto_info_chacha20_poly1305>(crypto_info, key_, iv_, salt_bytes_,
                                                     sequence_);
      break;
    default:
      ADD_FAILURE() << "cipher " << info.cipher_type;
  }
}

std::array<unsigned char, 12> RecordPlayer::nonce(const unsigned char* explicit_part) const {
  std::array<unsigned char, 12> out = iv_;
  if (explicit_nonce()) {
    std::memcpy(out.data() + 4, explicit_part, 8);
  } else {
    for (std::size_t i = 0; i < 8; ++i)
      out[4 + i] ^= static_cast<unsigned char>(sequence_ >> (8 * (7 - i)));
  }
  return out;
}

// RFC 8446 §5.2, RFC 5246 §6.2.3.3.
std::string RecordPlayer::associated(std::uint8_t type, std::size_t bytes) const {
  std::string out;
  if (!tls13()) {
    for (int i = 7; i >= 0; --i)
      out += static_cast<char>(sequence_ >> (8 * i));
  }
  out += static_cast<char>(tls13() ? 23 : type);
  out += "\x03\x03";
  out += static_cast<char>(bytes >> 8);
  return out += static_cast<char>(bytes);
}

std::string RecordPlayer::seal(std::uint8_t type, std::string_view plaintext) {
  std::string inner(plaintext);
  if (tls13()) inner += static_cast<char>(type);
  const std::string front(explicit_nonce() ? std::string(iv_.begin() + 4, iv_.end()) : "");
  const std::size_t body = front.size() + inner.size() + tag_bytes;
  const std::string aad = associated(type, tls13() ? body : inner.size());
  std::string out(inner.size() + tag_bytes, '\0');
  auto* at = reinterpret_cast<unsigned char*>(out.data());
  const CipherPtr context(EVP_CIPHER_CTX_new());
  int done = 0;
  EVP_EncryptInit_ex(context.get(), cipher_, nullptr, raw(key_), nonce(iv_.data() + 4).data());
  EVP_EncryptUpdate(context.get(), nullptr, &done, raw(aad), static_cast<int>(aad.size()));
  EVP_EncryptUpdate(context.get(), at, &done, raw(inner), static_cast<int>(inner.size()));
  EVP_EncryptFinal_ex(context.get(), at + done, &done);
  EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG, tag_bytes, at + inner.size());
  ++sequence_;
  for (std::size_t i = iv_.size(); explicit_nonce() && i-- > 4 && ++iv_[i] == 0;) {
  }
  std::string header;
  header += static_cast<char>(tls13() ? 23 : type);
  header += "\x03\x03";
  header += static_cast<char>(body >> 8);
  header += static_cast<char>(body);
  return header + front + out;
}

bool RecordPlayer::open(std::string& wire, std::uint8_t& type, std::string& plaintext) {
  if (wire.size() < record_header_bytes) return false;
  const std::size_t body = raw(wire)[3] * 256U + raw(wire)[4];
  if (wire.size() < record_header_bytes + body) return false;
  const std::size_t front = explicit_nonce() ? 8 : 0;
  if (body < front + tag_bytes) return false;
  const std::size_t bytes = body - front - tag_bytes;
  type = raw(wire)[0];
  const std::string aad = associated(type, tls13() ? body : bytes);
  const unsigned char* from = raw(wire) + record_header_bytes;
  const CipherPtr context(EVP_CIPHER_CTX_new());
  int done = 0;
  plaintext.assign(bytes, '\0');
  auto* at = reinterpret_cast<unsigned char*>(plaintext.data());
  std::string tag(wire, record_header_bytes + front + bytes, tag_bytes);
  EVP_DecryptInit_ex(context.get(), cipher_, nullptr, raw(key_), nonce(from).data());
  EVP_DecryptUpdate(context.get(), nullptr, &done, raw(aad), static_cast<int>(aad.size()));
  EVP_DecryptUpdate(context.get(), at, &done, from + front, static_cast<int>(bytes));
  EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_SET_TAG, tag_bytes, tag.data());
  if (EVP_DecryptFinal_ex(context.get(), at + done, &done) != 1) return false;
  ++sequence_;
  wire.erase(0, record_header_bytes + body);
  if (!tls13()) return true;
  plaintext.resize(plaintext.find_last_not_of('\0') + 1);
  if (plaintext.empty()) return false;
  type = static_cast<std::uint8_t>(plaintext.back());
  plaintext.pop_back();
  return true;
}

std::string RecordPlayer::open_data(std::string wire) {
  std::string all;
  while (!wire.empty()) {
    std::uint8_t type = 0;
    std::string plaintext;
    if (!open(wire, type, plaintext) || type != 23) {
      ADD_FAILURE() << "no authentic record of data";
      return all;
    }
    all += plaintext;
  }
  return all;
}

}  // namespace ringside::tls::test
