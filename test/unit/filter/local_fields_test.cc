#include "ringside/filter/local_fields.h"

#include <string>

#include "messages.h"

namespace ringside::filter {
namespace {

using Kind = LocalFields::Kind;

// What an answer has of its own, with these edits.
std::string written(const config::HeaderEdits& edits, Kind kind) {
  Exchange e("X-Lang: de\n");
  http::HeadWriter out(e.arena(), 512);
  LocalFields fields(out, edits, kind);
  fields.field("Server", "edge");
  fields.field("Content-Type", "text/plain");
  fields.field("X-A", "0");
  fields.finish(e.facts);
  return std::string(out.finish());
}

TEST(LocalFields, PassWithoutEdits) {
  const std::string all = "Server: edge\r\nContent-Type: text/plain\r\nX-A: 0\r\n\r\n";
  EXPECT_EQ(written({}, Kind::answer), all);
  EXPECT_EQ(written({}, Kind::error), all);
}

TEST(LocalFields, AreRemovedSetAndAdded) {
  config::HeaderEdits edits;
  edits.remove = {"ser*"};
  edits.set = {{"x-a", variable(config::Variable::request_header, "x-lang")},
               {"x-none", variable(config::Variable::request_header, "x-none")}};
  edits.add = {{"x-b", text("1")}, {"x-b", text("2")}};
  for (const Kind kind : {Kind::answer, Kind::error}) {
    EXPECT_EQ(written(edits, kind),
              "Content-Type: text/plain\r\nx-a: de\r\nx-b: 1\r\nx-b: 2\r\n\r\n");
  }
}

TEST(LocalFields, OfAnErrorsBodyAreItsOwn) {
  config::HeaderEdits edits;
  edits.set = {{"content-type", text("image/png")}, {"content-security-policy", text("p")}};
  edits.add = {{"cache-control", text("max-age=1")}};
  EXPECT_EQ(written(edits, Kind::answer),
            "Server: edge\r\nX-A: 0\r\ncontent-type: image/png\r\ncontent-security-policy: p\r\n"
            "cache-control: max-age=1\r\n\r\n");
  EXPECT_EQ(written(edits, Kind::error),
            "Server: edge\r\nContent-Type: text/plain\r\nX-A: 0\r\n"
            "content-security-policy: p\r\n\r\n");
  edits = {};
  edits.remove = {"content-*"};
  EXPECT_EQ(written(edits, Kind::error),
            "Server: edge\r\nContent-Type: text/plain\r\nX-A: 0\r\n\r\n");
}

}  // namespace
}  // namespace ringside::filter
