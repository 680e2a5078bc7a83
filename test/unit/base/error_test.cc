#include "ringside/base/error.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <string>
#include <type_traits>

namespace ringside::base {
namespace {

static_assert(std::is_trivially_copyable_v<Error>);
static_assert(sizeof(Error) == 8);

TEST(Error, maps_errno_to_what_a_proxy_decides_on) {
  struct {
    int sys_errno;
    ErrorCode code;
  } cases[] = {
      {0, ErrorCode::none},
      {ECONNRESET, ErrorCode::reset},
      {EPIPE, ErrorCode::reset},
      {ECONNREFUSED, ErrorCode::refused},
      {ENOENT, ErrorCode::refused},
      {EHOSTUNREACH, ErrorCode::unreachable},
      {ENETUNREACH, ErrorCode::unreachable},
      {ETIMEDOUT, ErrorCode::timed_out},
      {ETIME, ErrorCode::timed_out},
      {ECANCELED, ErrorCode::cancelled},
      {ENOMEM, ErrorCode::no_memory},
      {ENOBUFS, ErrorCode::no_buffers},
      {EMFILE, ErrorCode::no_descriptors},
      {ENFILE, ErrorCode::no_descriptors},
      {EINVAL, ErrorCode::invalid_argument},
      {EOPNOTSUPP, ErrorCode::unsupported},
      {ENOSYS, ErrorCode::unsupported},
      {EDOM, ErrorCode::system},
  };
  for (auto [sys_errno, code] : cases) {
    Error error = from_errno(sys_errno, Origin::upstream, Retry::yes);
    EXPECT_EQ(error.code, code) << sys_errno;
    EXPECT_EQ(error.sys_errno, sys_errno);
    EXPECT_EQ(error.origin, Origin::upstream);
    EXPECT_EQ(error.retry, Retry::yes);
  }
}

TEST(Error, every_code_has_a_word_of_its_own) {
  std::set<std::string> words;
  auto last = static_cast<unsigned>(ErrorCode::invalid_argument);
  for (unsigned code = 0; code <= last; ++code) {
    std::string word(describe(static_cast<ErrorCode>(code)));
    EXPECT_NE(word, "unknown") << code;
    EXPECT_TRUE(words.insert(word).second) << word;
  }
  EXPECT_EQ(describe(static_cast<ErrorCode>(last + 1)), "unknown");
}

}  // namespace
}  // namespace ringside::base
