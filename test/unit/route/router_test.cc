#include "ringside/route/router.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "counting_allocator.h"

namespace ringside::route {
namespace {

struct SnapshotBuilder {
  std::shared_ptr<config::Snapshot> snapshot = std::make_shared<config::Snapshot>();

  explicit SnapshotBuilder(std::size_t listens = 1) { snapshot->listens.resize(listens); }

  SnapshotBuilder& site(std::vector<std::string> hosts, std::vector<std::uint32_t> listens = {}) {
    auto& added = snapshot->sites.emplace_back();
    added.hosts = std::move(hosts);
    added.listens = std::move(listens);
    return *this;
  }
  // `source` names the route in the tests.
  SnapshotBuilder& route(std::string path, std::vector<std::string> methods = {},
                         std::string source = "") {
    auto& added = snapshot->sites.back().routes.emplace_back();
    added.source = source.empty() ? path : std::move(source);
    added.path = std::move(path);
    added.methods = std::move(methods);
    added.respond.emplace();
    return *this;
  }
};

// What takes the request: the route's source, or the kind of the refusal.
std::string take(const Router& router, std::string_view host, std::string_view path,
                 std::string_view method = "GET", std::uint32_t listen = 0) {
  const Match match = router.find(listen, host, path, method);
  switch (match.kind) {
    case Match::Kind::found:
      return match.route->source;
    case Match::Kind::no_site:
      return "no site";
    case Match::Kind::no_route:
      return "no route";
    case Match::Kind::method_not_allowed:
      return "405 " + std::string(match.allow);
  }
  return "?";
}

// The first host of the site.
std::string site_of(const Router& router, std::string_view host, std::uint32_t listen = 0) {
  const Match match = router.find(listen, host, "/", "GET");
  return match.site == nullptr ? "none" : match.site->hosts[0];
}

TEST(Router, HostsFromTheMostSpecificOn) {
  SnapshotBuilder b;
  b.site({"*"}).route("/*").site({"*.test"}).route("/*").site({"*.a.test"}).route("/*");
  b.site({"x.a.test"}).route("/*").site({"[::1]"}).route("/*");
  const Router router(b.snapshot);
  EXPECT_EQ(site_of(router, "x.a.test"), "x.a.test");
  EXPECT_EQ(site_of(router, "y.a.test"), "*.a.test");
  EXPECT_EQ(site_of(router, "z.y.a.test"), "*.a.test");
  EXPECT_EQ(site_of(router, "a.test"), "*.test");
  EXPECT_EQ(site_of(router, "ba.test"), "*.test");
  EXPECT_EQ(site_of(router, "xx.a.test"), "*.a.test");
  EXPECT_EQ(site_of(router, "test"), "*");
  EXPECT_EQ(site_of(router, ".test"), "*");
  EXPECT_EQ(site_of(router, "[::1]"), "[::1]");
  EXPECT_EQ(site_of(router, ""), "*");
}

TEST(Router, NoSite) {
  SnapshotBuilder b;
  b.site({"a.test"}).route("/*");
  const Router router(b.snapshot);
  EXPECT_EQ(take(router, "b.test", "/"), "no site");
  EXPECT_EQ(take(router, "", "/"), "no site");
  EXPECT_EQ(take(router, "a.test", "/", "GET", 1), "no site");
  const Router empty(SnapshotBuilder(0).snapshot);
  EXPECT_EQ(take(empty, "a.test", "/"), "no site");
}

TEST(Router, SitesOfTheirListeners) {
  SnapshotBuilder b(2);
  b.site({"a.test"}, {0}).route("/*", {}, "first").site({"a.test"}, {1}).route("/*", {}, "second");
  b.site({"b.test"}).route("/*", {}, "both");
  const Router router(b.snapshot);
  EXPECT_EQ(take(router, "a.test", "/", "GET", 0), "first");
  EXPECT_EQ(take(router, "a.test", "/", "GET", 1), "second");
  EXPECT_EQ(take(router, "b.test", "/", "GET", 0), "both");
  EXPECT_EQ(take(router, "b.test", "/", "GET", 1), "both");
}

TEST(Router, PathsFromTheMostSpecificOn) {
  SnapshotBuilder b;
  b.site({"*"}).route("/*").route("/a/*").route("/a/b/*").route("/a/b").route("/a/b/c").route("/x");
  b.route("//d/*");
  const Router router(b.snapshot);
  EXPECT_EQ(take(router, "", "/"), "/*");
  EXPECT_EQ(take(router, "", "/a"), "/a/*");
  EXPECT_EQ(take(router, "", "/a/"), "/a/*");
  EXPECT_EQ(take(router, "", "/ab"), "/*");
  EXPECT_EQ(take(router, "", "/a/bc"), "/a/*");
  EXPECT_EQ(take(router, "", "/a/b"), "/a/b");
  EXPECT_EQ(take(router, "", "/a/b/"), "/a/b/*");
  EXPECT_EQ(take(router, "", "/a/b/c"), "/a/b/c");
  EXPECT_EQ(take(router, "", "/a/b/c/d"), "/a/b/*");
  EXPECT_EQ(take(router, "", "/x"), "/x");
  EXPECT_EQ(take(router, "", "/x/"), "/*");
  EXPECT_EQ(take(router, "", "/A"), "/*");
  EXPECT_EQ(take(router, "", "//d/e"), "//d/*");
  EXPECT_EQ(take(router, "", "//a/x"), "/*");
  EXPECT_EQ(take(router, "", "*", "OPTIONS"), "/*");
}

TEST(Router, NoRoute) {
  SnapshotBuilder b;
  b.site({"*"}).route("/a/*").route("/b");
  const Router router(b.snapshot);
  EXPECT_EQ(take(router, "", "/"), "no route");
  EXPECT_EQ(take(router, "", "/b/c"), "no route");
  EXPECT_EQ(take(router, "", "*", "OPTIONS"), "no route");
  EXPECT_NE(router.find(0, "", "/", "GET").site, nullptr);
}

TEST(Router, MethodsDecideAmongTheRoutesOfOnePath) {
  SnapshotBuilder b;
  b.site({"*"})
      .route("/x", {}, "any")
      .route("/x", {"GET"}, "get")
      .route("/x", {"PUT", "POST"}, "put");
  b.route("/y", {"GET"}, "get y").route("/y", {"HEAD"}, "head y");
  const Router router(b.snapshot);
  EXPECT_EQ(take(router, "", "/x", "GET"), "get");
  EXPECT_EQ(take(router, "", "/x", "HEAD"), "get");
  EXPECT_EQ(take(router, "", "/x", "POST"), "put");
  EXPECT_EQ(take(router, "", "/x", "DELETE"), "any");
  EXPECT_EQ(take(router, "", "/x", "get"), "any");
  EXPECT_EQ(take(router, "", "/y", "HEAD"), "head y");
}

TEST(Router, RefusedMethodsDoNotFallThrough) {
  SnapshotBuilder b;
  b.site({"*"})
      .route("/*")
      .route("/admin/*", {"GET", "POST"})
      .route("/h", {"HEAD"})
      .route("/p", {"PUT"});
  const Router router(b.snapshot);
  EXPECT_EQ(take(router, "", "/admin/x", "DELETE"), "405 GET, POST, HEAD");
  EXPECT_EQ(take(router, "", "/h", "GET"), "405 HEAD");
  EXPECT_EQ(take(router, "", "/p", "HEAD"), "405 PUT");
}

TEST(Router, ManySitesAndRoutes) {
  SnapshotBuilder b;
  for (int i = 0; i < 500; ++i) {
    const std::string n = std::to_string(i);
    b.site({"h" + n + ".test", "*.w" + n + ".test"});
    for (int j = 0; j < 20; ++j)
      b.route("/p" + std::to_string(j) + "/" + n + "/*", {}, n + "/" + std::to_string(j));
  }
  const Router router(b.snapshot);
  for (int i = 0; i < 500; ++i) {
    const std::string n = std::to_string(i);
    EXPECT_EQ(take(router, "h" + n + ".test", "/p7/" + n + "/x"), n + "/7");
    EXPECT_EQ(take(router, "a.b.w" + n + ".test", "/p19/" + n), n + "/19");
    EXPECT_EQ(take(router, "h" + n + ".test", "/p7/" + n + "0"), "no route");
  }
}

TEST(Router, LookupsAllocateNothing) {
  SnapshotBuilder b;
  b.site({"a.test", "*.b.test", "*"}).route("/*").route("/a/b/*", {"GET"}).route("/a/b/c");
  const Router router(b.snapshot);
  const std::string path = "/a/b/" + std::string(8000, '/');
  const test::AllocationCount allocations;
  for (std::string_view host : {"a.test", "x.b.test", "c.test"}) {
    for (std::string_view at : {std::string_view("/a/b/c"), std::string_view(path)}) {
      EXPECT_NE(router.find(0, host, at, "PUT").site, nullptr);
    }
  }
  EXPECT_EQ(allocations.count(), 0U);
}

TEST(Router, KeepsItsSnapshot) {
  SnapshotBuilder b;
  b.site({"a.test"}).route("/x");
  const Router router(std::move(b.snapshot));
  EXPECT_EQ(take(router, "a.test", "/x"), "/x");
}

}  // namespace
}  // namespace ringside::route
