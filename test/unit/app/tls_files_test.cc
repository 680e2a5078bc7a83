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

}  // namespace
}  // namespace ringside::app
