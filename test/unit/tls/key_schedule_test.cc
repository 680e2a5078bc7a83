// Known answers: RFC 8448 for TLS 1.3. For TLS 1.2 the RFC has none, so OpenSSL's records are the
// answer (handoff_test.cc).
#include "key_schedule.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace ringside::tls {
namespace {

std::vector<unsigned char> bytes_of(std::string_view hex) {
  std::vector<unsigned char> out;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    out.push_back(
        static_cast<unsigned char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return out;
}

std::vector<unsigned char> first(std::span<const unsigned char> bytes, std::size_t count) {
  return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count)};
}

struct Vector {
  const char* secret;
  const char* key;
  const char* iv;
};

// RFC 8448 §3, "Simple 1-RTT Handshake" (TLS_AES_128_GCM_SHA256).
constexpr Vector vectors[] = {
    {"b3eddb126e067f35a780b3abf45e2d8f3b1a950738f52e9600746a0e27a55a21",
     "dbfaa693d1762c5b666af5d950258d01", "5bd3c71b836e0b76bb73265f"},
    {"b67b7d690cc16c4e75e54213cb2d37b4e9c912bcded9105d42befd59d391ad38",
     "3fce516009c21727d0f2e4e86ee403bc", "5d313eb2671276ee13000b30"},
    {"9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5",
     "17422dda596ed5d9acd890e3c63f5051", "5b78923dee08579033e523d9"},
    {"a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643",
     "9f02283b6c9c07efc26bb9f2ac92e356", "cf782b88dd83549aadf1e984"},
};

TEST(KeySchedule, Rfc8448) {
  for (const Vector& vector : vectors) {
    KernelKeys keys;
    ASSERT_TRUE(derive_tls13(Digest::sha256, bytes_of(vector.secret), keys));
    EXPECT_EQ(first(keys.key, 16), bytes_of(vector.key));
    EXPECT_EQ(first(keys.iv, 12), bytes_of(vector.iv));
  }
}

// RFC 8448 §3: the finished key of the server, by the same function and another label.
TEST(KeySchedule, Rfc8448Finished) {
  std::vector<unsigned char> out(32);
  ASSERT_TRUE(expand_label(Digest::sha256, bytes_of(vectors[1].secret), "finished", out));
  EXPECT_EQ(out, bytes_of("008d3b66f816ea559f96b537e885c31fc068bf492c652f01f288a1d8cdc19fc8"));
}

// The key block is cut in the right order; GCM's explicit nonce is not part of it.
TEST(KeySchedule, Tls12BlockIsCut) {
  const std::vector<unsigned char> master(48, 1);
  const std::vector<unsigned char> client(32, 2);
  const std::vector<unsigned char> server(32, 3);
  const Tls12Secrets secrets{.master = master, .client_random = client, .server_random = server};
  KernelKeys from_server;
  KernelKeys from_client;
  ASSERT_TRUE(derive_tls12(Digest::sha256, secrets, Role::server, from_server));
  ASSERT_TRUE(derive_tls12(Digest::sha256, secrets, Role::client, from_client));
  EXPECT_NE(from_server.key, from_client.key);
  EXPECT_NE(from_server.iv, from_client.iv);
  EXPECT_EQ(first(std::span(from_server.iv).subspan(4), 8), std::vector<unsigned char>(8, 0));
}

TEST(KeySchedule, ALongLabelIsRefused) {
  std::vector<unsigned char> out(16);
  EXPECT_FALSE(expand_label(Digest::sha256, out, std::string(60, 'x'), out));
}

}  // namespace
}  // namespace ringside::tls
