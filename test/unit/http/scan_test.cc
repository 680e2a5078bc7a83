#include "scan.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>

namespace ringside::http {
namespace {

// Restores the level that was chosen at start.
class ScanTest : public ::testing::TestWithParam<scan::Level> {
 protected:
  void SetUp() override {
    if (!scan::supported(GetParam())) GTEST_SKIP() << "this processor lacks the level";
    ASSERT_TRUE(scan::force_level(GetParam()));
    ASSERT_EQ(scan::active_level(), GetParam());
  }
  void TearDown() override { scan::force_level(at_start_); }

 private:
  scan::Level at_start_ = scan::active_level();
};

bool stops_line(int c) {
  return (c < 0x20 && c != '\t') || c == 0x7f;
}

// Places `text` at the very end of an allocation, so that ASan sees a byte read too many.
struct Exact {
  explicit Exact(const std::string& text) : bytes(text.size()), data(new char[text.size()]) {
    std::memcpy(data.get(), text.data(), text.size());
  }
  std::size_t bytes;
  std::unique_ptr<char[]> data;
};

TEST_P(ScanTest, EveryByteAtEveryPlaceOfALine) {
  for (std::size_t bytes = 1; bytes <= 100; ++bytes) {
    for (std::size_t place : {std::size_t{0}, bytes / 3, bytes / 2, bytes - 1}) {
      for (int c = 0; c < 256; ++c) {
        std::string text(bytes, 'a');
        text[place] = static_cast<char>(c);
        Exact exact(text);
        ASSERT_EQ(scan::line_stop(exact.data.get(), bytes), stops_line(c) ? place : bytes)
            << "byte " << c << " at " << place << " of " << bytes;
      }
    }
  }
}

TEST_P(ScanTest, EveryByteAtEveryPlaceOfAToken) {
  constexpr std::string_view tchar =
      "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  for (std::size_t bytes = 1; bytes <= 100; ++bytes) {
    for (std::size_t place : {std::size_t{0}, bytes / 3, bytes / 2, bytes - 1}) {
      for (int c = 0; c < 256; ++c) {
        std::string text(bytes, 'z');
        text[place] = static_cast<char>(c);
        Exact exact(text);
        bool member = tchar.find(static_cast<char>(c)) != std::string_view::npos;
        ASSERT_EQ(scan::class_stop(exact.data.get(), bytes, token_bytes), member ? bytes : place)
            << "byte " << c << " at " << place << " of " << bytes;
      }
    }
  }
}

// Neighbours matter where a word is searched with arithmetic: every pair of bytes, and long texts.
TEST_P(ScanTest, EveryPairOfBytes) {
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      std::string text = "abcdefg" + std::string{static_cast<char>(a), static_cast<char>(b)} +
                         std::string(30, 'x');
      std::size_t expected = stops_line(a) ? 7 : stops_line(b) ? 8 : text.size();
      ASSERT_EQ(scan::line_stop(text.data(), text.size()), expected) << a << ' ' << b;
    }
  }
}

TEST_P(ScanTest, RandomTextsAgreeWithTheBytewiseAnswer) {
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::string text(random() % 200, 'a');
    for (char& c : text)
      c = static_cast<char>(random() % 16 == 0 ? random() % 256 : 'a' + random() % 26);
    Exact exact(text);
    std::size_t line = 0;
    while (line < text.size() && !stops_line(static_cast<unsigned char>(text[line])))
      ++line;
    ASSERT_EQ(scan::line_stop(exact.data.get(), text.size()), line);
    std::size_t target = 0;
    while (target < text.size() && target_bytes.has(text[target]))
      ++target;
    ASSERT_EQ(scan::class_stop(exact.data.get(), text.size(), target_bytes), target);
  }
}

std::string level_name(const ::testing::TestParamInfo<scan::Level>& info) {
  switch (info.param) {
    case scan::Level::portable:
      return "portable";
    case scan::Level::sse42:
      return "sse42";
    case scan::Level::avx2:
      return "avx2";
  }
  return "unknown";
}

INSTANTIATE_TEST_SUITE_P(Levels, ScanTest, ::testing::ValuesIn(scan::all_levels), level_name);

TEST(ScanDispatch, TheBestSupportedLevelIsChosenAtStart) {
  scan::Level best = scan::Level::portable;
  for (scan::Level level : scan::all_levels) {
    if (scan::supported(level)) best = level;
  }
  EXPECT_EQ(scan::active_level(), best);
}

TEST(ByteClass, IsWhatTheGrammarsSay) {
  for (int c = 0; c < 256; ++c) {
    auto byte = static_cast<char>(c);
    EXPECT_EQ(target_bytes.has(byte), c > 0x20 && c < 0x7f && c != '#') << c;
    bool alnum = c < 128 && (is_alpha(byte) || is_digit(byte));
    EXPECT_EQ(unreserved_bytes.has(byte), alnum || (c != 0 && std::strchr("-._~", c))) << c;
    EXPECT_EQ(reg_name_bytes.has(byte), alnum || (c != 0 && std::strchr("-._~!$&'()*+,;=", c)))
        << c;
  }
}

}  // namespace
}  // namespace ringside::http
