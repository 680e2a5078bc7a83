#include "tls_files.h"

#include <gtest/gtest.h>

namespace ringside::app {
namespace {

TEST(TlsFiles, WhatCannotBeUsedIsSaidOfEveryEntry) {
  config::Snapshot snapshot;
  EXPECT_TRUE(check_tls_files(snapshot));
  snapshot.tls.resize(2);
  snapshot.tls[0].name = "a";
  snapshot.tls[0].certificates.push_back({"/nowhere/a.pem", "/nowhere/a.key", {}});
  snapshot.tls[1].name = "b";
  snapshot.tls[1].certificates = snapshot.tls[0].certificates;
  snapshot.tls[1].ticket_keys_file = "/nowhere/tickets";
  testing::internal::CaptureStderr();
  EXPECT_FALSE(check_tls_files(snapshot));
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "[tls.a]: /nowhere/a.pem cannot be read: No such file or directory\n"
            "[tls.a]: /nowhere/a.key cannot be read: No such file or directory\n"
            "[tls.b]: /nowhere/a.pem cannot be read: No such file or directory\n"
            "[tls.b]: /nowhere/a.key cannot be read: No such file or directory\n"
            "[tls.b]: /nowhere/tickets cannot be read: No such file or directory\n");
}

TEST(TlsFiles, NothingIsServedInClearTextInstead) {
  config::Snapshot snapshot;
  snapshot.listens.resize(1);
  snapshot.listens[0].name = "web";
  snapshot.upstreams.resize(1);
  snapshot.upstreams[0].name = "app";
  snapshot.upstreams[0].servers.resize(1);
  EXPECT_EQ(unserved_tls(snapshot), "");
  snapshot.upstreams[0].servers[0].tls = true;
  EXPECT_TRUE(unserved_tls(snapshot).starts_with("[upstream.app] https://: "));
  snapshot.listens[0].tls = 0;
  EXPECT_TRUE(unserved_tls(snapshot).starts_with("[listen.web] tls: "));
}

TEST(TlsFiles, AnUpstreamsFilesAreTriedToo) {
  config::Snapshot snapshot;
  snapshot.upstreams.resize(1);
  config::Upstream& upstream = snapshot.upstreams[0];
  upstream.name = "app";
  upstream.tls.ca = "/nowhere/ca.pem";
  upstream.servers.resize(1);
  EXPECT_TRUE(check_tls_files(snapshot));
  upstream.servers[0].tls = true;
  testing::internal::CaptureStderr();
  EXPECT_FALSE(check_tls_files(snapshot));
  upstream.tls.verify = false;
  upstream.tls.cert = "/nowhere/c.pem";
  EXPECT_FALSE(check_tls_files(snapshot));
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "[upstream.app.tls]: /nowhere/ca.pem cannot be read: No such file or directory\n"
            "[upstream.app.tls]: /nowhere/c.pem cannot be read: No such file or directory\n");
}

}  // namespace
}  // namespace ringside::app
