#include "ringside/http/websocket.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace ringside::http {

namespace {

constexpr std::string_view guid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";  // RFC 6455 §1.3
constexpr std::size_t digest_bytes = 20;

template <std::size_t Out>
std::array<char, Out> base64(std::span<const std::uint8_t> bytes) {
  static constexpr char digits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::array<char, Out> out;
  out.fill('=');
  assert(Out == (bytes.size() + 2) / 3 * 4);
  std::size_t at = 0;
  std::uint32_t waiting = 0;
  unsigned bits = 0;
  for (const std::uint8_t byte : bytes) {
    waiting = waiting << 8 | byte;
    for (bits += 8; bits >= 6; bits -= 6)
      out[at++] = digits[waiting >> (bits - 6) & 63];
  }
  if (bits != 0) out[at] = digits[waiting << (6 - bits) & 63];
  return out;
}

// SHA-1 (RFC 3174), as the protocol has it: nothing is kept safe by it.
class Sha1 {
 public:
  static constexpr std::size_t block_bytes = 64;

  void add_block(const std::uint8_t* block) {
    std::uint32_t words[80];
    for (std::size_t i = 0; i < 16; ++i, block += 4)
      words[i] = std::uint32_t{block[0]} << 24 | std::uint32_t{block[1]} << 16 |
                 std::uint32_t{block[2]} << 8 | block[3];
    for (std::size_t i = 16; i < 80; ++i)
      words[i] = std::rotl(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
    auto [a, b, c, d, e] = state_;
    for (std::size_t i = 0; i < 80; ++i) {
      const std::uint32_t next = std::rotl(a, 5) + mix(i, b, c, d) + e + words[i];
      e = d;
      d = c;
      c = std::rotl(b, 30);
      b = a;
      a = next;
    }
    const std::uint32_t added[] = {a, b, c, d, e};
    for (std::size_t i = 0; i < state_.size(); ++i)
      state_[i] += added[i];
  }

  std::array<std::uint8_t, digest_bytes> digest() const {
    std::array<std::uint8_t, digest_bytes> out;
    for (std::size_t i = 0; i < digest_bytes; ++i)
      out[i] = static_cast<std::uint8_t>(state_[i / 4] >> (24 - i % 4 * 8));
    return out;
  }

 private:
  static std::uint32_t mix(std::size_t round, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
    switch (round / 20) {
      case 0:
        return ((b & c) | (~b & d)) + 0x5a827999;
      case 1:
        return (b ^ c ^ d) + 0x6ed9eba1;
      case 2:
        return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
      default:
        return (b ^ c ^ d) + 0xca62c1d6;
    }
  }

  std::array<std::uint32_t, 5> state_ = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476,
                                         0xc3d2e1f0};
};

}  // namespace

std::array<char, websocket_key_bytes> websocket_key(
    std::span<const std::uint8_t, websocket_nonce_bytes> nonce) {
  return base64<websocket_key_bytes>(nonce);
}

// Key and GUID are 60 bytes, so their end and length go into a second block.
std::array<char, websocket_accept_bytes> websocket_accept(std::string_view key) {
  static_assert(websocket_key_bytes + guid.size() < Sha1::block_bytes);
  static_assert(websocket_key_bytes + guid.size() + 1 + 8 > Sha1::block_bytes);
  assert(key.size() == websocket_key_bytes);
  constexpr std::size_t bits = 8 * (websocket_key_bytes + guid.size());
  std::uint8_t text[2 * Sha1::block_bytes] = {};
  std::uint8_t* end = std::copy(key.begin(), key.end(), text);
  end = std::copy(guid.begin(), guid.end(), end);
  *end = 0x80;
  text[sizeof text - 2] = bits >> 8;
  text[sizeof text - 1] = bits & 0xff;
  Sha1 sha;
  sha.add_block(text);
  sha.add_block(text + Sha1::block_bytes);
  return base64<websocket_accept_bytes>(sha.digest());
}

}  // namespace ringside::http
