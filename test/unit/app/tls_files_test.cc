#include "tls_files.h"

#include <gtest/gtest.h>

namespace ringside::app {
namespace {

TEST(TlsFiles, WhatCannotBeUsedIsSaidOfEveryEntry) {
  config::Snapshot snapshot;
  EXPECT_NE(load_tls_or_complain(snapshot, {}), nullptr);
  snapshot.tls.resize(2);
  snapshot.tls[0].name = "a";
  snapshot.tls[0].certificates.push_back({"/nowhere/a.pem", "/nowhere/a.key", {}});
  snapshot.tls[1].name = "b";
  snapshot.tls[1].certificates = snapshot.tls[0].certificates;
  snapshot.tls[1].ticket_keys_file = "/nowhere/tickets";
  testing::internal::CaptureStderr();
  EXPECT_EQ(load_tls_or_complain(snapshot, {}), nullptr);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "[tls.a]: /nowhere/a.pem cannot be read: No such file or directory\n"
            "[tls.a]: /nowhere/a.key cannot be read: No such file or directory\n"
            "[tls.b]: /nowhere/a.pem cannot be read: No such file or directory\n"
            "[tls.b]: /nowhere/a.key cannot be read: No such file or directory\n"
            "[tls.b]: /nowhere/tickets cannot be read: No such file or directory\n");
}

TEST(TlsFiles, WhatTheKernelLacksIsAnErrorOnlyWhereItIsRequired) {
  config::Snapshot snapshot;
  snapshot.upstreams.resize(1);
  config::Upstream& upstream = snapshot.upstreams[0];
  upstream.name = "app";
  upstream.tls.verify = false;
  upstream.servers.resize(1);
  upstream.servers[0].tls = true;
  const tls::KernelSupport none{.reason = "it is old"};
  testing::internal::CaptureStderr();
  EXPECT_NE(load_tls_or_complain(snapshot, none), nullptr);
  upstream.tls.ktls = config::KernelTls::require;
  EXPECT_EQ(load_tls_or_complain(snapshot, none), nullptr);
  EXPECT_NE(load_tls_or_complain(snapshot, {.aes128_gcm = true}), nullptr);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("[upstream.app.tls]: ktls = \"require\", but this machine has no kernel TLS: "
                      "it is old\n"),
            std::string::npos)
      << said;
}

TEST(TlsFiles, TheKernelIsDescribed) {
  EXPECT_EQ(describe(tls::KernelSupport{.reason = "it is old"}), "ktls: no: it is old");
  EXPECT_EQ(describe({.aes128_gcm = true, .chacha20_poly1305 = true, .reason = "no AES-256"}),
            "ktls: yes: AES-128-GCM ChaCha20-Poly1305; no AES-256");
}

TEST(TlsFiles, AnUpstreamsFilesAreTriedToo) {
  config::Snapshot snapshot;
  snapshot.upstreams.resize(1);
  config::Upstream& upstream = snapshot.upstreams[0];
  upstream.name = "app";
  upstream.tls.ca = "/nowhere/ca.pem";
  upstream.servers.resize(1);
  EXPECT_NE(load_tls_or_complain(snapshot, {}), nullptr);
  upstream.servers[0].tls = true;
  testing::internal::CaptureStderr();
  EXPECT_EQ(load_tls_or_complain(snapshot, {}), nullptr);
  upstream.tls.verify = false;
  upstream.tls.cert = "/nowhere/c.pem";
  EXPECT_EQ(load_tls_or_complain(snapshot, {}), nullptr);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "[upstream.app.tls]: /nowhere/ca.pem cannot be read: No such file or directory\n"
            "[upstream.app.tls]: /nowhere/c.pem cannot be read: No such file or directory\n");
}

}  // namespace
}  // namespace ringside::app
