#include "tls_counts.h"

#include <gtest/gtest.h>

namespace ringside::app {
namespace {

TEST(TlsCounts, AreSummedOverRingsAndNamed) {
  TlsCounts counts;
  EXPECT_EQ(to_string(counts), "none");
  tls::Counters one;
  one.clients.full = 2;
  one.clients.kernel_sends = 2;
  one.clients.kernel_receives = 1;
  one.clients.user_space[static_cast<int>(tls::UserSpace::ended)] = 1;
  tls::Counters two;
  two.clients.full = 3;
  two.clients.resumed = 4;
  two.clients.failed = 5;
  two.clients.user_space[static_cast<int>(tls::UserSpace::cipher)] = 6;
  counts.add(one);
  counts.add(two);
  EXPECT_EQ(to_string(counts),
            "clients: full=5 resumed=4 failed=5 kernel_sends=2 kernel_receives=1 user_space=7 "
            "(cipher=6 ended=1)");
}

TEST(TlsCounts, WhatIsRareIsNamedWhereItWas) {
  TlsCounts counts;
  tls::Counters ring;
  ring.clients.full = 3;
  ring.clients.early_data = 2;
  ring.clients.floods = 1;
  counts.add(ring);
  counts.add(ring);
  EXPECT_TRUE(to_string(counts).starts_with(
      "clients: full=6 resumed=0 failed=0 early_data=4 floods=2 kernel_sends=0"))
      << to_string(counts);
}

TEST(TlsCounts, ServersAreCountedByThemselves) {
  TlsCounts counts;
  tls::Counters ring;
  ring.servers.failed = 1;
  counts.add(ring);
  const std::string servers =
      "servers: full=0 resumed=0 failed=1 kernel_sends=0 kernel_receives=0 user_space=0";
  EXPECT_EQ(to_string(counts), servers);
  ring.clients.full = 1;
  counts = {};
  counts.add(ring);
  EXPECT_EQ(to_string(counts),
            "clients: full=1 resumed=0 failed=0 kernel_sends=0 kernel_receives=0 user_space=0; " +
                servers);
}

}  // namespace
}  // namespace ringside::app
