#include "log_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace ringside::control {
namespace {

std::string read_file(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string read_now(int fd) {
  std::string text;
  char buffer[65536];
  for (;;) {
    const auto count = ::recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
    if (count <= 0) break;
    text.append(buffer, static_cast<std::size_t>(count));
  }
  return text;
}

class LogOutputTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "ringside-log-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

// Gives the process another standard error for the life of the object.
class StandardError {
 public:
  explicit StandardError(int replacement) : saved_(::dup(STDERR_FILENO)) {
    ::dup2(replacement, STDERR_FILENO);
  }
  ~StandardError() {
    ::dup2(saved_, STDERR_FILENO);
    ::close(saved_);
  }

 private:
  int saved_;
};

TEST_F(LogOutputTest, AppendsToAFile) {
  const auto path = folder_ / "access.log";
  std::ofstream(path) << "before\n";
  auto output = LogOutput::open(path);
  ASSERT_TRUE(output);
  (*output)->lines() += "one\ntwo\n";
  EXPECT_FALSE((*output)->empty());
  EXPECT_EQ((*output)->flush(), 0);
  EXPECT_TRUE((*output)->empty());
  EXPECT_EQ(read_file(path), "before\none\ntwo\n");
}

TEST_F(LogOutputTest, CreatesAFileThatOthersCannotRead) {
  const auto path = folder_ / "access.log";
  ASSERT_TRUE(LogOutput::open(path));
  EXPECT_EQ(std::filesystem::status(path).permissions() & std::filesystem::perms::others_all,
            std::filesystem::perms::none);
}

TEST_F(LogOutputTest, SaysWhyAFileCannotBeOpened) {
  const auto output = LogOutput::open(folder_ / "missing" / "access.log");
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error(), ENOENT);
}

TEST_F(LogOutputTest, FollowsARotation) {
  const auto path = folder_ / "access.log";
  auto output = LogOutput::open(path);
  ASSERT_TRUE(output);
  (*output)->lines() += "old\n";
  EXPECT_EQ((*output)->flush(), 0);
  std::filesystem::rename(path, folder_ / "access.log.1");
  (*output)->lines() += "still old\n";
  EXPECT_EQ((*output)->reopen(), 0);
  (*output)->lines() += "new\n";
  EXPECT_EQ((*output)->flush(), 0);
  EXPECT_EQ(read_file(folder_ / "access.log.1"), "old\nstill old\n");
  EXPECT_EQ(read_file(path), "new\n");
}

TEST_F(LogOutputTest, KeepsTheOldFileWhenItCannotBeOpenedAgain) {
  const auto path = folder_ / "logs" / "access.log";
  std::filesystem::create_directory(folder_ / "logs");
  auto output = LogOutput::open(path);
  ASSERT_TRUE(output);
  std::filesystem::rename(folder_ / "logs", folder_ / "moved");
  EXPECT_EQ((*output)->reopen(), ENOENT);
  (*output)->lines() += "line\n";
  EXPECT_EQ((*output)->flush(), 0);
  EXPECT_EQ(read_file(folder_ / "moved" / "access.log"), "line\n");
}

TEST_F(LogOutputTest, KeepsLinesWhileTheOtherEndTakesNone) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  StandardError redirected(ends[0]);
  auto output = LogOutput::open("");
  ASSERT_TRUE(output);
  const std::string line(999, 'x');
  std::string expected;
  for (int i = 0; i < 2000; ++i) {
    (*output)->lines() += line + "\n";
    expected += line + "\n";
  }
  EXPECT_FALSE((*output)->has_room());
  EXPECT_EQ((*output)->flush(), EAGAIN);
  std::string got;
  while (!(*output)->empty()) {
    got += read_now(ends[1]);
    (*output)->flush();
  }
  got += read_now(ends[1]);
  EXPECT_TRUE(got == expected);
  EXPECT_TRUE((*output)->has_room());
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(LogOutputTest, NeverWaitsForAFullPipeAndLeavesItsFlagsAlone) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  StandardError redirected(ends[1]);
  auto output = LogOutput::open("");
  ASSERT_TRUE(output);
  (*output)->lines().assign(1 << 20, 'x');
  EXPECT_EQ((*output)->flush(), EAGAIN);
  EXPECT_EQ(::fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK, 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(LogOutputTest, ThrowsAwayWhatNobodyWillRead) {
  std::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  StandardError redirected(ends[1]);
  auto output = LogOutput::open("");
  ASSERT_TRUE(output);
  ::close(ends[0]);
  (*output)->lines() += "line\n";
  EXPECT_EQ((*output)->flush(), EPIPE);
  EXPECT_TRUE((*output)->empty());
  ::close(ends[1]);
}

// A full disk, played by the limit of a file's size (EFBIG).
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &saved_);
    const rlimit limit{bytes, saved_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &saved_); }

 private:
  rlimit saved_{};
};

TEST_F(LogOutputTest, GoesOnWhereItStoppedWhenTheDiskWasFull) {
  const auto path = folder_ / "access.log";
  auto output = LogOutput::open(path);
  ASSERT_TRUE(output);
  {
    FileSizeLimit limit(10);
    (*output)->lines() += "line one\nline two\nline three\n";
    EXPECT_EQ((*output)->flush(), EFBIG);
    EXPECT_FALSE((*output)->empty());
    EXPECT_EQ((*output)->flush(), EFBIG);
  }
  (*output)->lines() += "line four\n";
  EXPECT_EQ((*output)->flush(), 0);
  EXPECT_EQ(read_file(path), "line one\nline two\nline three\nline four\n");
}

TEST_F(LogOutputTest, BeginsANewFileWithAWholeLine) {
  const auto path = folder_ / "access.log";
  auto output = LogOutput::open(path);
  ASSERT_TRUE(output);
  {
    FileSizeLimit limit(12);
    (*output)->lines() += "line one\nline two\nline three\n";
    EXPECT_EQ((*output)->flush(), EFBIG);
    std::filesystem::rename(path, folder_ / "full.log");
    EXPECT_EQ((*output)->reopen(), 0);
  }
  EXPECT_EQ((*output)->flush(), 0);
  EXPECT_EQ(read_file(folder_ / "full.log"), "line one\nlin");
  EXPECT_EQ(read_file(path), "line three\n");
}

}  // namespace
}  // namespace ringside::control
