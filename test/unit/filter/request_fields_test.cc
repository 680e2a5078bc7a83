#include "counting_allocator.h"
#include "messages.h"

namespace ringside::filter {
namespace {

using config::Variable;

// The fields that ringside adds by default for the peer of `Exchange`.
const std::string own =
    "X-Forwarded-For: 203.0.113.9\nX-Forwarded-Proto: http\nX-Forwarded-Host: a.test:8080\n"
    "Via: 1.1 edge\nX-Request-Id: id-1\n";

TEST(RequestFields, OwnFieldsBehindTheClients) {
  EXPECT_EQ(Exchange("Accept: */*\nX-B: 1\nX-B: 2\n").sent(),
            "Accept: */*\nX-B: 1\nX-B: 2\n" + own);
}

TEST(RequestFields, ConnectionFieldsStay) {
  EXPECT_EQ(
      Exchange("Connection: keep-alive, X-Secret\nX-Secret: 1\nKeep-Alive: 5\nProxy-Connection: x\n"
               "TE: trailers\nContent-Length: 3\nExpect: 100-continue\nAccept: a\n")
          .sent(),
      "Accept: a\n" + own);
  EXPECT_EQ(Exchange("Transfer-Encoding: chunked\n").sent(), own);
  EXPECT_EQ(
      Exchange("Connection: Upgrade, HTTP2-Settings\nUpgrade: h2c\nHTTP2-Settings: AAA\n").sent(),
      own);
  // Not named by Connection, but meaningless behind us.
  EXPECT_EQ(Exchange("Upgrade: websocket\nHTTP2-Settings: AAA\n").sent(), own);
}

// CVE-2024-45410: a client names our own field in Connection.
TEST(RequestFields, ConnectionCannotTakeOurFieldsAway) {
  EXPECT_EQ(Exchange("Connection: X-Forwarded-For, Via, X-Request-Id, X-Forwarded-Host\n").sent(),
            own);
}

TEST(RequestFields, StrangersClaimsAreReplaced) {
  EXPECT_EQ(Exchange("X-Forwarded-For: 6.6.6.6\nx-forwarded-proto: https\nX-FORWARDED-HOST: evil\n"
                     "Forwarded: for=6.6.6.6\nX-Forwarded-Port: 1\nX-Forwarded-Prefix: "
                     "/x\nX-Real-IP: 6.6.6.6\n"
                     "X-Request-Id: mine\nX-Forwardedx: kept\n")
                .sent(),
            "X-Forwardedx: kept\n" + own);
}

TEST(RequestFields, StrangersClaimsNeverTravelEvenWhenWeSayNothing) {
  Exchange e(
      "X-Forwarded-For: 6.6.6.6\nForwarded: for=6.6.6.6\nX-Real-IP: 6.6.6.6\nX-Request-Id: "
      "mine\nVia: 1.0 a\n");
  e.forwarding = {.trusted_proxies = {},
                  .x_forwarded = false,
                  .forwarded = false,
                  .via = false,
                  .request_id = false};
  EXPECT_EQ(e.sent(), "X-Request-Id: mine\nVia: 1.0 a\n");
  e.trust_peer();
  EXPECT_EQ(e.sent(),
            "X-Forwarded-For: 6.6.6.6\nForwarded: for=6.6.6.6\nX-Real-IP: 6.6.6.6\nX-Request-Id: "
            "mine\nVia: 1.0 a\n");
}

TEST(RequestFields, ATrustedPeersListIsExtended) {
  Exchange e(
      "X-Forwarded-For: 1.1.1.1\nX-Forwarded-For: 2.2.2.2, 3.3.3.3\nX-Forwarded-Proto: https\n"
      "X-Forwarded-Host: site.test\nX-Real-IP: 1.1.1.1\nVia: 2.0 first\nVia: 1.1 second\n");
  e.trust_peer();
  EXPECT_EQ(e.sent(),
            "X-Real-IP: 1.1.1.1\n"
            "X-Forwarded-For: 1.1.1.1, 2.2.2.2, 3.3.3.3, 203.0.113.9\n"
            "X-Forwarded-Proto: https\nX-Forwarded-Host: site.test\n"
            "Via: 2.0 first, 1.1 second, 1.1 edge\nX-Request-Id: id-1\n");
}

TEST(RequestFields, ATrustedPeerThatSaysNothing) {
  Exchange e;
  e.trust_peer();
  EXPECT_EQ(e.sent(), own);
}

TEST(RequestFields, Ipv6AndUnixPeers) {
  Exchange e;
  e.facts.peer_address = "2001:db8::1";
  EXPECT_EQ(e.sent().substr(0, 29), "X-Forwarded-For: 2001:db8::1\n");
  e.facts.peer_address = "unix:";
  EXPECT_EQ(e.sent(), own.substr(own.find("X-Forwarded-Proto")));
}

TEST(RequestFields, Http10AndNoHost) {
  Exchange e("", "GET / HTTP/1.0");
  e.facts.host = "";
  EXPECT_EQ(
      e.sent(),
      "X-Forwarded-For: 203.0.113.9\nX-Forwarded-Proto: http\nVia: 1.0 edge\nX-Request-Id: id-1\n");
}

// C19.
TEST(RequestFields, FoldedNamesAreDropped) {
  const std::string spoofs =
      "X_Forwarded_For: 6.6.6.6\nX.Forwarded.Proto: https\nx-forwarded_host: evil\nX_Real_IP: "
      "6.6.6.6\n"
      "X_Request_Id: a\nContent_Length: 5\nTransfer.Encoding: chunked\nX_Forwarded_Port: 1\n";
  Exchange e(spoofs + "X_Other: kept\na.b: kept\n");
  EXPECT_EQ(e.sent(), "X_Other: kept\na.b: kept\n" + own);
  e.trust_peer();  // a trusted proxy that lets these through is no better
  EXPECT_EQ(e.sent(), "X_Other: kept\na.b: kept\n" + own);
  e.forwarding.underscore_names = true;
  EXPECT_EQ(e.sent(), spoofs + "X_Other: kept\na.b: kept\n" + own);
}

TEST(RequestFields, FoldedNamesOfWhatTheRouteSetsAreDropped) {
  Exchange e("X_User: evil\nX.User: evil\nX_Users: kept\n");
  e.edits.set.emplace_back("x-user", text("me"));
  EXPECT_EQ(e.sent(), "X_Users: kept\n" + own + "x-user: me\n");
}

TEST(RequestFields, TrailersSayNothingAboutTheClient) {
  config::Forwarding forwarding;
  auto field = [](std::string_view name) {
    return http::Field{name, "x", http::field_id(name), false};
  };
  EXPECT_TRUE(trailer_travels(field("X-Checksum"), forwarding));
  for (std::string_view name :
       {"X-Forwarded-For", "X_Forwarded_For", "x.forwarded.proto", "Forwarded", "X-Real-IP",
        "Content-Length", "content_length", "Host", "X-Request-Id"}) {
    EXPECT_FALSE(trailer_travels(field(name), forwarding)) << name;
  }
  EXPECT_FALSE(trailer_travels({"X-A", "x", http::FieldId::other, true}, forwarding));
}

// C20 and RFC 7239 §6.
TEST(RequestFields, Forwarded) {
  Exchange e;
  e.forwarding = {.trusted_proxies = {},
                  .x_forwarded = false,
                  .forwarded = true,
                  .via = false,
                  .request_id = false};
  EXPECT_EQ(e.sent(), "Forwarded: for=\"203.0.113.9:4711\";proto=http;host=\"a.test:8080\"\n");
  e.facts.peer_address = "2001:db8::1";
  EXPECT_EQ(e.sent(), "Forwarded: for=\"[2001:db8::1]:4711\";proto=http;host=\"a.test:8080\"\n");
  e.facts.peer_port = 0;
  e.facts.host = "a.test";
  EXPECT_EQ(e.sent(), "Forwarded: for=\"[2001:db8::1]\";proto=http;host=a.test\n");
  e.facts.peer_address = "10.0.0.1";
  e.facts.host = "[::1]";
  EXPECT_EQ(e.sent(), "Forwarded: for=10.0.0.1;proto=http;host=\"[::1]\"\n");
  e.facts.peer_address = "unix:";
  e.facts.host = "";
  EXPECT_EQ(e.sent(), "Forwarded: for=unknown;proto=http\n");
  e.facts.host = "a\"b\\c";  // no parser lets that through, but it must not break the quoting
  EXPECT_EQ(e.sent(), "Forwarded: for=unknown;proto=http;host=\"a\\\"b\\\\c\"\n");
}

TEST(RequestFields, ForwardedOfATrustedPeerIsExtended) {
  Exchange e("Forwarded: for=\"[::1]\", for=\"a,b\";by=c\nForwarded: for=_x\n");
  e.forwarding = {.trusted_proxies = {},
                  .x_forwarded = false,
                  .forwarded = true,
                  .via = false,
                  .request_id = false};
  e.trust_peer();
  EXPECT_EQ(
      e.sent(),
      "Forwarded: for=\"[::1]\", for=\"a,b\";by=c, for=_x, for=\"203.0.113.9:4711\";proto=http;"
      "host=\"a.test:8080\"\n");
}

// Fields are copied in runs where they lie as they are sent; anything else is written afresh.
TEST(RequestFields, OddBytesBetweenFieldsNeverTravel) {
  static constexpr std::string_view bytes = "A: 1\r;B: 2;\nC:\t3\r\nD;:4\r\nE: 5\r\nF: 6";
  Exchange e;
  e.request.fields = {};
  for (std::string_view name : {"A", "B", "C", "D", "E", "F"}) {
    const std::size_t at = bytes.find(name);
    const std::size_t value = bytes.find_first_of("123456", at);
    e.request.fields.add(
        e.arena(), {bytes.substr(at, 1), bytes.substr(value, 1), http::FieldId::other, false});
  }
  EXPECT_EQ(e.sent(), "A: 1\nB: 2\nC: 3\nD: 4\nE: 5\nF: 6\n" + own);
}

TEST(RequestFields, BlanksAroundValuesAreNotSent) {
  EXPECT_EQ(Exchange("A:1\nB:  2\nC: 3  \nD: \nE: 5\nF: 6\n").sent(),
            "A: 1\nB: 2\nC: 3\nD: \nE: 5\nF: 6\n" + own);
}

TEST(RequestFields, EditsRemoveThenSetThenAdd) {
  Exchange e("X-A: 1\nx-a: 2\nX-Internal-One: 1\nX-Internal: kept\nCookie: c\nX-B: old\n");
  e.edits.remove = {"x-internal-*", "cookie"};
  e.edits.set = {{"x-a", text("new")}, {"cookie", text("set after remove")}};
  e.edits.add = {{"x-b", text("one")}, {"x-b", text("two")}};
  EXPECT_EQ(e.sent(), "X-Internal: kept\nX-B: old\n" + own +
                          "x-a: new\ncookie: set after remove\nx-b: one\nx-b: two\n");
}

TEST(RequestFields, EditsConcernOurOwnFieldsToo) {
  Exchange e("Via: 1.0 x\n");
  e.edits.remove = {"x-forwarded-*", "via"};
  e.edits.set = {{"x-request-id", text("fixed")},
                 {"x-forwarded-for", variable(Variable::client_address)}};
  EXPECT_EQ(e.sent(), "x-request-id: fixed\nx-forwarded-for: 203.0.113.9\n");
}

TEST(RequestFields, EmptyValuesWriteNoField) {
  Exchange e("X-User: evil\n");
  e.edits.set = {{"x-user", variable(Variable::request_header, "x-absent")}};
  EXPECT_EQ(e.sent(), own);
}

TEST(RequestFields, HostIsTheCallers) {
  Exchange e;
  EXPECT_EQ(host_override(e.edits), nullptr);
  e.edits.set = {{"x-a", text("1")}, {"host", text("other.test")}};
  EXPECT_EQ(e.sent(), own + "x-a: 1\n");
  ASSERT_NE(host_override(e.edits), nullptr);
  EXPECT_EQ(e.expanded(*host_override(e.edits)), "other.test");
}

TEST(RequestFields, LongValuesGrowTheHead) {
  const std::string value(256, 'v');
  const std::string huge(20'000, 'h');
  Exchange e("X-A: " + value + "\nX-Forwarded-For: " + value + "\n");
  e.trust_peer();
  e.edits.set = {{"x-b", text(huge)}};
  EXPECT_EQ(e.sent(), "X-A: " + value + "\nX-Forwarded-For: " + value + ", 203.0.113.9\n" +
                          own.substr(own.find("X-Forwarded-Proto")) + "x-b: " + huge + "\n");
}

// RFC 8470 §5.1: what came as early data is said to be, once, whatever the client or the route
// says.
TEST(RequestFields, EarlyDataIsTold) {
  Exchange e("Early-Data: 1\nAccept: a\nearly-data: 1\n");
  EXPECT_EQ(e.sent(), "Early-Data: 1\nAccept: a\nearly-data: 1\n" + own) << "its own word stays";
  e.facts.early = true;
  EXPECT_EQ(e.sent(), "Accept: a\n" + own + "Early-Data: 1\n");
  e.edits.remove = {"early-data"};
  EXPECT_EQ(e.sent(), "Accept: a\n" + own + "Early-Data: 1\n");
}

TEST(RequestFields, OnlyTheArenaIsUsed) {
  Exchange e("Accept: */*\nX_A: 1\nX-Forwarded-For: 1.1.1.1\n");
  e.trust_peer();
  e.forwarding.forwarded = true;
  e.edits.set = {{"x-a", variable(Variable::uri)}};
  http::HeadWriter out(e.arena(), 1024);
  const test::AllocationCount allocations;
  write_request_fields(out, e.request, e.facts, e.forwarding, e.edits, e.arena());
  EXPECT_EQ(allocations.count(), 0U);
}

TEST(Templates, Variables) {
  Exchange e("X-Q: q1\nx-q: q2\n");
  EXPECT_EQ(e.expanded(variable(Variable::client_address)), "203.0.113.9");
  EXPECT_EQ(e.expanded(variable(Variable::client_port)), "4711");
  EXPECT_EQ(e.expanded(variable(Variable::host)), "a.test:8080");
  EXPECT_EQ(e.expanded(variable(Variable::hostname)), "a.test");
  EXPECT_EQ(e.expanded(variable(Variable::method)), "GET");
  EXPECT_EQ(e.expanded(variable(Variable::path)), "/a/b");
  EXPECT_EQ(e.expanded(variable(Variable::query)), "x=1");
  EXPECT_EQ(e.expanded(variable(Variable::uri)), "/a/b?x=1");
  EXPECT_EQ(e.expanded(variable(Variable::scheme)), "http");
  EXPECT_EQ(e.expanded(variable(Variable::request_id)), "id-1");
  EXPECT_EQ(e.expanded(variable(Variable::server_name)), "edge");
  EXPECT_EQ(e.expanded(variable(Variable::listener)), "web");
  EXPECT_EQ(e.expanded(variable(Variable::request_header, "x-q")), "q1");
  EXPECT_EQ(e.expanded(variable(Variable::request_header, "x-none")), "");
  e.facts.host = "[::1]:80";
  EXPECT_EQ(e.expanded(variable(Variable::hostname)), "[::1]");
  e.facts.host = "[::1]";
  EXPECT_EQ(e.expanded(variable(Variable::hostname)), "[::1]");
  e.facts.client_port = 0;
  EXPECT_EQ(e.expanded(variable(Variable::client_port)), "");
  e.facts.query = "";
  EXPECT_EQ(e.expanded(variable(Variable::uri)), "/a/b?");
  e.facts.has_query = false;
  EXPECT_EQ(e.expanded(variable(Variable::uri)), "/a/b");
  EXPECT_NE(expand({}, e.facts, e.arena()).data(), nullptr);
}

TEST(Templates, NothingEndsTheLine) {
  Exchange e;
  e.facts.path = std::string_view("/a\r\nSet-Cookie: x\0y\n", 19);
  EXPECT_EQ(e.expanded(variable(Variable::path)), "/aSet-Cookie: xy");
  EXPECT_EQ(e.expanded(text("a\nb")), "ab");
  e.edits.set = {{"x-a", variable(Variable::path)}};
  EXPECT_EQ(e.sent(), own + "x-a: /aSet-Cookie: xy\n");
}

TEST(RequestIds, FreshOnesDiffer) {
  Exchange e;
  RequestIds ids(1, 2);
  const std::string a(ids.next(e.arena()));
  const std::string b(ids.next(e.arena()));
  EXPECT_EQ(a.size(), 32U);
  EXPECT_EQ(a.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(a, b);
  RequestIds zero(0, 0);
  const std::string c(zero.next(e.arena()));
  EXPECT_NE(c, std::string(zero.next(e.arena())));
  EXPECT_EQ(std::string(RequestIds(1, 2).next(e.arena())), a)
      << "the simulator needs it repeatable";
}

TEST(RequestIds, OnlyATrustedPeersIsKept) {
  RequestIds ids(1, 2);
  Exchange stranger("X-Request-Id: abc-1\n");
  EXPECT_EQ(ids.keep_or_next(stranger.facts, stranger.arena()).size(), 32U);
  Exchange trusted("X-Request-Id: abc-1._~+/=Z\n");
  trusted.trust_peer();
  EXPECT_EQ(ids.keep_or_next(trusted.facts, trusted.arena()), "abc-1._~+/=Z");
  for (const std::string& bad :
       {std::string("a b"), std::string("a\""), std::string(), std::string(129, 'a')}) {
    Exchange e("X-Request-Id: " + bad + "\n");
    e.trust_peer();
    EXPECT_EQ(ids.keep_or_next(e.facts, e.arena()).size(), 32U) << bad;
  }
  Exchange longest("X-Request-Id: " + std::string(128, 'a') + "\n");
  longest.trust_peer();
  EXPECT_EQ(ids.keep_or_next(longest.facts, longest.arena()).size(), 128U);
}

}  // namespace
}  // namespace ringside::filter
