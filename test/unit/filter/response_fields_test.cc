#include "messages.h"

namespace ringside::filter {
namespace {

TEST(ResponseFields, PassWithViaAppended) {
  Exchange e;
  EXPECT_EQ(
      e.answered(
          "Server: nginx\nDate: now\nX-A: 1\nSet-Cookie: a\nSet-Cookie: b\nContent-Length: 0\n"),
      "Server: nginx\nDate: now\nX-A: 1\nSet-Cookie: a\nSet-Cookie: b\nVia: 1.1 edge\n");
  EXPECT_EQ(e.answered("Via: 1.1 x\nContent-Length: 0\nVia: 1.0 y\n"),
            "Via: 1.1 x, 1.0 y, 1.1 edge\n");
  EXPECT_EQ(e.answered("Content-Length: 0\n", "HTTP/1.0 200 OK"), "Via: 1.0 edge\n");
}

TEST(ResponseFields, ConnectionFieldsStay) {
  EXPECT_EQ(Exchange().answered(
                "Connection: close, X-Hop\nX-Hop: 1\nKeep-Alive: 5\nTransfer-Encoding: chunked\n"
                "Proxy-Connection: x\nUpgrade: h2c\nX-A: 1\n"),
            "X-A: 1\nVia: 1.1 edge\n");
}

TEST(ResponseFields, ViaCanBeOff) {
  Exchange e;
  e.forwarding.via = false;
  EXPECT_EQ(e.answered("Via: 1.1 x\nContent-Length: 0\n"), "Via: 1.1 x\n");
}

TEST(ResponseFields, Edits) {
  Exchange e;
  e.edits.remove = {"x-powered-by", "server", "via"};
  e.edits.set = {{"x-a", variable(config::Variable::request_id)}};
  e.edits.add = {{"set-cookie", text("z=1")}};
  EXPECT_EQ(
      e.answered(
          "Server: s\nX-Powered-By: p\nX-A: 0\nSet-Cookie: a=1\nVia: 1.0 v\nContent-Length: 0\n"),
      "Set-Cookie: a=1\nx-a: id-1\nset-cookie: z=1\n");
}

TEST(ResponseFields, UnderscoresAreTheServersBusiness) {
  EXPECT_EQ(Exchange().answered("X_Forwarded_For: a\nX-Forwarded-For: b\nContent-Length: 0\n"),
            "X_Forwarded_For: a\nX-Forwarded-For: b\nVia: 1.1 edge\n");
}

}  // namespace
}  // namespace ringside::filter
