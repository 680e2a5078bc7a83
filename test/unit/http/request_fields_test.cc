// Field lines of requests: syntax, Host, Connection, limits (RFC 9112 §5, RFC 9110 §5.5, §7).
#include "parse_all_ways.h"

namespace ringside::http::test {
namespace {

TEST(RequestFields, AreReadInOrderWithoutSurroundingBlanks) {
  std::string input = get_with(
      "Accept:a\r\nX-Empty:\r\nX-Blank: \t \r\nX-Tab:\t b\tc \t\r\nX-Obs: \x80\xff\r\n"
      "!#$%&'*+-.^_`|~09azAZ: v:w\r\nX-Quote: \"a\\\"b\"\r\n");
  auto run = parse_request(input + "BODY");
  ASSERT_EQ(run->state, ParseState::done);
  EXPECT_EQ(run->parser.consumed(), input.size());
  const FieldList& fields = run->parser.head().fields;
  const std::pair<std::string_view, std::string_view> expected[] = {
      {"Host", "a.test"},
      {"Accept", "a"},
      {"X-Empty", ""},
      {"X-Blank", ""},
      {"X-Tab", "b\tc"},
      {"X-Obs", "\x80\xff"},
      {"!#$%&'*+-.^_`|~09azAZ", "v:w"},
      {"X-Quote", "\"a\\\"b\""},
  };
  ASSERT_EQ(fields.size(), std::size(expected));
  for (std::size_t i = 0; i < fields.size(); ++i) {
    EXPECT_EQ(fields[i].name, expected[i].first);
    EXPECT_EQ(fields[i].value, expected[i].second);
    EXPECT_FALSE(fields[i].hop_by_hop);
  }
  EXPECT_EQ(fields[0].id, FieldId::host);
  EXPECT_EQ(fields[1].id, FieldId::other);
}

TEST(RequestFields, FaultyLines) {
  const std::string_view cases[] = {
      "X-A: b\rTransfer-Encoding: chunked\r\n"sv,  // bare CR
      "X-A: b\r\r\n"sv,
      "\rX-A: b\r\n"sv,
      "X-A: b\n"sv,  // bare LF
      "X-A: b\nX-B: c\r\n"sv,
      "\nX-A: b\r\n"sv,
      "X-A: \0\r\n"sv,
      "X\0A: b\r\n"sv,
      "X-A: a\x01\r\n"sv,
      "X-A: a\x0b\r\n"sv,
      "X-A: a\x0c\r\n"sv,
      "X-A: a\x1f\r\n"sv,
      "X-A: a\x7f\r\n"sv,
      "X-A: b\r\n folded\r\n"sv,  // obsolete folding
      "X-A: b\r\n\tfolded\r\n"sv,
      "X-A: b\r\n \r\n"sv,
      "Content-Length : 5\r\n"sv,
      "Content-Length\t: 5\r\n"sv,
      "X-A \r\n"sv,
      ": value\r\n"sv,  // no name
      ":\r\n"sv,
      "nocolonhere\r\n"sv,
      "no colon here\r\n"sv,
      "X;B: c\r\n"sv,
      "X@B: c\r\n"sv,
      "X(B): c\r\n"sv,
      "X\"B: c\r\n"sv,
      "X/B: c\r\n"sv,
      "X[B]: c\r\n"sv,
      "X{B}: c\r\n"sv,
      "Transfer-Encoding\xa0: chunked\r\n"sv,
      "Transfer-Encoding\x85: chunked\r\n"sv,
      "\xef\xbb\xbfTransfer-Encoding: chunked\r\n"sv,
      "X-\xc3\xa9: c\r\n"sv,
  };
  for (std::string_view line : cases)
    EXPECT_EQ(status_of(get_with(line)), 400) << line;
  // A blank line start before any field is no folding, but no field either.
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n Host: a.test\r\n\r\n"), 400);
}

TEST(RequestFields, EveryByteOfNamesAndValues) {
  for (int c = 0; c < 256; ++c) {
    std::string in_name = get_with(std::string("X") + static_cast<char>(c) + "Y: 1\r\n");
    std::string in_value = get_with(std::string("X: a") + static_cast<char>(c) + "b\r\n");
    bool tchar =
        std::string_view("!#$%&'*+-.^_`|~").find(static_cast<char>(c)) != std::string_view::npos ||
        (c < 128 && std::isalnum(c) != 0);
    bool text = c == '\t' || (c >= 0x20 && c != 0x7f);
    RequestParser* parser = nullptr;
    ParserRun<RequestParser> name{HeadLimits{}};
    ParserRun<RequestParser> value{HeadLimits{}};
    parser = &name.parser;
    // "X:Y: 1" is the field X with the value "Y: 1".
    EXPECT_EQ(name.feed(in_name), tchar || c == ':' ? ParseState::done : ParseState::failed) << c;
    if (name.state == ParseState::failed) {
      EXPECT_EQ(parser->fault().status, 400) << c;
    }
    EXPECT_EQ(value.feed(in_value), text ? ParseState::done : ParseState::failed) << c;
  }
}

TEST(RequestFields, FaultsShowAtTheirLine) {
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\nbad line\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nX: a\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nX: a\x01"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nContent-Length: x\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nbad line"), -1);
}

TEST(RequestFields, BareLfRequest) {
  EXPECT_EQ(status_of("GET / HTTP/1.1\nHost: a.test\nX-A: b\n\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a.test\n\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a.test\r\n\n"), 400);
}

TEST(RequestFields, Host) {
  struct Case {
    std::string_view value, host;
    int status;
  };
  const Case cases[] = {
      {"a.test", "a.test", 0},
      {"A.Test:8080", "A.Test", 0},
      {"a.test:", "a.test", 0},
      {"127.0.0.1:80", "127.0.0.1", 0},
      {"[::1]:80", "[::1]", 0},
      {"a_b.test", "a_b.test", 0},
      {"", "", 0},
      {"a b", "", 400},
      {"a.test/x", "", 400},
      {"a.test?x", "", 400},
      {"a.test#x", "", 400},
      {"user@a.test", "", 400},
      {"a.test:x", "", 400},
      {"a.test:-1", "", 400},
      {"a.test:80:80", "", 400},
      {"a.test:65536", "", 400},
      {"a.test:000080", "", 400},
      {":80", "", 400},
      {"::1", "", 400},
      {"[::1", "", 400},
      {"[::1]x", "", 400},
      {"[a.test]", "", 400},
      {"http://a.test", "", 400},
      {"a.test\\b", "", 400},
      {"\xc3\xa9.test", "", 400},
      {"a.test, b.test", "", 400},
      {"\"a\"", "", 400},
      {"%41.test", "%41.test", 0},
      {"%4.test", "", 400},
  };
  for (const Case& c : cases) {
    auto run = parse_request("GET / HTTP/1.1\r\nHost: " + std::string(c.value) + "\r\n\r\n");
    if (c.status != 0) {
      ASSERT_EQ(run->state, ParseState::failed) << c.value;
      EXPECT_EQ(run->parser.fault().status, c.status) << c.value;
      continue;
    }
    ASSERT_EQ(run->state, ParseState::done) << c.value;
    EXPECT_EQ(run->parser.head().authority, c.value);
    EXPECT_EQ(run->parser.head().host, c.host);
  }
}

TEST(RequestFields, HostMissingOrTwice) {
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nX-Host: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.0\r\n\r\n"), 0);
  EXPECT_EQ(status_of(get_with("Host: b.test\r\n")), 400);
  EXPECT_EQ(status_of(get_with("HOST: a.test\r\n")), 400) << "equal values as well";
  EXPECT_EQ(status_of("GET / HTTP/1.0\r\nHost: a\r\nX: y\r\nhost: a\r\n\r\n"), 400);
}

TEST(RequestFields, TooManyOrTooLargeIs431) {
  HeadLimits limits;
  limits.fields_max = 3;
  EXPECT_EQ(status_of(get_with("A: 1\r\nB: 2\r\n"), limits), 0);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\nA: 1\r\nB: 2\r\nC: 3\r\n", limits), 431);
  limits.fields_max = 100;
  std::string exact = get_with("A: 123456789\r\n");
  limits.head_bytes_max = static_cast<std::uint32_t>(exact.size());
  EXPECT_EQ(status_of(exact, limits), 0);
  limits.head_bytes_max -= 1;
  EXPECT_EQ(status_of(exact, limits), 431);
  limits.head_bytes_max = 64;
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\nA: " + std::string(100, 'x'), limits), 431)
      << "before the line ends";
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\n" + std::string(100, '\n'), limits), 400)
      << "what comes first is reported";
}

TEST(RequestFields, ConnectionPersistsOrNot) {
  const std::tuple<std::string_view, std::string_view, bool> cases[] = {
      {"1.1", "", true},
      {"1.1", "Connection: close\r\n", false},
      {"1.1", "Connection: CLOSE\r\n", false},
      {"1.1", "Connection: keep-alive, Close\r\n", false},
      {"1.1", "Connection: x\r\nConnection: ,\tclose ,\r\n", false},
      {"1.1", "Connection: closed\r\n", true},
      {"1.1", "Connection: keep-alive\r\n", true},
      {"1.1", "Proxy-Connection: close\r\n", true},
      {"1.0", "", false},
      {"1.0", "Connection: Keep-Alive\r\n", true},
      {"1.0", "Connection: keep-alive, close\r\n", false},
      {"1.0", "Proxy-Connection: keep-alive\r\n", false},
      {"1.0", "Keep-Alive: timeout=5\r\n", false},
  };
  for (const auto& [version, lines, keep_alive] : cases) {
    auto run = parse_request("GET / HTTP/" + std::string(version) + "\r\nHost: a\r\n" +
                             std::string(lines) + "\r\n");
    ASSERT_EQ(run->state, ParseState::done);
    EXPECT_EQ(run->parser.head().keep_alive, keep_alive) << version << ' ' << lines;
  }
}

TEST(RequestFields, HopByHopAndNominatedOnesAreMarked) {
  auto run = parse_request(get_with(
      "X-Secret: early\r\n"
      "Connection: keep-alive, X-Secret, Host, ,content-length, Content-Type,Via\r\n"
      "X-Secret: 1\r\nx-SECRET: 2\r\nX-Secrets: 3\r\nKeep-Alive: timeout=5\r\nProxy-Connection: "
      "x\r\n"
      "TE: gzip\r\nUpgrade: h2c\r\nHTTP2-Settings: A\r\nContent-Length: 0\r\nContent-Type: t\r\n"
      "Via: 1.1 x\r\nTrailer: X-T\r\nCookie: c\r\nReferer: r\r\nProxy-Authorization: p\r\n"
      "Connection: cookie, referer, \"x\", a b\r\n"));
  ASSERT_EQ(run->state, ParseState::done);
  const std::pair<std::string_view, bool> expected[] = {
      {"Host", false},
      {"X-Secret", true},
      {"Connection", true},
      {"X-Secret", true},
      {"x-SECRET", true},
      {"X-Secrets", false},
      {"Keep-Alive", true},
      {"Proxy-Connection", true},
      {"TE", true},
      {"Upgrade", true},
      {"HTTP2-Settings", true},
      {"Content-Length", true},
      {"Content-Type", false},
      {"Via", false},
      {"Trailer", false},
      {"Cookie", true},
      {"Referer", true},
      {"Proxy-Authorization", false},
      {"Connection", true},
  };
  const FieldList& fields = run->parser.head().fields;
  ASSERT_EQ(fields.size(), std::size(expected));
  for (std::size_t i = 0; i < fields.size(); ++i) {
    EXPECT_EQ(fields[i].name, expected[i].first);
    EXPECT_EQ(fields[i].hop_by_hop, expected[i].second) << fields[i].name;
  }
  EXPECT_EQ(run->parser.head().host, "a.test");
}

TEST(RequestFields, ConnectionCannotRemoveWhatSaysHowToReadTheBody) {
  auto run = parse_request(
      get_with("Connection: content-encoding, content-range, expect, date, max-forwards\r\n"
               "Content-Encoding: gzip\r\nContent-Range: x\r\nExpect: 100-continue\r\n"
               "Date: d\r\nMax-Forwards: 1\r\n"));
  ASSERT_EQ(run->state, ParseState::done);
  for (const Field& f : run->parser.head().fields)
    EXPECT_EQ(f.hop_by_hop, f.name == "Connection") << f.name;
}

TEST(RequestFields, ConnectionOptionsAreBounded) {
  std::string options = "Connection: a";
  for (int i = 1; i < 64; ++i)
    options += ",a";
  EXPECT_EQ(status_of(get_with(options + "\r\n")), 0);
  EXPECT_EQ(status_of(get_with(options + ",a\r\n")), 431);
  EXPECT_EQ(status_of(get_with(options + "\r\nConnection: a\r\n")), 431);
}

TEST(RequestFields, UpgradeExpectAndTe) {
  struct Case {
    std::string_view lines;
    bool upgrade, expect, te;
  };
  const Case cases[] = {
      {"", false, false, false},
      {"Connection: Upgrade\r\nUpgrade: websocket\r\n", true, false, false},
      {"Upgrade: websocket\r\nConnection: keep-alive, upgrade\r\n", true, false, false},
      {"Upgrade: websocket\r\n", false, false, false},
      {"Connection: Upgrade\r\n", false, false, false},
      {"Expect: 100-continue\r\n", false, true, false},
      {"Expect: 100-Continue\r\n", false, true, false},
      {"Expect: 100-continued\r\n", false, false, false},
      {"TE: trailers\r\n", false, false, true},
      {"TE: gzip;q=0.5 , Trailers\r\n", false, false, true},
      {"TE: gzip\r\n", false, false, false},
  };
  for (const Case& c : cases) {
    auto run = parse_request(get_with(c.lines));
    ASSERT_EQ(run->state, ParseState::done);
    EXPECT_EQ(run->parser.head().upgrade, c.upgrade) << c.lines;
    EXPECT_EQ(run->parser.head().expect_continue, c.expect) << c.lines;
    EXPECT_EQ(run->parser.head().te_trailers, c.te) << c.lines;
  }
  auto old = parse_request(
      "POST / HTTP/1.0\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\nExpect: "
      "100-continue\r\n\r\n");
  ASSERT_EQ(old->state, ParseState::done);
  EXPECT_FALSE(old->parser.head().upgrade);
  EXPECT_FALSE(old->parser.head().expect_continue);
}

}  // namespace
}  // namespace ringside::http::test
