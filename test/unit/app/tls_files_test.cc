#include "tls_files.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../tls/authority.h"

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
            "ktls: yes: AES-128-GCM ChaCha20-Poly1305, rekey=no; no AES-256");
  EXPECT_EQ(describe({.aes256_gcm = true, .rekey = true}), "ktls: yes: AES-256-GCM, rekey=yes");
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

// ---- files that change

struct Log final : base::Logger {
  void log(base::LogLevel level, std::string_view, std::string_view text) override {
    lines.push_back((level == base::LogLevel::error ? "error: " : "") + std::string(text));
  }
  std::vector<std::string> news() { return std::exchange(lines, {}); }
  std::vector<std::string> lines;
};
using Lines = std::vector<std::string>;

class TlsFilesTest : public testing::Test {
 protected:
  TlsFilesTest() {
    auto snapshot = std::make_shared<config::Snapshot>();
    snapshot->tls.resize(2);
    snapshot->tls[0].name = "a";
    snapshot->tls[1].name = "b";
    for (config::Tls& tls : snapshot->tls)
      tls.certificates.push_back(issue(tls.name, "one"));
    snapshot_ = snapshot;
  }

  config::TlsCertificate issue(const std::string& file, const std::string& name) {
    return folder_.files(file, tls::test::issue({.common_name = name}));
  }
  void start() {
    // Of the clock that TlsFiles reads, or the keys are as old as the machine is up.
    const std::chrono::milliseconds now = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now().time_since_epoch());
    const auto loaded = tls::load_material(*snapshot_, std::time(nullptr),
                                           static_cast<std::uint64_t>(now.count()), {});
    ASSERT_NE(loaded.material, nullptr);
    first_ = loaded.material;
    files_ = std::make_unique<TlsFiles>(
        snapshot_, loaded.material, log_,
        [this](std::shared_ptr<const tls::Material> material) { published_.push_back(material); });
  }

  tls::test::Folder folder_;
  Log log_;
  config::SnapshotRef snapshot_;
  std::shared_ptr<const tls::Material> first_;
  std::vector<std::shared_ptr<const tls::Material>> published_;
  std::unique_ptr<TlsFiles> files_;
};

TEST_F(TlsFilesTest, ThatDoNotChangeAreLeftAlone) {
  start();
  files_->look();
  files_->look();
  EXPECT_TRUE(published_.empty());
  EXPECT_EQ(log_.news(), Lines());
}

TEST_F(TlsFilesTest, ThatChangeAreUsedFromThenOn) {
  start();
  issue("b", "two");
  files_->look();
  EXPECT_EQ(log_.news(), (Lines{"[tls.b]: changed files are in use"}));
  ASSERT_EQ(published_.size(), 1U);
  EXPECT_EQ(published_[0]->entries[0].credentials, first_->entries[0].credentials);
  EXPECT_NE(published_[0]->entries[1].credentials, first_->entries[1].credentials);
  files_->look();
  EXPECT_EQ(published_.size(), 1U);
  // The next change is on top of this one.
  issue("a", "three");
  files_->look();
  ASSERT_EQ(published_.size(), 2U);
  EXPECT_EQ(published_[1]->entries[1].credentials, published_[0]->entries[1].credentials);
  EXPECT_NE(published_[1]->entries[0].credentials, published_[0]->entries[0].credentials);
}

TEST_F(TlsFilesTest, ThatAreNotGoodAreComplainedAboutOnceAndThoseOfBeforeStay) {
  start();
  const std::string certificate = snapshot_->tls[1].certificates[0].cert;
  folder_.write(certificate.substr(certificate.rfind('/') + 1), "nonsense");
  files_->look();
  const Lines said = log_.news();
  ASSERT_EQ(said.size(), 1U);
  EXPECT_TRUE(said[0].starts_with("error: [tls.b]: " + certificate)) << said[0];
  EXPECT_TRUE(said[0].ends_with("; the files of before stay")) << said[0];
  files_->look();
  EXPECT_EQ(log_.news(), Lines());
  EXPECT_TRUE(published_.empty());
  issue("b", "two");
  files_->look();
  EXPECT_EQ(log_.news(), (Lines{"[tls.b]: changed files are in use"}));
  EXPECT_EQ(published_.size(), 1U);
}

TEST_F(TlsFilesTest, TicketKeysChangeWhenTheirTimeIsOver) {
  auto snapshot = std::make_shared<config::Snapshot>(*snapshot_);
  snapshot->tls[0].ticket_rotation_ms = 0;  // always
  snapshot->tls[1].tickets = false;
  snapshot_ = snapshot;
  start();
  const auto before = first_->entries[0].tickets->current();
  files_->look();
  EXPECT_EQ(log_.news(), (Lines{"[tls.a]: new ticket key"}));
  EXPECT_NE(before.name, first_->entries[0].tickets->current().name);
  EXPECT_TRUE(published_.empty()) << "contexts look at them each time";
}

TEST_F(TlsFilesTest, TicketKeysAreTakenUpWhenTheirFileChanges) {
  auto snapshot = std::make_shared<config::Snapshot>(*snapshot_);
  const std::string old_key(80, 'o');
  const std::string new_key(80, 'n');
  const std::string file = folder_.write("tickets", old_key);
  snapshot->tls[1].ticket_keys_file = file;
  snapshot_ = snapshot;
  start();
  const tls::TicketKeys& keys = *first_->entries[1].tickets;
  const auto first = keys.current();
  const auto made_here = first_->entries[0].tickets->current();
  files_->look();
  EXPECT_EQ(log_.news(), Lines());

  // A new key behind the first one: it opens, and does not seal yet.
  folder_.write("tickets", old_key + new_key);
  files_->look();
  EXPECT_EQ(log_.news(), (Lines{"[tls.b]: changed ticket keys are in use"}));
  EXPECT_EQ(keys.current().name, first.name);
  folder_.write("tickets", new_key + old_key);
  files_->look();
  EXPECT_EQ(log_.news(), (Lines{"[tls.b]: changed ticket keys are in use"}));
  const auto second = keys.current();
  EXPECT_NE(second.name, first.name);
  tls::TicketKey found;
  bool is_current = true;
  EXPECT_TRUE(keys.find(first.name, found, is_current));
  EXPECT_FALSE(is_current);
  EXPECT_EQ(found.cipher, first.cipher);

  EXPECT_EQ(first_->entries[0].tickets->current().name, made_here.name) << "of another entry";
  EXPECT_TRUE(published_.empty()) << "contexts look at them each time";
}

TEST_F(TlsFilesTest, TicketKeysThatAreNotGoodAreComplainedAboutOnceAndThoseOfBeforeStay) {
  auto snapshot = std::make_shared<config::Snapshot>(*snapshot_);
  const std::string file = folder_.write("tickets", std::string(80, 'o'));
  snapshot->tls[0].ticket_keys_file = file;
  snapshot_ = snapshot;
  start();
  const tls::TicketKeys& keys = *first_->entries[0].tickets;
  const auto first = keys.current();
  folder_.write("tickets", "short");
  files_->look();
  EXPECT_EQ(log_.news(), (Lines{"error: [tls.a]: " + file +
                                " has 5 bytes; ticket keys are 80 or 48 bytes each; "
                                "the ticket keys of before stay"}));
  files_->look();
  EXPECT_EQ(log_.news(), Lines());
  std::filesystem::remove(file);
  files_->look();
  EXPECT_EQ(log_.news(), (Lines{"error: [tls.a]: " + file +
                                " cannot be read: No such file or directory; "
                                "the ticket keys of before stay"}));
  EXPECT_EQ(keys.current().name, first.name);
  folder_.write("tickets", std::string(80, 'n'));
  files_->look();
  EXPECT_EQ(log_.news(), (Lines{"[tls.a]: changed ticket keys are in use"}));
  EXPECT_NE(keys.current().name, first.name);
}

}  // namespace
}  // namespace ringside::app
