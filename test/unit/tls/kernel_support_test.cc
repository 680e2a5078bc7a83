#include "ringside/tls/kernel_support.h"

#include <gtest/gtest.h>
#include <linux/tls.h>
#include <netinet/tcp.h>

#include <fstream>
#include <string>

#include "../net/machine.h"

namespace ringside::tls {
namespace {

// Loopback works; what TLS does is up to the test.
class LoopbackSys : public net::test::FakeSys {
 public:
  int bind(int, const net::Address&) override { return 0; }
  int listen(int, int) override { return 0; }
  base::Result<net::Address> local_address(int) override {
    return *net::Address::from_ip("127.0.0.1", 4433);
  }
};

class KernelSupportTest : public testing::Test {
 protected:
  LoopbackSys sys;
};

TEST_F(KernelSupportTest, AllThere) {
  const KernelSupport support = probe_kernel_tls(sys);
  EXPECT_TRUE(support.aes128_gcm && support.aes256_gcm && support.chacha20_poly1305);
  EXPECT_TRUE(support.has(Aead::aes128_gcm) && support.has(Aead::chacha20_poly1305));
  EXPECT_EQ(support.reason, "");
  EXPECT_TRUE(sys.open.empty()) << "descriptors are left open";
}

TEST_F(KernelSupportTest, WhetherItTakesASecondKeyIsTried) {
  EXPECT_TRUE(probe_kernel_tls(sys).rekey);
  sys.once_only = {SOL_TLS, TLS_TX};
  const KernelSupport support = probe_kernel_tls(sys);
  EXPECT_FALSE(support.rekey);
  EXPECT_TRUE(support.aes128_gcm && support.aes256_gcm && support.chacha20_poly1305);
  EXPECT_EQ(support.reason, "") << "it is nothing that the connection lacks";
}

TEST_F(KernelSupportTest, AModuleThatIsNotLoadedIsNamed) {
  sys.option_errno[{SOL_TCP, TCP_ULP}] = ENOENT;
  const KernelSupport support = probe_kernel_tls(sys);
  EXPECT_FALSE(support.any());
  EXPECT_NE(support.reason.find("modprobe tls"), std::string::npos) << support.reason;
  EXPECT_TRUE(sys.open.empty());
}

TEST_F(KernelSupportTest, OtherRefusals) {
  sys.option_errno[{SOL_TCP, TCP_ULP}] = ENOPROTOOPT;
  EXPECT_NE(probe_kernel_tls(sys).reason.find("CONFIG_TLS"), std::string::npos);
  sys.option_errno[{SOL_TCP, TCP_ULP}] = EPERM;
  EXPECT_NE(probe_kernel_tls(sys).reason.find("not permitted"), std::string::npos);
}

TEST_F(KernelSupportTest, CiphersThatAreMissingAreNamed) {
  sys.option_errno[{SOL_TLS, TLS_TX}] = EINVAL;
  const KernelSupport support = probe_kernel_tls(sys);
  EXPECT_FALSE(support.any());
  EXPECT_EQ(support.reason,
            "the kernel does not take AES-128-GCM (Invalid argument), AES-256-GCM (Invalid "
            "argument), ChaCha20-Poly1305 (Invalid argument)");
}

TEST_F(KernelSupportTest, NoLoopback) {
  sys.connect_errno = ENETUNREACH;
  const KernelSupport support = probe_kernel_tls(sys);
  EXPECT_FALSE(support.any());
  EXPECT_NE(support.reason.find("loopback"), std::string::npos) << support.reason;
  sys.open_errno = EMFILE;
  EXPECT_NE(probe_kernel_tls(sys).reason.find("open files"), std::string::npos);
}

// Whatever this kernel says, there is an answer, and a reason whenever something is missing.
TEST(KernelSupport, OfThisKernel) {
  const KernelSupport support = probe_kernel_tls(net::real_sys());
  const bool all = support.aes128_gcm && support.aes256_gcm && support.chacha20_poly1305;
  EXPECT_EQ(support.reason.empty(), all) << support.reason;
  std::ifstream ulps("/proc/sys/net/ipv4/tcp_available_ulp");
  std::string name;
  bool loaded = false;
  while (ulps >> name)
    loaded |= name == "tls";
  // The kernel loads it by itself for whoever may administer the network.
  EXPECT_TRUE(support.any() || !loaded) << support.reason;
}

}  // namespace
}  // namespace ringside::tls
