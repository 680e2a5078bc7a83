// Request lines: methods, targets in their four forms, versions, limits (RFC 9112 §2.2, §3).
#include "parse_all_ways.h"

namespace ringside::http::test {
namespace {

std::string with_line(std::string_view line) {
  return std::string(line) + "\r\nHost: a.test\r\n\r\n";
}

TEST(RequestLine, MethodsThatAreKnown) {
  const std::pair<std::string, Method> cases[] = {
      {"GET", Method::get},        {"HEAD", Method::head},      {"POST", Method::post},
      {"PUT", Method::put},        {"DELETE", Method::delete_}, {"OPTIONS", Method::options},
      {"TRACE", Method::trace},    {"PATCH", Method::patch},    {"get", Method::other},
      {"PURGE", Method::other},    {"M-SEARCH", Method::other}, {"DELETED", Method::other},
      {"GETS", Method::other},     {"X", Method::other},        {"!#$%&'*+-.^_`|~", Method::other},
      {"PROPFIND", Method::other}, {"FOO", Method::other},      {"OPTIONZ", Method::other},
  };
  for (const auto& [text, method] : cases) {
    auto run = parse_request(with_line(text + " / HTTP/1.1"));
    ASSERT_EQ(run->state, ParseState::done) << text;
    EXPECT_EQ(run->parser.head().method, method) << text;
    EXPECT_EQ(run->parser.head().method_text, text);
  }
}

TEST(RequestLine, IsRefused) {
  const std::pair<std::string_view, int> cases[] = {
      {"G=\":<>(e),[T];?\" / HTTP/1.1", 400},  // no token
      {"G@T / HTTP/1.1", 400},
      {"G\x80T / HTTP/1.1", 400},
      {" GET / HTTP/1.1", 400},  // begins with a blank
      {"\tGET / HTTP/1.1", 400},
      {"GET", 400},
      {"GET ", 400},
      {"GET  / HTTP/1.1", 400},  // two spaces
      {"GET /  HTTP/1.1", 400},
      {"GET\t/ HTTP/1.1", 400},
      {"GET /\tHTTP/1.1", 400},
      {"GET / HTTP/1.1 ", 400},
      {"GET /", 400},  // HTTP/0.9
      {"GET / ", 400},
      {"GET HTTP/1.1", 400},
      {"GET /a b HTTP/1.1", 400},
      {"GET /public#.png HTTP/1.1", 400},  // fragment
      {"GET /# HTTP/1.1", 400},
      {"GET http://a.test/#x HTTP/1.1", 400},
      {"GET /\xc3\xa9 HTTP/1.1", 400},
      {"GET /\xff HTTP/1.1", 400},
      {"GET /\x7f HTTP/1.1", 400},
      {"GET /a\x0b HTTP/1.1", 400},
      {"GET a.test HTTP/1.1", 400},  // authority form is for CONNECT
      {"GET a.test:80 HTTP/1.1", 400},
      {"GET path HTTP/1.1", 400},
      {"GET ?x HTTP/1.1", 400},
      {"GET * HTTP/1.1", 400},
      {"POST * HTTP/1.1", 400},
      {"OPTIONS ** HTTP/1.1", 400},
      {"GET ftp://a.test/ HTTP/1.1", 400},
      {"GET file:///etc HTTP/1.1", 400},
      {"GET http:/a.test HTTP/1.1", 400},
      {"GET http:// HTTP/1.1", 400},
      {"GET http:///x HTTP/1.1", 400},
      {"GET http://?x HTTP/1.1", 400},
      {"GET http://:80/ HTTP/1.1", 400},
      {"GET http://user@a.test/ HTTP/1.1", 400},
      {"GET http://user:pass@a.test/ HTTP/1.1", 400},
      {"GET http://a.test:x/ HTTP/1.1", 400},
      {"GET http://a.test:65536/ HTTP/1.1", 400},
      {"GET http://a.test\\@b.test/ HTTP/1.1", 400},
      {"GET http://[::1/ HTTP/1.1", 400},
      {"CONNECT / HTTP/1.1", 400},
      {"CONNECT a.test HTTP/1.1", 400},
      {"CONNECT a.test: HTTP/1.1", 400},
      {"CONNECT http://a.test:80/ HTTP/1.1", 400},
      {"CONNECT a.test:80/ HTTP/1.1", 400},
      {"CONNECT * HTTP/1.1", 400},
      {"GET / HTTP/1.1x", 400},
      {"GET / HTTP/1.32", 400},
      {"GET / HTTP/11", 400},
      {"GET / HTTP/1", 400},
      {"GET / HTTP/1.", 400},
      {"GET / HTTP/.1", 400},
      {"GET / HTTP/a.b", 400},
      {"GET / HTTP/a.1", 400},
      {"GET / HTTP/1.a", 400},
      {"GET / HTTP/-.1", 400},
      {"GET / HTTP/1,1", 400},
      {"GET / HTTP/ 1.1", 400},
      {"GET / HTTP/01.1", 400},
      {"GET / http/1.1", 400},
      {"GET / HTTPS/1.1", 400},
      {"GET / XTTP/1.1", 400},
      {"GET / HTTP/2.0", 505},
      {"PRI * HTTP/2.0", 505},
      {"GET / HTTP/0.9", 505},
      {"GET / HTTP/1.2", 505},
      {"GET / HTTP/1.9", 505},
      {"GET / HTTP/3.0", 505},
  };
  for (const auto& [line, status] : cases)
    EXPECT_EQ(status_of(with_line(line)), status) << line;
}

TEST(RequestLine, OriginForm) {
  struct Case {
    std::string_view target, path, query;
    bool has_query;
  };
  const Case cases[] = {
      {"/", "/", "", false},
      {"/a/b", "/a/b", "", false},
      {"/a?", "/a", "", true},
      {"/a?x=1&y=/?z", "/a", "x=1&y=/?z", true},
      {"//evil.test/x", "//evil.test/x", "", false},  // no authority is read from it
      {"/http://x/", "/http://x/", "", false},
      {"/a\\b|^`{}\"<>", "/a\\b|^`{}\"<>", "", false},
      {"/%zz", "/%zz", "", false},  // normalise_path decides about encodings
      {"/a:b@c", "/a:b@c", "", false},
      {"/*", "/*", "", false},
  };
  for (const Case& c : cases) {
    auto run = parse_request(with_line("GET " + std::string(c.target) + " HTTP/1.1"));
    ASSERT_EQ(run->state, ParseState::done) << c.target;
    const RequestHead& head = run->parser.head();
    EXPECT_EQ(head.form, TargetForm::origin);
    EXPECT_EQ(head.target, c.target);
    EXPECT_EQ(head.path, c.path);
    EXPECT_EQ(head.query, c.query);
    EXPECT_EQ(head.has_query, c.has_query);
    EXPECT_EQ(head.authority, "a.test");
  }
}

TEST(RequestLine, AbsoluteFormDecidesOverHost) {
  struct Case {
    std::string_view method, target, authority, host, path, query;
    bool has_query;
  };
  const Case cases[] = {
      {"GET", "http://good.test/x", "good.test", "good.test", "/x", "", false},
      {"GET", "HTTPS://Good.test:8443/x?y", "Good.test:8443", "Good.test", "/x", "y", true},
      {"GET", "http://a.test", "a.test", "a.test", "/", "", false},
      {"GET", "http://a.test?x=1", "a.test", "a.test", "/", "x=1", true},
      {"GET", "http://[2001:db8::1]:80/", "[2001:db8::1]:80", "[2001:db8::1]", "/", "", false},
      {"GET", "http://a.test:/", "a.test:", "a.test", "/", "", false},
      {"GET", "http://a.test/@b", "a.test", "a.test", "/@b", "", false},
      {"GET", "http://a.test/?u=http://b.test/", "a.test", "a.test", "/", "u=http://b.test/", true},
      {"OPTIONS", "http://a.test", "a.test", "a.test", "*", "", false},  // RFC 9112 §3.2.4
      {"OPTIONS", "http://a.test/", "a.test", "a.test", "/", "", false},
      {"OPTIONS", "http://a.test?", "a.test", "a.test", "/", "", true},
  };
  for (const Case& c : cases) {
    std::string line = std::string(c.method) + ' ' + std::string(c.target) + " HTTP/1.1";
    auto run = parse_request(line + "\r\nHost: evil.test\r\n\r\n");
    ASSERT_EQ(run->state, ParseState::done) << c.target;
    const RequestHead& head = run->parser.head();
    EXPECT_EQ(head.form, TargetForm::absolute);
    EXPECT_EQ(head.authority, c.authority);
    EXPECT_EQ(head.host, c.host);
    EXPECT_EQ(head.path, c.path);
    EXPECT_EQ(head.query, c.query);
    EXPECT_EQ(head.has_query, c.has_query);
    EXPECT_EQ(head.target, c.target);
  }
  EXPECT_EQ(status_of("GET http://a.test/ HTTP/1.1\r\n\r\n"), 400) << "Host is still required";
  EXPECT_EQ(status_of("GET http://a.test/ HTTP/1.1\r\nHost: a b\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET http://a.test/ HTTP/1.0\r\n\r\n"), 0);
}

TEST(RequestLine, AuthorityAndAsteriskForm) {
  auto connect = parse_request("CONNECT b.test:25 HTTP/1.1\r\nHost: a.test\r\n\r\n");
  ASSERT_EQ(connect->state, ParseState::done);
  EXPECT_EQ(connect->parser.head().form, TargetForm::authority);
  EXPECT_EQ(connect->parser.head().method, Method::connect);
  EXPECT_EQ(connect->parser.head().authority, "b.test:25");
  EXPECT_EQ(connect->parser.head().host, "b.test");
  EXPECT_EQ(connect->parser.head().path, "");

  auto options = parse_request(with_line("OPTIONS * HTTP/1.1"));
  ASSERT_EQ(options->state, ParseState::done);
  EXPECT_EQ(options->parser.head().form, TargetForm::asterisk);
  EXPECT_EQ(options->parser.head().path, "*");
  EXPECT_EQ(options->parser.head().authority, "a.test");
}

TEST(RequestLine, EmptyLinesBeforeIt) {
  std::string request = get_with("");
  std::string lines;
  for (int n = 0; n <= 4; ++n, lines += "\r\n") {
    auto run = parse_request(lines + request);
    ASSERT_EQ(run->state, ParseState::done) << n;
    EXPECT_EQ(run->parser.consumed(), lines.size() + request.size());
  }
  EXPECT_EQ(status_of("\r\n\r\n\r\n\r\n\r\n"), 400);
  EXPECT_EQ(status_of(lines + request), 400);
  EXPECT_EQ(status_of("\n" + request), 400);
  EXPECT_EQ(status_of("\r\r\n" + request), 400);
  EXPECT_EQ(status_of(" \r\n" + request), 400);
}

TEST(RequestLine, StartedOnceAByteOfItIsThere) {
  for (auto [input, started] : {std::pair{""sv, false},
                                {"\r"sv, false},
                                {"\r\n"sv, false},
                                {"\r\n\r"sv, false},
                                {"\r\n\r\nG"sv, true},
                                {"G"sv, true}}) {
    ParserRun<RequestParser> run{HeadLimits{}};
    EXPECT_EQ(run.feed(input), ParseState::need_more);
    EXPECT_EQ(run.parser.started(), started) << input;
  }
}

TEST(RequestLine, TooLongIs414AtTheFirstByteTooMany) {
  HeadLimits limits;
  limits.line_bytes_max = 40;
  std::string fits = "GET /" + std::string(40 - 14, 'a') + " HTTP/1.1";
  ASSERT_EQ(fits.size(), 40U);
  EXPECT_EQ(status_of(with_line(fits), limits), 0);
  EXPECT_EQ(status_of(fits, limits), -1);
  EXPECT_EQ(status_of("\r\n\r\n" + with_line(fits), limits), 0) << "empty lines are not part of it";
  EXPECT_EQ(status_of(fits + "x", limits), 414);
  EXPECT_EQ(status_of("GET /" + std::string(40, 'a') + " HTTP/1.1\r\n", limits), 414);
  EXPECT_EQ(status_of(std::string(41, 'a'), limits), 414);
  EXPECT_EQ(status_of(std::string(40, 'a'), limits), -1);
  // The whole head's limit holds for the first line as well.
  limits.head_bytes_max = 30;
  EXPECT_EQ(status_of(std::string(31, 'a'), limits), 414);
}

TEST(RequestLine, FaultsShowBeforeTheHeadIsComplete) {
  EXPECT_EQ(status_of("GET /# HTTP/1.1\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/7.0\r\n"), 505);
  EXPECT_EQ(status_of("GET /\n"), 400) << "a bare LF, though the line has no CRLF yet";
  EXPECT_EQ(status_of("GET /\0"sv), 400);
  EXPECT_EQ(status_of("GET /\rx"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r"), -1);
}

}  // namespace
}  // namespace ringside::http::test
