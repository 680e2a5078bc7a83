#include "escape.h"

#include <gtest/gtest.h>

#include <string>

namespace ringside::control {
namespace {

using namespace std::string_literals;

std::string json(std::string_view text) {
  std::string out;
  append_json(out, text);
  return out;
}

std::string combined(std::string_view text) {
  std::string out;
  append_combined(out, text);
  return out;
}

std::string readable(std::string_view text) {
  std::string out;
  append_readable(out, text);
  return out;
}

TEST(AppendJson, LeavesPlainTextAlone) {
  const std::string text = "GET /path?query=1&x=%20 (a; b) ~!@#$^*_+-={}[]|:<>,.";
  EXPECT_EQ(json(text), text);
}

TEST(AppendJson, EscapesQuotesAndControls) {
  EXPECT_EQ(json("a\"b\\c"), R"(a\"b\\c)");
  EXPECT_EQ(json("\n\r\t\x1b\x7f\0"s), R"(\n\r\t\u001b\u007f\u0000)");
}

// The fast path looks at eight bytes at once: a special byte must be found in each of its lanes.
TEST(AppendJson, FindsASpecialByteAtEveryPosition) {
  for (std::size_t length = 1; length <= 24; ++length) {
    for (std::size_t at = 0; at < length; ++at) {
      for (const char special : {'"', '\\', '\x1f', '\x7f', '\xff', '\x80', '\0'}) {
        std::string text(length, ' ');
        text[at] = special;
        const std::string out = json(text);
        EXPECT_EQ(out.size() > length, true) << length << ' ' << at;
        EXPECT_EQ(out.find('\\'), at) << length << ' ' << at << ' ' << int(special);
      }
    }
  }
}

TEST(AppendJson, KeepsValidUtf8) {
  const std::string text = "gr\u00fc\u00df \u4e16\u754c \U0001F600 \u07ff\u0800\uffff\U0010FFFF";
  EXPECT_EQ(json(text), text);
}

TEST(AppendJson, EscapesEachByteOfInvalidUtf8) {
  EXPECT_EQ(json("\xff"), "\\u00ff");
  EXPECT_EQ(json("\xc3("), "\\u00c3(");                         // no continuation
  EXPECT_EQ(json("\xc0\xaf"), "\\u00c0\\u00af");                // overlong
  EXPECT_EQ(json("\xe0\x9f\xbf"), "\\u00e0\\u009f\\u00bf");     // overlong
  EXPECT_EQ(json("\xed\xa0\x80"), "\\u00ed\\u00a0\\u0080");     // surrogate
  EXPECT_EQ(json("\xf4\x90\x80\x80").substr(0, 6), "\\u00f4");  // above U+10FFFF
  EXPECT_EQ(json("\xf0\x8f\xbf\xbf").substr(0, 6), "\\u00f0");  // overlong
  EXPECT_EQ(json("\xe4\xb8"), "\\u00e4\\u00b8");                // cut short
  EXPECT_EQ(json("\xf0\x9f\x98"), "\\u00f0\\u009f\\u0098");
}

TEST(AppendJson, EscapesC1Controls) {
  EXPECT_EQ(json("\u0080\u009b\u009f"), R"(\u0080\u009b\u009f)");
  EXPECT_EQ(json("\u00a0"), "\u00a0");
}

TEST(AppendCombined, EscapesAsNginxDoes) {
  EXPECT_EQ(combined("a b~"), "a b~");
  EXPECT_EQ(combined("\"\\\n\x7f\xff"), R"(\x22\x5C\x0A\x7F\xFF)");
  EXPECT_EQ(combined("\u00fc"), R"(\xC3\xBC)");
}

TEST(AppendReadable, KeepsQuotesAndOneLine) {
  EXPECT_EQ(readable("host \"a\" said\nFAKE \\ \x1b[31m"), R"(host "a" said\nFAKE \\ \u001b[31m)");
}

}  // namespace
}  // namespace ringside::control
