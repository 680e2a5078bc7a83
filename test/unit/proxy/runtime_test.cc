// What a Runtime brings to the rings, ready made, to speak TLS with.
#include <gtest/gtest.h>

#include <memory>

#include "ringside/proxy/worker.h"

#include "../tls/authority.h"

namespace ringside::proxy {
namespace {

class RuntimeTls : public testing::Test {
 protected:
  RuntimeTls() {
    auto snapshot = std::make_shared<config::Snapshot>();
    snapshot->tls.resize(2);
    snapshot->tls[0].name = "a";
    snapshot->tls[1].name = "b";
    for (config::Tls& tls : snapshot->tls)
      tls.certificates.push_back(folder_.files(tls.name, tls::test::issue({.common_name = "a"})));
    snapshot->listens.resize(2);
    snapshot->listens[0].tls = 0;
    snapshot->listens[1].tls = 1;
    snapshot->upstreams.resize(1);
    snapshot->upstreams[0].name = "app";
    snapshot->upstreams[0].tls.verify = false;
    snapshot->upstreams[0].servers.resize(1);
    snapshot->upstreams[0].servers[0].tls = true;
    snapshot_ = snapshot;
    material_ = tls::load_material(*snapshot_, tls::test::now(), 0, {}).material;
  }

  tls::test::Folder folder_;
  config::SnapshotRef snapshot_;
  std::shared_ptr<const tls::Material> material_;
};

TEST_F(RuntimeTls, ThereIsNoneInClearText) {
  EXPECT_TRUE(Runtime(snapshot_, 2).tls.empty());
}

TEST_F(RuntimeTls, EachRingHasContextsOfItsOwn) {
  ASSERT_NE(material_, nullptr);
  const Runtime runtime(snapshot_, 2, nullptr, material_);
  ASSERT_EQ(runtime.tls.size(), 2U);
  for (const tls::ContextSet& tls : runtime.tls) {
    ASSERT_EQ(tls.servers.size(), 2U);
    ASSERT_EQ(tls.clients.size(), 1U);
    EXPECT_NE(tls.servers[0], nullptr);
    EXPECT_NE(tls.clients[0], nullptr);
  }
  EXPECT_NE(runtime.tls[0].servers[1], runtime.tls[1].servers[1]);
  EXPECT_NE(runtime.tls[0].clients[0], runtime.tls[1].clients[0]);
}

TEST_F(RuntimeTls, WhatIsStillGoodIsKept) {
  ASSERT_NE(material_, nullptr);
  const Runtime before(snapshot_, 2, nullptr, material_);
  const auto fresh = tls::load_credentials(snapshot_->tls[1], tls::test::now()).credentials;
  const Runtime after(snapshot_, 2, &before, tls::with_credentials(*material_, 1, fresh));
  for (unsigned ring = 0; ring < 2; ++ring) {
    EXPECT_EQ(after.tls[ring].servers[0], before.tls[ring].servers[0]);
    EXPECT_EQ(&after.tls[ring].servers[1]->credentials(), fresh.get());
    EXPECT_EQ(after.tls[ring].clients, before.tls[ring].clients) << "with the sessions they have";
  }
  EXPECT_NE(after.tls[0].servers[1], after.tls[1].servers[1]);
}

TEST_F(RuntimeTls, AnotherConfigurationHasOtherUpstreams) {
  ASSERT_NE(material_, nullptr);
  const Runtime before(snapshot_, 1, nullptr, material_);
  const auto other = std::make_shared<const config::Snapshot>(*snapshot_);
  // A ring more: it gets contexts too.
  const Runtime after(other, 2, &before, material_);
  ASSERT_EQ(after.tls.size(), 2U);
  EXPECT_NE(after.tls[0].clients[0], before.tls[0].clients[0]);
  EXPECT_NE(after.tls[1].servers[0], nullptr);
}

}  // namespace
}  // namespace ringside::proxy
