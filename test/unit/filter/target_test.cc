#include "ringside/http/uri.h"

#include "messages.h"

namespace ringside::filter {
namespace {

std::string target(std::string_view line, std::string strip = "", std::string add = "") {
  Exchange e("", std::string(line) + " HTTP/1.1");
  config::Route route;
  route.strip_prefix = std::move(strip);
  route.add_prefix = std::move(add);
  const auto normal = http::normalise_path(e.request.path, e.arena());
  return std::string(upstream_target(route, e.request, normal.value_or(""), e.arena()));
}

TEST(UpstreamTarget, BytesArePreservedWithoutARule) {
  EXPECT_EQ(target("GET /a/%7e/../b%2f?x=%zz"), "/a/%7e/../b%2f?x=%zz");
  EXPECT_EQ(target("GET //a"), "//a");
  EXPECT_EQ(target("GET http://a.test:8080/x?y"), "/x?y");
  EXPECT_EQ(target("GET http://a.test:8080"), "/");
  EXPECT_EQ(target("GET http://a.test:8080?x=1"), "/?x=1");
  EXPECT_EQ(target("OPTIONS *"), "*");
  EXPECT_EQ(target("OPTIONS *", "/a", "/b"), "*");
}

TEST(UpstreamTarget, Strip) {
  EXPECT_EQ(target("GET /api/x?y=/api", "/api"), "/x?y=/api");
  EXPECT_EQ(target("GET /api", "/api"), "/");
  EXPECT_EQ(target("GET /api/", "/api"), "/");
  EXPECT_EQ(target("GET /api?", "/api"), "/?");
  EXPECT_EQ(target("GET /apix/y", "/api"), "/apix/y");
  EXPECT_EQ(target("GET /x", "/api"), "/x");
  // What was matched is stripped, however it was written.
  EXPECT_EQ(target("GET /%61pi/../api/x", "/api"), "/x");
  EXPECT_EQ(target("GET /api/%2e%2e/secret", "/api"), "/secret");
  EXPECT_EQ(target("GET /api//evil.test/x", "/api"), "/evil.test/x");
}

TEST(UpstreamTarget, Add) {
  EXPECT_EQ(target("GET /x?q", "", "/v1"), "/v1/x?q");
  EXPECT_EQ(target("GET /", "", "/v1"), "/v1/");
  EXPECT_EQ(target("GET /api", "/api", "/v1"), "/v1/");
  EXPECT_EQ(target("GET /api/a/b", "/api", "/v1/w"), "/v1/w/a/b");
}

}  // namespace
}  // namespace ringside::filter
