// What is loaded of a configuration's TLS, and the contexts that rings make from it.
#include "ringside/tls/material.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "authority.h"

namespace ringside::tls::test {
namespace {

using Texts = std::vector<std::string>;

class TlsMaterial : public ::testing::Test {
 protected:
  TlsMaterial() {
    snapshot.tls.resize(2);
    snapshot.tls[0].name = "a";
    snapshot.tls[1].name = "b";
    for (config::Tls& tls : snapshot.tls)
      tls.certificates.push_back(folder.files(tls.name, site, &root));
    snapshot.upstreams.resize(2);
    snapshot.upstreams[0].name = "clear";
    snapshot.upstreams[0].servers.resize(1);
    snapshot.upstreams[1].name = "app";
    snapshot.upstreams[1].tls.ca = folder.chain("ca", {&root});
    snapshot.upstreams[1].servers.resize(2);
    snapshot.upstreams[1].servers[1].tls = true;
  }
  LoadedMaterial load(const KernelSupport& kernel = {}) {
    return load_material(snapshot, now(), 0, kernel);
  }

  Folder folder;
  Issued root = issue({.common_name = "root", .authority = true});
  Issued site = issue({.common_name = "site", .names = {"DNS:a.test"}}, &root);
  config::Snapshot snapshot;
};

// One a [tls.NAME], as many as the snapshot has.
std::vector<config::Listen> listens_of_each() {
  std::vector<config::Listen> out(2);
  out[0].tls = 0;
  out[1].tls = 1;
  return out;
}
const std::vector<config::Listen> listens = listens_of_each();

TEST_F(TlsMaterial, IsAsTheConfigurationHasIt) {
  const LoadedMaterial loaded = load();
  EXPECT_EQ(loaded.errors, Texts());
  EXPECT_EQ(loaded.warnings, Texts());
  ASSERT_NE(loaded.material, nullptr);
  ASSERT_EQ(loaded.material->entries.size(), 2U);
  EXPECT_EQ(loaded.material->entries[1].credentials->config.name, "b");
  EXPECT_NE(loaded.material->entries[1].tickets, nullptr);
  ASSERT_EQ(loaded.material->trust.size(), 2U);
  EXPECT_EQ(loaded.material->trust[0], nullptr) << "it has no https://";
  EXPECT_NE(loaded.material->trust[1], nullptr);
}

TEST_F(TlsMaterial, WithoutTicketsThereAreNoKeys) {
  snapshot.tls[0].tickets = false;
  const LoadedMaterial loaded = load();
  ASSERT_NE(loaded.material, nullptr);
  EXPECT_EQ(loaded.material->entries[0].tickets, nullptr);
}

TEST_F(TlsMaterial, TicketKeysThatAllCanReadAreWarnedOf) {
  const std::string file = folder.write("tickets", std::string(80, 'k'));
  snapshot.tls[1].ticket_keys_file = file;
  EXPECT_EQ(load().warnings, Texts());
  ASSERT_EQ(::chmod(file.c_str(), 0644), 0);
  const LoadedMaterial loaded = load();
  EXPECT_NE(loaded.material, nullptr);
  EXPECT_EQ(loaded.warnings,
            Texts{"[tls.b]: " + file + ": every user of this machine can read the ticket keys"});
  snapshot.tls[1].tickets = false;
  EXPECT_EQ(load().warnings, Texts()) << "nobody uses them";
}

TEST_F(TlsMaterial, EachRingHasContextsOfItsOwn) {
  const LoadedMaterial loaded = load({.aes128_gcm = true});
  ASSERT_NE(loaded.material, nullptr);
  const auto one = server_contexts(*loaded.material, listens);
  const auto two = server_contexts(*loaded.material, listens);
  ASSERT_EQ(one.size(), 2U);
  ASSERT_NE(one[1], nullptr);
  EXPECT_NE(one[1], two[1]);
  EXPECT_EQ(&one[1]->credentials(), loaded.material->entries[1].credentials.get());
  EXPECT_EQ(one[1]->options().protocols, (Texts{"http/1.1", "http/1.0"}));
  const auto clients = client_contexts(*loaded.material, snapshot);
  ASSERT_EQ(clients.size(), 2U);
  EXPECT_EQ(clients[0], nullptr) << "it has no https://";
  ASSERT_NE(clients[1], nullptr);
  EXPECT_TRUE(clients[1]->options().kernel_tls);
}

TEST_F(TlsMaterial, ListenersOfTheSameEntryAndProtocolsShareTheirContext) {
  const LoadedMaterial loaded = load();
  ASSERT_NE(loaded.material, nullptr);
  std::vector<config::Listen> some(5);
  for (std::size_t i = 1; i < some.size(); ++i)
    some[i].tls = 0;
  some[2].http2 = true;
  some[3].http2 = some[3].http1_preferred = true;
  const auto contexts = server_contexts(*loaded.material, some);
  EXPECT_EQ(contexts[0], nullptr) << "it is in clear text";
  EXPECT_EQ(contexts[1]->options().protocols, (Texts{"http/1.1", "http/1.0"}));
  EXPECT_EQ(contexts[2]->options().protocols, (Texts{"h2", "http/1.1", "http/1.0"}));
  EXPECT_EQ(contexts[3]->options().protocols, (Texts{"http/1.1", "http/1.0", "h2"}));
  EXPECT_EQ(contexts[4], contexts[1]);
  some[4].http1 = false;
  some[4].http2 = true;
  EXPECT_EQ(server_contexts(*loaded.material, some)[4]->options().protocols, Texts{"h2"});
}

TEST_F(TlsMaterial, SecretsAreKeptOnlyForAKernelThatTakesThem) {
  snapshot.tls[1].ktls = config::KernelTls::off;
  const LoadedMaterial with = load({.chacha20_poly1305 = true});
  ASSERT_NE(with.material, nullptr);
  EXPECT_TRUE(server_contexts(*with.material, listens)[0]->options().kernel_tls);
  EXPECT_FALSE(server_contexts(*with.material, listens)[1]->options().kernel_tls);
  const LoadedMaterial without = load();
  ASSERT_NE(without.material, nullptr);
  EXPECT_FALSE(server_contexts(*without.material, listens)[0]->options().kernel_tls);
  EXPECT_FALSE(client_contexts(*without.material, snapshot)[1]->options().kernel_tls);
}

TEST_F(TlsMaterial, AllThatIsWrongIsSaid) {
  snapshot.tls[0].certificates[0].key = folder.path("none.key");
  snapshot.tls[0].ktls = config::KernelTls::require;
  snapshot.tls[1].ticket_keys_file = folder.write("tickets", "too short");
  snapshot.upstreams[1].tls.ca = folder.path("none.pem");
  snapshot.upstreams[1].tls.ktls = config::KernelTls::require;
  const LoadedMaterial loaded = load({.reason = "it is old"});
  EXPECT_EQ(loaded.material, nullptr);
  ASSERT_EQ(loaded.errors.size(), 5U);
  EXPECT_EQ(loaded.errors[0],
            "[tls.a]: ktls = \"require\", but this machine has no kernel TLS: it is old");
  EXPECT_TRUE(loaded.errors[1].starts_with("[tls.a]: " + folder.path("none.key")))
      << loaded.errors[1];
  EXPECT_TRUE(loaded.errors[2].starts_with("[tls.b]: " + folder.path("tickets")))
      << loaded.errors[2];
  EXPECT_TRUE(loaded.errors[3].starts_with("[upstream.app.tls]: ktls = \"require\""))
      << loaded.errors[3];
  EXPECT_TRUE(loaded.errors[4].starts_with("[upstream.app.tls]: " + folder.path("none.pem")))
      << loaded.errors[4];
}

TEST_F(TlsMaterial, WhatOpenSslRefusesIsAnErrorOfItsEntry) {
  snapshot.tls[1].ciphers = {"NO-SUCH-CIPHER"};
  const LoadedMaterial loaded = load();
  EXPECT_EQ(loaded.material, nullptr);
  ASSERT_EQ(loaded.errors.size(), 1U);
  EXPECT_TRUE(loaded.errors[0].starts_with("[tls.b]: ")) << loaded.errors[0];
}

TEST_F(TlsMaterial, WarningsNameTheirSection) {
  const Issued old = issue(
      {.common_name = "old", .names = {"DNS:a.test"}, .from_s = -7200, .until_s = -3600}, &root);
  snapshot.tls[1].certificates[0] = folder.files("old", old, &root);
  snapshot.upstreams[1].tls.verify = false;
  const LoadedMaterial loaded = load();
  EXPECT_EQ(loaded.errors, Texts());
  ASSERT_EQ(loaded.warnings.size(), 2U);
  EXPECT_TRUE(loaded.warnings[0].starts_with("[tls.b]: ")) << loaded.warnings[0];
  EXPECT_NE(loaded.warnings[1].find("app"), std::string::npos) << loaded.warnings[1];
}

TEST_F(TlsMaterial, CredentialsOfOneEntryAreReplaced) {
  const LoadedMaterial loaded = load({.aes128_gcm = true});
  ASSERT_NE(loaded.material, nullptr);
  const auto fresh = load_credentials(snapshot.tls[1], now()).credentials;
  const auto changed = with_credentials(*loaded.material, 1, fresh);
  EXPECT_EQ(changed->entries[1].credentials, fresh);
  EXPECT_EQ(changed->entries[1].tickets, loaded.material->entries[1].tickets);
  EXPECT_EQ(changed->entries[0].credentials, loaded.material->entries[0].credentials);
  EXPECT_EQ(changed->trust, loaded.material->trust);
  EXPECT_TRUE(changed->kernel.aes128_gcm);
  EXPECT_NE(loaded.material->entries[1].credentials, fresh) << "the old one is as it was";
  // Contexts follow, and those that are good still are kept.
  const auto before = server_contexts(*loaded.material, listens);
  const auto after = server_contexts(*changed, listens, before);
  EXPECT_EQ(after[0], before[0]);
  EXPECT_EQ(&after[1]->credentials(), fresh.get());
}

}  // namespace
}  // namespace ringside::tls::test
