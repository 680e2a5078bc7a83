// What the fields of a request in HTTP/2 may say. The names of cases are those of
// test/conformance.
#include "h2_head.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ringside::http::detail {
namespace {

using Fields = std::vector<std::pair<std::string_view, std::string_view>>;
using namespace std::string_view_literals;

const Fields get = {
    {":method", "GET"}, {":scheme", "https"}, {":authority", "a.test"}, {":path", "/x?q=1"}};

Fields with(Fields fields, const Fields& more) {
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

// `get` with another value for one of its fields, or without it.
Fields changed(std::string_view name, std::string_view value) {
  Fields out;
  for (const auto& field : get)
    out.emplace_back(field.first, field.first == name ? value : field.second);
  return out;
}
Fields without(std::string_view name) {
  Fields out;
  for (const auto& field : get) {
    if (field.first != name) out.push_back(field);
  }
  return out;
}

struct H2Head : testing::Test {
  bool read(const Fields& fields, bool end_stream = true, Section section = Section::request) {
    arena.release();
    head = {};
    H2HeadReader reader(arena, limits, section);
    for (const auto& [name, value] : fields) {
      // What is kept must not be a view of what was given.
      std::string own_name(name);
      std::string own_value(value);
      reader.field(own_name, own_value);
    }
    const bool good = section == Section::request ? reader.finish_request(head, end_stream)
                                                  : reader.finish_trailers();
    fault = reader.fault();
    list_bytes = reader.list_bytes();
    trailers = reader.fields();
    return good;
  }
  std::string_view value(std::string_view name) const {
    const Field* field = head.fields.find(name);
    return field == nullptr ? "(none)"sv : field->value;
  }

  base::ChunkPool pool;
  base::Arena arena{pool};
  HeadLimits limits;
  RequestHead head;
  FieldList trailers;
  ParseFault fault;
  std::size_t list_bytes = 0;
};

TEST_F(H2Head, IsAsTheExchangeKnowsIt) {
  ASSERT_TRUE(read(with(get, {{"user-agent", "t"}, {"te", "trailers"}})));
  EXPECT_EQ(head.version, Version::http2);
  EXPECT_EQ(head.method, Method::get);
  EXPECT_EQ(head.method_text, "GET");
  EXPECT_EQ(head.target, "/x?q=1");
  EXPECT_EQ(head.path, "/x");
  EXPECT_EQ(head.query, "q=1");
  EXPECT_EQ(head.authority, "a.test");
  EXPECT_EQ(head.host, "a.test");
  EXPECT_TRUE(head.te_trailers);
  EXPECT_TRUE(head.keep_alive);
  EXPECT_FALSE(head.upgrade);
  EXPECT_EQ(head.framing.kind, Framing::Kind::none);
  EXPECT_EQ(value("user-agent"), "t");
  EXPECT_TRUE(head.fields.find("te")->hop_by_hop);
  // 7+3, 7+5, 10+6, 5+6, 10+1, 2+8, and 32 for each of the six.
  EXPECT_EQ(list_bytes, 10U + 12 + 16 + 11 + 11 + 10 + 6 * 32);
}

TEST_F(H2Head, FieldsLieAsTheyAreSentToServers) {
  ASSERT_TRUE(read(with(get, {{"a", "1"}, {"b", ""}, {"c", "3"}})));
  const Field& first = head.fields[0];
  EXPECT_EQ(std::string_view(first.name.data(), 17), "a: 1\r\nb: \r\nc: 3\r\n");
}

TEST_F(H2Head, FramingFollowsTheEndOfTheStream) {
  ASSERT_TRUE(read(get, false));
  EXPECT_EQ(head.framing.kind, Framing::Kind::chunked);
  ASSERT_TRUE(read(with(get, {{"content-length", "5"}, {"expect", "100-continue"}}), false));
  EXPECT_EQ(head.framing.kind, Framing::Kind::length);
  EXPECT_EQ(head.framing.length, 5U);
  EXPECT_TRUE(head.expect_continue);
  ASSERT_TRUE(read(with(get, {{"content-length", "0"}})));
  EXPECT_EQ(head.framing.kind, Framing::Kind::length);
}

TEST_F(H2Head, CookieCrumbsAreJoined) {
  ASSERT_TRUE(read(with(get, {{"cookie", "a=1"}, {"x", "y"}, {"cookie", "b=2"}, {"cookie", "c"}})));
  EXPECT_EQ(value("cookie"), "a=1; b=2; c");
  EXPECT_EQ(head.fields.size(), 2U);
  ASSERT_TRUE(read(with(get, {{"cookie", "a=1"}})));
  EXPECT_EQ(value("cookie"), "a=1");
}

TEST_F(H2Head, HostMayStandForTheAuthorityOrSayTheSame) {
  ASSERT_TRUE(read(with(without(":authority"), {{"host", "b.test:81"}})));
  EXPECT_EQ(head.authority, "b.test:81");
  EXPECT_EQ(head.host, "b.test");
  EXPECT_TRUE(read(with(get, {{"host", "A.test"}})));
}

TEST_F(H2Head, ConnectAndAsteriskHaveTheirForms) {
  ASSERT_TRUE(read({{":method", "CONNECT"}, {":authority", "a.test:443"}}, false));
  EXPECT_EQ(head.form, TargetForm::authority);
  EXPECT_FALSE(read({{":method", "CONNECT"}, {":authority", "a.test"}}, false));
  EXPECT_FALSE(read({{":method", "CONNECT"}, {":authority", "a.test:1"}, {":path", "/"}}, false));
  ASSERT_TRUE(
      read({{":method", "OPTIONS"}, {":scheme", "http"}, {":authority", "a"}, {":path", "*"}}));
  EXPECT_EQ(head.form, TargetForm::asterisk);
  EXPECT_FALSE(read(changed(":path", "*"))) << "for OPTIONS only";
}

// RFC 8441 §5.1 has such a request.
const Fields chat = {{":method", "CONNECT"},
                     {":protocol", "websocket"},
                     {":scheme", "https"},
                     {":path", "/chat?room=1"},
                     {":authority", "a.test"}};

TEST_F(H2Head, AWebSocketIsTheGetThatOpensIt) {
  ASSERT_TRUE(
      read(with(chat, {{"sec-websocket-version", "13"}, {"sec-websocket-key", "mine"}}), false));
  EXPECT_TRUE(head.websocket);
  EXPECT_TRUE(head.upgrade);
  EXPECT_EQ(head.method, Method::get);
  EXPECT_EQ(head.method_text, "GET");
  EXPECT_EQ(head.target, "/chat?room=1");
  EXPECT_EQ(head.path, "/chat");
  EXPECT_EQ(head.authority, "a.test");
  EXPECT_EQ(head.form, TargetForm::origin);
  EXPECT_EQ(head.framing.kind, Framing::Kind::none) << "what follows is no body";
  EXPECT_EQ(value("upgrade"), "websocket");
  EXPECT_TRUE(head.fields.find("upgrade")->hop_by_hop);
  EXPECT_EQ(value("sec-websocket-version"), "13");
  EXPECT_EQ(value("sec-websocket-key"), "(none)") << "that is made for the server";
}

TEST_F(H2Head, WhatIsNoWebSocket) {
  EXPECT_FALSE(read(chat, true)) << "nothing could be sent to it";
  EXPECT_EQ(fault.status, 400);
  EXPECT_FALSE(read(with(chat, {{"content-length", "5"}}), false));
  EXPECT_EQ(fault.status, 400);
  Fields other = chat;
  other[1].second = "connect-udp";
  EXPECT_FALSE(read(other, false));
  EXPECT_EQ(fault.status, 501);
  other = chat;
  other[0].second = "GET";
  EXPECT_FALSE(read(other, false));
  EXPECT_EQ(fault.status, 400);
  for (const std::size_t missing : {2U, 3U, 4U}) {
    other = chat;
    other.erase(other.begin() + static_cast<std::ptrdiff_t>(missing));
    EXPECT_FALSE(read(other, false)) << missing;
    EXPECT_EQ(fault.status, 400) << missing;
  }
  ASSERT_TRUE(read(with(get, {{"sec-websocket-key", "k"}})));
  EXPECT_EQ(value("sec-websocket-key"), "k") << "of no concern elsewhere";
}

TEST_F(H2Head, MalformedRequestsAreRefused) {
  const std::pair<std::string_view, Fields> cases[] = {
      {"B02", with(get, {{"transfer-encoding", "chunked"}})},
      {"B03", with(get, {{"x-a", "b\r\nx-injected: 1"}})},
      {"a lone LF", with(get, {{"x-a", "b\nc"}})},
      {"B05", with(get, {{"x-a: b\r\nx-injected", "1"}})},
      {"B07", with(get, {{"", "v"}})},
      {"B08", with(get, {{"x-a", "\tb"}})},
      {"blank behind", with(get, {{"x-a", "b "}})},
      {"B10", changed(":method", "GET /admin HTTP/1.1\r\nX:")},
      {"empty method", changed(":method", "")},
      {"B12", changed(":path", "/a#.png")},
      {"blank in the path", changed(":path", "/a b")},
      {"no path", changed(":path", "x")},
      {"empty path", changed(":path", "")},
      {"B13", changed(":authority", "a.test/evil")},
      {"user in the authority", changed(":authority", "u@a.test")},
      {"empty authority", changed(":authority", "")},
      {"B15", with(get, {{"host", "evil.test"}})},
      {"two hosts", with(get, {{"host", "a.test"}, {"host", "a.test"}})},
      {"B17", with(get, {{"content-length", "50"}})},
      {"B20", with(get, {{"content-length", "0"}, {"content-length", "0"}})},
      {"no number", with(get, {{"content-length", "+0"}})},
      {"B22", with(get, {{"upgrade", "websocket"}})},
      {"connection", with(get, {{"connection", "close"}})},
      {"keep-alive", with(get, {{"keep-alive", "1"}})},
      {"proxy-connection", with(get, {{"proxy-connection", "x"}})},
      {"B23", with(get, {{"te", "gzip"}})},
      {"te and more", with(get, {{"te", "trailers, gzip"}})},
      {"B25", with(get, {{":path", "/other"}})},
      {"unknown pseudo", with(get, {{":version", "2"}})},
      {"pseudo of responses", with(get, {{":status", "200"}})},
      {"pseudo behind", with(with(without(":path"), {{"a", "b"}}), {{":path", "/"}})},
      {"B30", with(get, {{"x-a", "b\0c"sv}})},
      {"DEL", with(get, {{"x-a", "b\x7f"}})},
      {"upper case", with(get, {{"X-a", "b"}})},
      {"no method", without(":method")},
      {"no scheme", without(":scheme")},
      {"no :path", without(":path")},
      {"no authority", without(":authority")},
      {"other scheme", changed(":scheme", "ftp")},
  };
  for (const auto& [name, fields] : cases) {
    EXPECT_FALSE(read(fields)) << name;
    EXPECT_EQ(fault.status, 400) << name;
    EXPECT_FALSE(fault.reason.empty()) << name;
  }
}

TEST(H2ResponseHead, SaysWhetherItsEndIsToCome) {
  struct Case {
    Fields more;
    Method asked;
    bool end_stream;
    bool follows;
  };
  const Case cases[] = {
      {{{"content-length", "5"}}, Method::get, false, true},
      {{{"content-length", "0"}}, Method::post, false, true},
      {{{"content-length", "0"}}, Method::get, true, false},
      {{{"content-length", "5"}}, Method::head, false, false},
      {{}, Method::get, false, false},  // it is chunked, which says so itself
      {{}, Method::get, true, false},
  };
  for (const Case& c : cases) {
    base::ChunkPool pool;
    base::Arena arena(pool);
    const HeadLimits limits;
    H2HeadReader reader(arena, limits, Section::response);
    reader.field(":status", "200");
    for (const auto& [name, value] : c.more)
      reader.field(name, value);
    ResponseHead head;
    ASSERT_TRUE(reader.finish_response(head, c.asked, c.end_stream)) << reader.fault().reason;
    EXPECT_EQ(head.end_follows, c.follows);
  }
}

TEST_F(H2Head, LimitsHaveStatusesOfTheirOwn) {
  limits = {.line_bytes_max = 10, .head_bytes_max = 300, .fields_max = 2};
  EXPECT_TRUE(read(with(get, {{"a", "1"}, {"b", "2"}})));
  EXPECT_FALSE(read(with(get, {{"a", "1"}, {"b", "2"}, {"c", "3"}})));
  EXPECT_EQ(fault.status, 431);
  EXPECT_FALSE(read(changed(":path", "/0123456789")));
  EXPECT_EQ(fault.status, 414);
  const std::string large(200, 'x');
  EXPECT_FALSE(read(with(get, {{"a", large}})));
  EXPECT_EQ(fault.status, 431);
  EXPECT_EQ(list_bytes, 10U + 12 + 16 + 11 + 4 * 32 + 1 + 200 + 32) << "counted on";
}

TEST_F(H2Head, Trailers) {
  EXPECT_TRUE(read({{"grpc-status", "0"}, {"authorization", "x"}}, true, Section::trailer));
  ASSERT_EQ(trailers.size(), 2U);
  EXPECT_FALSE(trailers[0].hop_by_hop);
  EXPECT_TRUE(trailers[1].hop_by_hop);
  EXPECT_FALSE(read({{":path", "/x"}}, true, Section::trailer)) << "B27";
  EXPECT_FALSE(read({{"content-length", "99"}}, true, Section::trailer)) << "B28";
  EXPECT_FALSE(read({{"transfer-encoding", "chunked"}}, true, Section::trailer));
  EXPECT_FALSE(read({{"X", "1"}}, true, Section::trailer));
}

}  // namespace
}  // namespace ringside::http::detail
