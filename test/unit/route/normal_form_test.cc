// `config` may not use `http`, so both bring paths and hosts into normal form. They must agree, or
// a route could not be reached, or be slipped by.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "ringside/config/load.h"
#include "ringside/http/uri.h"
#include "ringside/route/router.h"

namespace ringside::route {
namespace {

config::SnapshotRef with_path(const std::string& path) {
  const auto loaded = config::load_text(
      "listen.w.address = '127.0.0.1:0'\n[[site]]\nhosts = 'A.Test.'\n[[site.route]]\npath = '" +
          path + "'\nrespond = {}\n",
      "<test>");
  return loaded.snapshot;
}

TEST(NormalForm, PathsOfConfigurationAndRequestAgree) {
  std::mt19937 random(20260101);
  static constexpr const char* pieces[] = {"/",   "/",   "..", ".",   "a", "%41", "%2e", "%2F",
                                           "%7e", "%e4", "~",  "%25", "b", ";",   "\\\\"};
  base::ChunkPool pool;
  int compared = 0;
  for (int round = 0; round < 500; ++round) {
    std::string path = "/";
    for (unsigned i = random() % 9; i > 0; --i)
      path += pieces[random() % std::size(pieces)];
    base::Arena arena(pool);
    const auto normal = http::normalise_path(path, arena);
    const auto snapshot = with_path(path);
    ASSERT_EQ(snapshot != nullptr, normal.has_value()) << path;
    if (!normal) continue;
    EXPECT_EQ(snapshot->sites[0].routes[0].path, *normal) << path;
    const Router router(snapshot);
    EXPECT_EQ(router.find(0, "a.test", *normal, "GET").kind, Match::Kind::found) << path;
    ++compared;
  }
  EXPECT_GT(compared, 350);
}

TEST(NormalForm, HostsAgree) {
  base::ChunkPool pool;
  base::Arena arena(pool);
  const auto snapshot = with_path("/");
  ASSERT_NE(snapshot, nullptr);
  EXPECT_EQ(snapshot->sites[0].hosts[0], http::normalise_host("A.Test.", arena));
}

}  // namespace
}  // namespace ringside::route
