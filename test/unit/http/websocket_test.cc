#include "ringside/http/websocket.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace ringside::http {
namespace {

std::string key_of(std::string_view nonce) {
  std::uint8_t bytes[websocket_nonce_bytes];
  for (std::size_t i = 0; i < sizeof bytes; ++i)
    bytes[i] = static_cast<std::uint8_t>(nonce.at(i));
  const auto key = websocket_key(bytes);
  return {key.data(), key.size()};
}

std::string accept_of(std::string_view key) {
  const auto accept = websocket_accept(key);
  return {accept.data(), accept.size()};
}

// RFC 6455 §1.3 has these.
TEST(Websocket, TheKeyIsTheNonceInBase64) {
  EXPECT_EQ(key_of("the sample nonce"), "dGhlIHNhbXBsZSBub25jZQ==");
}
TEST(Websocket, AcceptIsMadeOfTheKey) {
  EXPECT_EQ(accept_of("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

// Made with another library.
TEST(Websocket, AllDigitsAreUsed) {
  EXPECT_EQ(key_of("\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8\xf7\xf6\xf5\xf4\xf3\xf2\xf1\xf0"),
            "//79/Pv6+fj39vX08/Lx8A==");
  EXPECT_EQ(accept_of("//79/Pv6+fj39vX08/Lx8A=="), "KK6gXrxy1jl+SqT4+Dk+Xlb9/D4=");
}

}  // namespace
}  // namespace ringside::http
