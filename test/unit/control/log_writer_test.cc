#include "ringside/control/log_writer.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "access_sink.h"
#include "event_queue.h"

namespace ringside::control {
namespace {

using base::LogLevel;

class LogWriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "ringside-log-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    options_.log.file = folder_ / "error.log";
    options_.log.access_file = folder_ / "access.log";
  }
  void TearDown() override {
    writer_.reset();
    std::filesystem::remove_all(folder_);
  }
  LogWriter& open() {
    auto writer = LogWriter::open(options_);
    EXPECT_TRUE(writer) << writer.error();
    writer_ = std::move(*writer);
    return *writer_;
  }
  std::vector<std::string> lines(const char* name) const {
    std::ifstream file(folder_ / name);
    std::vector<std::string> found;
    for (std::string line; std::getline(file, line);)
      found.push_back(line);
    return found;
  }
  static proxy::AccessRecord record(std::string_view target) {
    proxy::AccessRecord made;
    made.client_address = "10.0.0.9";
    made.method = "GET";
    made.target = target;
    made.status = 200;
    return made;
  }

  std::filesystem::path folder_;
  LogWriterOptions options_;
  std::unique_ptr<LogWriter> writer_;
};

TEST_F(LogWriterTest, WritesOneReadableLineAnEvent) {
  open().log(LogLevel::info, "ready", "listen.web=127.0.0.1:8080 pid=1");
  ASSERT_EQ(lines("error.log").size(), 1U);
  EXPECT_TRUE(std::regex_match(
      lines("error.log")[0],
      std::regex(
          R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z info ready listen\.web=127\.0\.0\.1:8080 pid=1)")))
      << lines("error.log")[0];
}

TEST_F(LogWriterTest, EscapesControlBytesOfEvents) {
  open().log(LogLevel::warn, "upstream", "bad\nFAKE \x1b[0m");
  ASSERT_EQ(lines("error.log").size(), 1U);
  EXPECT_NE(lines("error.log")[0].find(R"(warn upstream bad\nFAKE \u001b[0m)"), std::string::npos);
}

TEST_F(LogWriterTest, LeavesOutLevelsBelowItsOwn) {
  options_.log.level = config::Log::Level::warn;
  LogWriter& writer = open();
  EXPECT_FALSE(writer.enabled(LogLevel::info));
  writer.log(LogLevel::debug, "a", "x");
  writer.log(LogLevel::info, "a", "x");
  writer.log(LogLevel::warn, "a", "x");
  writer.log(LogLevel::error, "a", "x");
  EXPECT_EQ(lines("error.log").size(), 2U);
}

TEST_F(LogWriterTest, LimitsOneEventAndAccountsForTheRestAtTheEnd) {
  LogWriter& writer = open();
  for (int i = 0; i < 500; ++i)
    writer.log(LogLevel::warn, "accept", "no descriptors left");
  writer.log(LogLevel::warn, "other", "is heard");
  EXPECT_TRUE(writer.finish(1000));
  const auto found = lines("error.log");
  unsigned shown = 0;
  unsigned left_out = 0;
  for (const std::string& line : found) {
    if (line.find("warn accept no descriptors left") != std::string::npos) ++shown;
    std::smatch match;
    if (std::regex_search(line, match, std::regex(R"((\d+) similar lines left out)"))) {
      left_out += static_cast<unsigned>(std::stoul(match[1]));
    }
  }
  EXPECT_EQ(shown + left_out, 500U);
  EXPECT_GE(left_out, 400U);
  EXPECT_TRUE(std::any_of(found.begin(), found.end(), [](const std::string& line) {
    return line.find("warn other is heard") != std::string::npos;
  }));
}

TEST_F(LogWriterTest, WritesLongLinesOfItsOwnThreadWhole) {
  const std::string text(5000, 'x');
  open().log(LogLevel::info, "ready", text);
  ASSERT_EQ(lines("error.log").size(), 1U);
  EXPECT_NE(lines("error.log")[0].find(text), std::string::npos);
}

TEST_F(LogWriterTest, WakesItsOwnerForEventsOfOtherThreads) {
  LogWriter& writer = open();
  std::thread([&writer] { writer.log(LogLevel::warn, "other", "from a ring"); }).join();
  EXPECT_TRUE(lines("error.log").empty());
  pollfd entry{.fd = writer.wake_descriptor(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&entry, 1, 0), 1);
  writer.flush();
  ASSERT_EQ(lines("error.log").size(), 1U);
  EXPECT_NE(lines("error.log")[0].find("warn other from a ring"), std::string::npos);
  EXPECT_EQ(::poll(&entry, 1, 0), 0);
}

TEST_F(LogWriterTest, KeepsTheOrderOfQueuedAndDirectLines) {
  LogWriter& writer = open();
  std::thread([&writer] { writer.log(LogLevel::info, "first", "x"); }).join();
  writer.log(LogLevel::info, "second", "x");
  const auto found = lines("error.log");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_NE(found[0].find("info first"), std::string::npos);
}

TEST_F(LogWriterTest, CountsEventsThatDidNotFit) {
  options_.event_queue_places = 2;
  LogWriter& writer = open();
  std::thread([&writer] {
    for (const char* event : {"a", "b", "c", "d", "e"})
      writer.log(LogLevel::info, event, "x");
  }).join();
  writer.flush();
  const auto found = lines("error.log");
  ASSERT_EQ(found.size(), 3U);
  EXPECT_NE(found[2].find("warn log 3 lines were lost"), std::string::npos) << found[2];
}

TEST_F(LogWriterTest, WritesAccessRecordsOfEveryRing) {
  options_.rings = 2;
  LogWriter& writer = open();
  writer.access(0)->record(record("/zero"));
  writer.access(1)->record(record("/one"));
  EXPECT_EQ(writer.access(2), nullptr);
  writer.flush();
  const auto found = lines("access.log");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_NE(found[0].find(R"("target":"/zero")"), std::string::npos);
  EXPECT_NE(found[1].find(R"("target":"/one")"), std::string::npos);
}

TEST_F(LogWriterTest, WritesCombined) {
  options_.log.access = config::Log::Access::combined;
  LogWriter& writer = open();
  writer.access(0)->record(record("/x"));
  writer.flush();
  ASSERT_EQ(lines("access.log").size(), 1U);
  EXPECT_EQ(lines("access.log")[0],
            "10.0.0.9 - - [01/Jan/1970:00:00:00 +0000] \"GET /x HTTP/1.1\" 200 0 \"-\" \"-\"");
}

TEST_F(LogWriterTest, HasNoSinkWhenTheAccessLogIsOff) {
  options_.log.access = config::Log::Access::off;
  LogWriter& writer = open();
  EXPECT_EQ(writer.access(0), nullptr);
  writer.flush();
  EXPECT_FALSE(std::filesystem::exists(folder_ / "access.log"));
}

TEST_F(LogWriterTest, SharesOneOutputForOnePath) {
  options_.log.access_file = options_.log.file;
  LogWriter& writer = open();
  writer.access(0)->record(record("/x"));
  std::thread([&writer] { writer.log(LogLevel::info, "event", "x"); }).join();
  writer.flush();
  EXPECT_EQ(lines("error.log").size(), 2U);
}

TEST_F(LogWriterTest, DropsAndCountsWhenARingIsTooQuick) {
  options_.access_queue_bytes = 4096;
  LogWriter& writer = open();
  for (int i = 0; i < 100; ++i)
    writer.access(0)->record(record("/x"));
  writer.flush();
  const std::size_t written = lines("access.log").size();
  EXPECT_GT(written, 0U);
  ASSERT_LT(written, 100U);
  ASSERT_EQ(lines("error.log").size(), 1U);
  EXPECT_NE(lines("error.log")[0].find("warn access-log " + std::to_string(100 - written) +
                                       " records were lost"),
            std::string::npos)
      << lines("error.log")[0];
}

TEST_F(LogWriterTest, CutsTextsThatWouldFillTheQueue) {
  LogWriter& writer = open();
  const std::string long_text(100'000, 'u');
  proxy::AccessRecord made = record("/x");
  made.user_agent = long_text;
  writer.access(0)->record(made);
  writer.flush();
  ASSERT_EQ(lines("access.log").size(), 1U);
  EXPECT_NE(
      lines("access.log")[0].find(std::string(RingAccessSink::text_bytes_max - 3, 'u') + "...\""),
      std::string::npos);
}

TEST_F(LogWriterTest, WakesForTheFirstRecordAfterAnIdleTime) {
  LogWriter& writer = open();
  writer.access(0)->record(record("/busy"));
  writer.flush();
  const int busy_ms = writer.wait_ms();
  pollfd entry{.fd = writer.wake_descriptor(), .events = POLLIN, .revents = 0};
  writer.access(0)->record(record("/in-a-batch"));
  EXPECT_EQ(::poll(&entry, 1, 0), 0);
  writer.flush();
  writer.flush();  // finds nothing
  EXPECT_GT(writer.wait_ms(), busy_ms);
  writer.access(0)->record(record("/first"));
  EXPECT_EQ(::poll(&entry, 1, 0), 1);
}

TEST_F(LogWriterTest, WakesWhenAQueueIsHalfFull) {
  options_.access_queue_bytes = 16'384;
  LogWriter& writer = open();
  pollfd entry{.fd = writer.wake_descriptor(), .events = POLLIN, .revents = 0};
  writer.access(0)->record(record("/x"));
  ASSERT_EQ(::poll(&entry, 1, 0), 0);
  for (int i = 0; i < 40; ++i)
    writer.access(0)->record(record("/x"));
  EXPECT_EQ(::poll(&entry, 1, 0), 1);
}

TEST_F(LogWriterTest, FollowsARotationOfBothFiles) {
  LogWriter& writer = open();
  writer.access(0)->record(record("/old"));
  writer.log(LogLevel::info, "old", "x");
  std::filesystem::rename(folder_ / "access.log", folder_ / "access.1");
  std::filesystem::rename(folder_ / "error.log", folder_ / "error.1");
  writer.reopen();
  writer.access(0)->record(record("/new"));
  writer.log(LogLevel::info, "new", "x");
  writer.flush();
  EXPECT_EQ(lines("access.1").size(), 1U);
  EXPECT_EQ(lines("error.1").size(), 1U);
  EXPECT_EQ(lines("access.log").size(), 1U);
  EXPECT_EQ(lines("error.log").size(), 1U);
}

TEST_F(LogWriterTest, SaysOnceThatAFileCannotBeWritten) {
  options_.log.access_file = "/dev/full";
  LogWriter& writer = open();
  for (int i = 0; i < 5; ++i) {
    writer.access(0)->record(record("/x"));
    writer.flush();
  }
  ASSERT_EQ(lines("error.log").size(), 1U);
  EXPECT_NE(lines("error.log")[0].find("error log /dev/full cannot be written: No space left"),
            std::string::npos);
  EXPECT_FALSE(writer.finish(1));
}

TEST_F(LogWriterTest, NamesTheFileThatCannotBeOpened) {
  options_.log.access_file = folder_ / "missing" / "access.log";
  const auto writer = LogWriter::open(options_);
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error(),
            "log.access: " + options_.log.access_file + ": No such file or directory");
}

// Rings record and log as fast as they can while the owner flushes: what was not dropped is there,
// once, and in the order of its ring.
TEST_F(LogWriterTest, LosesNothingSilentlyUnderLoad) {
  constexpr unsigned rings = 2;
  constexpr unsigned count = 3000;
  options_.rings = rings;
  options_.access_queue_bytes = 1 << 18;
  LogWriter& writer = open();
  std::atomic<unsigned> running{rings};
  std::vector<std::thread> group;
  for (unsigned ring = 0; ring < rings; ++ring) {
    group.emplace_back([&, ring] {
      for (unsigned i = 0; i < count; ++i) {
        const std::string target = "/" + std::to_string(ring) + "/" + std::to_string(i);
        writer.access(ring)->record(record(target));
        if (i % 100 == 0) writer.log(LogLevel::info, "load", target);
        if (i % 64 == 0) std::this_thread::yield();
      }
      running -= 1;
    });
  }
  while (running != 0)
    writer.flush();
  for (std::thread& thread : group)
    thread.join();
  EXPECT_TRUE(writer.finish(10'000));

  std::uint64_t lost = 0;
  for (const std::string& line : lines("error.log")) {
    std::smatch match;
    if (std::regex_search(line, match, std::regex(R"(access-log (\d+) records were lost)"))) {
      lost += std::stoul(match[1]);
    }
  }
  std::vector<long> last(rings, -1);
  std::uint64_t written = 0;
  for (const std::string& line : lines("access.log")) {
    const auto at = line.find(R"("target":"/)") + 11;
    const unsigned ring = static_cast<unsigned>(line[at] - '0');
    const long number = std::stol(line.substr(at + 2));
    ASSERT_GT(number, last[ring]);
    last[ring] = number;
    ++written;
  }
  EXPECT_GT(written, 0U);
  if (lost == 0) {
    EXPECT_EQ(written, rings * count);
  }
  EXPECT_LE(written + lost, rings * count);
}

}  // namespace
}  // namespace ringside::control
