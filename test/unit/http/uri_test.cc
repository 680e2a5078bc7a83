#include "ringside/http/uri.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

namespace ringside::http {
namespace {

using namespace std::string_view_literals;

class UriTest : public ::testing::Test {
 protected:
  base::ChunkPool pool_;
  base::Arena arena_{pool_};
};

TEST_F(UriTest, AuthoritiesThatAreValid) {
  struct Case {
    std::string_view text, host;
    int port;
  };
  const Case cases[] = {
      {"a", "a", -1},
      {"a.test", "a.test", -1},
      {"a.test.", "a.test.", -1},
      {"a.test:80", "a.test", 80},
      {"a.test:", "a.test", -1},
      {"a.test:0", "a.test", 0},
      {"a.test:00080", "a.test", 80},
      {"a.test:65535", "a.test", 65535},
      {"127.0.0.1:8080", "127.0.0.1", 8080},
      {"a_b-c~d", "a_b-c~d", -1},
      {"!$&'()*+,;=", "!$&'()*+,;=", -1},
      {"%41%ff", "%41%ff", -1},
      {"[::]", "[::]", -1},
      {"[::1]:443", "[::1]", 443},
      {"[1::]", "[1::]", -1},
      {"[2001:DB8::a:1]", "[2001:DB8::a:1]", -1},
      {"[1:2:3:4:5:6:7:8]", "[1:2:3:4:5:6:7:8]", -1},
      {"[1:2:3:4:5:6:7::]", "[1:2:3:4:5:6:7::]", -1},
      {"[::2:3:4:5:6:7:8]", "[::2:3:4:5:6:7:8]", -1},
      {"[::ffff:192.0.2.1]", "[::ffff:192.0.2.1]", -1},
      {"[1:2:3:4:5:6:1.2.3.4]", "[1:2:3:4:5:6:1.2.3.4]", -1},
  };
  for (const Case& c : cases) {
    auto result = parse_authority(c.text);
    ASSERT_TRUE(result) << c.text;
    EXPECT_EQ(result->host, c.host);
    EXPECT_EQ(result->port ? int(*result->port) : -1, c.port) << c.text;
  }
}

TEST_F(UriTest, AuthoritiesThatAreNot) {
  const std::string_view cases[] = {
      ""sv,
      ":"sv,
      ":80"sv,
      "user@a"sv,
      "user:pw@a"sv,
      "@a"sv,
      "a@"sv,
      "a:80x"sv,
      "a:x"sv,
      "a:+1"sv,
      "a:-1"sv,
      "a: 80"sv,
      "a:80 "sv,
      "a:65536"sv,
      "a:99999"sv,
      "a:000080"sv,
      "a:8:0"sv,
      "a b"sv,
      "a/b"sv,
      "a?b"sv,
      "a#b"sv,
      "a\\b"sv,
      "a\"b"sv,
      "a<b"sv,
      "a|b"sv,
      "a^b"sv,
      "a{b}"sv,
      "a`b"sv,
      "a\tb"sv,
      "a\0b"sv,
      "a\x7f"sv,
      "\xc3\xa9"sv,
      "%"sv,
      "%4"sv,
      "%4g"sv,
      "a%"sv,
      "%%41"sv,
      "::1"sv,
      "["sv,
      "[]"sv,
      "]"sv,
      "[::1"sv,
      "::1]"sv,
      "[::1]]"sv,
      "[::1]x"sv,
      "[::1]80"sv,
      "[::1]:x"sv,
      "x[::1]"sv,
      "[:]"sv,
      "[:::]"sv,
      "[1::2::3]"sv,
      "[1:2:3:4:5:6:7]"sv,
      "[1:2:3:4:5:6:7:8:9]"sv,
      "[1:2:3:4:5:6:7:8::]"sv,
      "[::1:2:3:4:5:6:7:8]"sv,
      "[12345::]"sv,
      "[g::]"sv,
      "[1:]"sv,
      "[:1]"sv,
      "[1:2:3:4:5:6:7:]"sv,
      "[::1.2.3]"sv,
      "[::1.2.3.4.5]"sv,
      "[::256.1.1.1]"sv,
      "[::01.1.1.1]"sv,
      "[1.2.3.4]"sv,
      "[1.2.3.4::]"sv,
      "[::1.2.3.4:1]"sv,
      "[fe80::1%eth0]"sv,
      "[fe80::1%25eth0]"sv,
      "[v1.x]"sv,
      "[a.test]"sv,
      "[::1 ]"sv,
      "[::1\0]"sv,
  };
  for (std::string_view text : cases)
    EXPECT_FALSE(parse_authority(text)) << text;
}

TEST_F(UriTest, NormalPathsAreReturnedAsTheyAre) {
  for (std::string_view path : {"/"sv, "/a/b.html"sv, "//x"sv, "/a//b/"sv, "/..a/.b/c../d."sv,
                                "/a...b"sv, "/..."sv, "/%2F%5C%20%25"sv, "/\\..\\x"sv,
                                "/a;b=c@d:e"sv, "*"sv, ""sv, "/%E2%82%AC"sv, "/.well-known/x"sv}) {
    auto result = normalise_path(path, arena_);
    ASSERT_TRUE(result) << path;
    EXPECT_EQ(result->data(), path.data()) << path;
    EXPECT_EQ(result->size(), path.size()) << path;
  }
  EXPECT_TRUE(arena_.empty());
}

TEST_F(UriTest, PathsThatChange) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"/a/b/c/./../../g", "/a/g"},  // RFC 3986 §5.2.4
      {"/.", "/"},
      {"/..", "/"},
      {"/./", "/"},
      {"/../", "/"},
      {"/../x", "/x"},
      {"/../../../x", "/x"},
      {"/a/.", "/a/"},
      {"/a/..", "/"},
      {"/a/b/..", "/a/"},
      {"/a/b/../", "/a/"},
      {"/a/./b", "/a/b"},
      {"/a//../b", "/a/b"},
      {"/a//./b", "/a//b"},
      {"/.//x", "//x"},
      {"/a/%2e%2E/b", "/b"},
      {"/a/.%2e/b", "/b"},
      {"/%2e", "/"},
      {"/a/%2e/b", "/a/b"},
      {"/%61%62", "/ab"},
      {"/%41%7E%2d%5f%2E%30x", "/A~-_.0x"},
      {"/%2f%5c", "/%2F%5C"},
      {"/a%2f..%2fb", "/a%2F..%2Fb"},
      {"/%c3%a9", "/%C3%A9"},
      {"/%252e%252e/x", "/%252e%252e/x"},
      {"/%252E/%2e", "/%252E/"},
      {"/a/..%2f", "/a/..%2F"},
      {"/a\\..\\b/../c", "/c"},
      {"/%3f%23", "/%3F%23"},
      {"/...%2e", "/...."},
  };
  for (const auto& [path, expected] : cases) {
    auto result = normalise_path(path, arena_);
    ASSERT_TRUE(result) << path;
    EXPECT_EQ(*result, expected) << path;
    EXPECT_EQ(normalise_path(*result, arena_)->data(), result->data()) << path << ": normal now";
  }
}

TEST_F(UriTest, PathsThatAreMalformed) {
  for (std::string_view path : {"/%"sv, "/%4"sv, "/%zz"sv, "/%4z"sv, "/%z4"sv, "/%00"sv, "/a%00b"sv,
                                "/%%41"sv, "/%2"sv, "/x/%-1"sv, "/%u0041"sv, "/../%"sv, "*%"sv}) {
    EXPECT_FALSE(normalise_path(path, arena_)) << path;
  }
}

TEST_F(UriTest, Hosts) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"A.Test", "a.test"},
      {"a.test.", "a.test"},
      {"A.TEST.", "a.test"},
      {"[2001:DB8::A]", "[2001:db8::a]"},
      {".", ""},
      {"", ""},
  };
  for (const auto& [host, expected] : cases) {
    std::string_view result = normalise_host(host, arena_);
    EXPECT_EQ(result, expected) << host;
    EXPECT_NE(result.data(), nullptr);
  }
  std::string_view same = "a.test";
  EXPECT_EQ(normalise_host(same, arena_).data(), same.data());
  EXPECT_NE(normalise_host({}, arena_).data(), nullptr)
      << "null would mean that memory is exhausted";
}

}  // namespace
}  // namespace ringside::http
