#include "ringside/base/text.h"

#include <gtest/gtest.h>

#include <string>

namespace ringside::base {
namespace {

TEST(Text, lower_case_touches_ascii_letters_only) {
  for (int i = 0; i < 256; ++i) {
    char c = static_cast<char>(i);
    char expected = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    EXPECT_EQ(to_lower(c), expected) << i;
  }
}

TEST(Text, equals_ignore_case) {
  EXPECT_TRUE(equals_ignore_case("Content-Length", "content-LENGTH"));
  EXPECT_TRUE(equals_ignore_case("", ""));
  EXPECT_FALSE(equals_ignore_case("a", "ab"));
  EXPECT_FALSE(equals_ignore_case("ab", "a"));
  // '@' and '`', '[' and '{' differ in the bit that makes letters lower case.
  EXPECT_FALSE(equals_ignore_case("@", "`"));
  EXPECT_FALSE(equals_ignore_case("[", "{"));
  EXPECT_FALSE(equals_ignore_case("\xc0", "\xe0"));
  EXPECT_FALSE(equals_ignore_case(std::string_view("\0", 1), " "));
}

TEST(Text, starts_with_ignore_case) {
  EXPECT_TRUE(starts_with_ignore_case("HTTP://x", "http://"));
  EXPECT_TRUE(starts_with_ignore_case("abc", ""));
  EXPECT_FALSE(starts_with_ignore_case("htt", "http"));
  EXPECT_FALSE(starts_with_ignore_case("xhttp", "http"));
}

TEST(Text, trims_blanks_and_tabs_only) {
  EXPECT_EQ(trim_ows(" \t a b\t "), "a b");
  EXPECT_EQ(trim_ows(""), "");
  EXPECT_EQ(trim_ows(" \t "), "");
  EXPECT_EQ(trim_ows("\ra\n"), "\ra\n");
  EXPECT_EQ(trim_ows("a"), "a");
}

TEST(Text, parses_decimals_strictly) {
  EXPECT_EQ(parse_decimal<std::uint32_t>("0"), 0U);
  EXPECT_EQ(parse_decimal<std::uint32_t>("4294967295"), 4294967295U);
  EXPECT_EQ(parse_decimal<std::uint32_t>("4294967296"), std::nullopt);
  EXPECT_EQ(parse_decimal<std::uint64_t>("18446744073709551615"), ~std::uint64_t{0});
  EXPECT_EQ(parse_decimal<std::uint64_t>("18446744073709551616"), std::nullopt);
  EXPECT_EQ(parse_decimal<std::uint16_t>("65536"), std::nullopt);
  EXPECT_EQ(parse_decimal<int>("007"), 7);
  for (std::string_view bad : {"", "+1", "-1", " 1", "1 ", "0x1", "1a", "1.0", "1\n"}) {
    EXPECT_EQ(parse_decimal<std::uint32_t>(bad), std::nullopt) << bad;
    EXPECT_EQ(parse_decimal<int>(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace ringside::base
