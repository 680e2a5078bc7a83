#include "ocsp_refresher.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <condition_variable>
#include <ctime>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "../tls/authority.h"

namespace ringside::app {
namespace {

using std::chrono::milliseconds;

// ---- when to ask again

TEST(OcspTimes, FailuresAreFurtherAndFurtherApart) {
  const OcspTiming timing;
  EXPECT_EQ(retry_after(timing, 1, 0.5), milliseconds(10'000));
  EXPECT_EQ(retry_after(timing, 2, 0.5), milliseconds(20'000));
  EXPECT_EQ(retry_after(timing, 4, 0.5), milliseconds(80'000));
  EXPECT_EQ(retry_after(timing, 100, 0.5), milliseconds(3'600'000));
  EXPECT_EQ(retry_after(timing, 4'000'000'000U, 0.5), milliseconds(3'600'000));
  EXPECT_EQ(retry_after(timing, 1, 0.0), milliseconds(7'500));
  EXPECT_EQ(retry_after(timing, 1, 1.0), milliseconds(12'500));
}

TEST(OcspTimes, AResponseIsRenewedAtHalfOfItsTime) {
  const OcspTiming timing;
  constexpr tls::UnixSeconds hour = 3'600;
  auto hours_after = [&](tls::UnixSeconds from, tls::UnixSeconds until, double random) {
    const tls::Staple staple{{}, from * hour, until * hour};
    return static_cast<double>(refresh_after(timing, staple, 1'000 * hour, random).count()) /
           3'600'000;
  };
  EXPECT_DOUBLE_EQ(hours_after(1'000, 1'024, 0.5), 12);
  EXPECT_DOUBLE_EQ(hours_after(1'000, 1'024, 0.0), 12 * 0.9);
  EXPECT_DOUBLE_EQ(hours_after(1'000, 1'024, 1.0), 12 * 1.1);
  // Half of it was over when it came: at half of the rest.
  EXPECT_DOUBLE_EQ(hours_after(900, 1'010, 0.5), 5);
  EXPECT_DOUBLE_EQ(hours_after(990, 1'030, 0.5), 10);
  // Not all the time, and not never.
  EXPECT_DOUBLE_EQ(hours_after(1'000, 1'000, 0.5), 1.0 / 60);
  EXPECT_DOUBLE_EQ(hours_after(1'000, 9'000, 0.5), 4 * 24);
}

// ---- the thread

class Log final : public base::Logger {
 public:
  void log(base::LogLevel level, std::string_view event, std::string_view text) override {
    EXPECT_EQ(event, "ocsp");
    const std::lock_guard lock(mutex_);
    lines_.push_back((level == base::LogLevel::warn ? "warn: " : "") + std::string(text));
    changed_.notify_all();
  }
  std::string next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !lines_.empty(); });
    std::string line = lines_.front();
    lines_.pop_front();
    return line;
  }
  bool empty() {
    const std::lock_guard lock(mutex_);
    return lines_.empty();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> lines_;
};

// Gives its answers in turn; when there is none, it hangs until it is cancelled or gets one.
class Responders {
 public:
  using Answer = std::expected<tls::Der, std::string>;

  void add(const std::string& bytes) { put(tls::Der(bytes.begin(), bytes.end())); }
  void fail(const std::string& why) { put(std::unexpected(why)); }
  OcspFetch function() {
    return [this](const tls::OcspQuestion& question, int cancel) { return get(question, cancel); };
  }
  void wait_for_questions(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return asked_.size() >= count; });
  }
  std::vector<tls::Der> asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  void put(Answer answer) {
    const std::lock_guard lock(mutex_);
    answers_.push_back(std::move(answer));
    changed_.notify_all();
  }
  Answer get(const tls::OcspQuestion& question, int cancel) {
    std::unique_lock lock(mutex_);
    asked_.push_back(question.certificate);
    changed_.notify_all();
    while (answers_.empty()) {
      lock.unlock();
      pollfd entry{cancel, POLLIN, 0};
      if (::poll(&entry, 1, 1) > 0) return std::unexpected("stopped");
      lock.lock();
    }
    Answer answer = std::move(answers_.front());
    answers_.pop_front();
    return answer;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Answer> answers_;
  std::vector<tls::Der> asked_;
};

class OcspRefresherTest : public testing::Test {
 protected:
  OcspRefresherTest() {
    snapshot_.tls.resize(1);
    snapshot_.tls[0].name = "a";
    snapshot_.tls[0].ocsp = config::Ocsp::fetch;
    snapshot_.tls[0].certificates.push_back(folder_.files("site", site_, &root_));
    file_ = "[tls.a]: " + folder_.path("site.pem");
  }
  std::shared_ptr<const tls::Material> load() {
    auto loaded = tls::load_material(snapshot_, tls::test::now(), 0, {});
    EXPECT_TRUE(loaded.errors.empty());
    return loaded.material;
  }
  static std::string stapled(const tls::Material& material, std::size_t entry = 0) {
    const auto staple = material.entries[entry].credentials->certificates[0].staple->get();
    return staple ? std::string(staple->response.begin(), staple->response.end()) : "";
  }
  static constexpr const char* url = "http://ocsp.test/";

  tls::test::Folder folder_;
  tls::test::Issued root_ = tls::test::issue({.common_name = "root", .authority = true});
  tls::test::Issued site_ = tls::test::issue({.common_name = "site", .responders = {url}}, &root_);
  config::Snapshot snapshot_;
  std::string file_;
  Log log_;
  Responders responders_;
  OcspTiming quick_{milliseconds(1), milliseconds(4), milliseconds(1), milliseconds(1)};
  OcspTiming slow_;
};

TEST_F(OcspRefresherTest, AResponseIsStapledAndRenewed) {
  const auto material = load();
  OcspRefresher refresher(log_, responders_.function(), quick_);
  refresher.watch(*material);
  const std::string first = ocsp_response(site_, root_, 3600);
  responders_.add(first);
  const std::string line = log_.next();
  EXPECT_TRUE(
      line.starts_with(file_ + ": the OCSP response of " + url + " is stapled, good until "))
      << line;
  EXPECT_EQ(stapled(*material), first);
  const std::string second = ocsp_response(site_, root_, 7200);
  ASSERT_NE(first, second);
  responders_.add(second);
  log_.next();
  EXPECT_EQ(stapled(*material), second);
}

TEST_F(OcspRefresherTest, FailuresAreSaidAndTheOneOfBeforeStays) {
  const auto material = load();
  OcspRefresher refresher(log_, responders_.function(), quick_);
  refresher.watch(*material);
  responders_.fail("it is ill");
  EXPECT_EQ(log_.next(), "warn: " + file_ + ": no OCSP response from " + url +
                             ": it is ill; asked again in 1 s, and until then nothing is stapled");
  const std::string good = ocsp_response(site_, root_, 3600);
  responders_.add(good);
  log_.next();
  for (const std::string& bad :
       {std::string("nonsense"), ocsp_response(root_, root_, 3600),
        ocsp_response(site_, site_, 3600), ocsp_response(site_, root_, -60)}) {
    responders_.add(bad);
    const std::string line = log_.next();
    EXPECT_TRUE(
        line.starts_with("warn: " + file_ + ": no OCSP response from " + url + ": its answer "))
        << line;
    EXPECT_TRUE(line.ends_with(" stays")) << line;
    EXPECT_EQ(stapled(*material), good);
  }
}

TEST_F(OcspRefresherTest, ARevokedCertificateIsSaidAndNothingIsStapled) {
  const auto material = load();
  OcspRefresher refresher(log_, responders_.function(), quick_);
  refresher.watch(*material);
  responders_.add(ocsp_response(site_, root_, 3600));
  log_.next();
  EXPECT_NE(stapled(*material), "");
  responders_.add(ocsp_response(site_, root_, 3600, V_OCSP_CERTSTATUS_REVOKED));
  const std::string line = log_.next();
  EXPECT_TRUE(line.starts_with("warn: " + file_ + " was revoked on ")) << line;
  EXPECT_TRUE(line.ends_with("; nothing is stapled, and clients may refuse it")) << line;
  EXPECT_EQ(stapled(*material), "");
}

TEST_F(OcspRefresherTest, WhatHasExpiredGoesWithTheNextFailure) {
  const auto material = load();
  OcspRefresher refresher(log_, responders_.function(), quick_);
  refresher.watch(*material);
  responders_.add(ocsp_response(site_, root_, 1));
  // It may be over before it is read; either way nothing of it is left in the end.
  log_.next();
  std::string line;
  do {
    responders_.fail("it is ill");
    line = log_.next();
  } while (!line.ends_with("nothing is stapled"));
  EXPECT_EQ(stapled(*material), "");
}

TEST_F(OcspRefresherTest, WhatIsKnownGoesToCertificatesThatAreLoadedAgain) {
  const auto material = load();
  OcspRefresher refresher(log_, responders_.function(), slow_);
  refresher.watch(*material);
  const std::string response = ocsp_response(site_, root_, 3600);
  responders_.add(response);
  log_.next();
  // Another entry has the same certificate.
  snapshot_.tls.push_back(snapshot_.tls[0]);
  snapshot_.tls[1].name = "b";
  const auto again = load();
  EXPECT_EQ(stapled(*again), "");
  refresher.watch(*again);
  EXPECT_EQ(stapled(*again, 0), response);
  EXPECT_EQ(stapled(*again, 1), response);
  EXPECT_EQ(responders_.asked().size(), 1U) << "nobody was asked again";
}

TEST_F(OcspRefresherTest, ANewCertificateIsAskedAboutAtOnceAndAnOldOneNoMore) {
  const auto material = load();
  OcspRefresher refresher(log_, responders_.function(), slow_);
  refresher.watch(*material);
  responders_.wait_for_questions(1);
  // While the question is still open.
  const auto renewed = tls::test::issue({.common_name = "new", .responders = {url}}, &root_);
  folder_.files("site", renewed, &root_);
  const auto next = load();
  refresher.watch(*next);
  responders_.add(ocsp_response(site_, root_, 3600));
  responders_.wait_for_questions(2);
  EXPECT_EQ(responders_.asked()[1], tls::der_of(renewed.certificate.get()));
  const std::string response = ocsp_response(renewed, root_, 3600);
  responders_.add(response);
  log_.next();
  EXPECT_EQ(stapled(*next), response);
  EXPECT_EQ(stapled(*material), "");
}

TEST_F(OcspRefresherTest, OneThatHangsDoesNotKeepItFromStopping) {
  const auto material = load();
  OcspRefresher refresher(log_, responders_.function(), quick_);
  refresher.watch(*material);
  responders_.wait_for_questions(1);
  refresher.stop();
  EXPECT_TRUE(log_.empty());
  refresher.stop();
}

TEST_F(OcspRefresherTest, WithoutQuestionsThereIsNothingToDo) {
  snapshot_.tls[0].ocsp = config::Ocsp::off;
  const auto material = load();
  OcspRefresher refresher(log_, responders_.function(), quick_);
  refresher.watch(*material);
  refresher.stop();
  EXPECT_TRUE(responders_.asked().empty());
}

}  // namespace
}  // namespace ringside::app
