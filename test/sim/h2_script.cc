#include "h2_script.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "../unit/http/h2_peer.h"

namespace ringside::sim {

namespace {

const H2FieldList malformed_requests[] = {
    {{":method", "GET"}, {":scheme", "http"}, {":authority", "a"}},
    {{":method", "GET"}, {":scheme", "http"}, {":authority", "a"}, {":path", ""}},
    {{":method", "GET"}, {":scheme", "http"}, {":authority", "a"}, {":path", "e/x"}},
    {{":method", "GET"}, {":scheme", "http"}, {":path", "/e/x"}},
    {{":method", "GET"}, {":method", "GET"}, {":scheme", "http"}, {":path", "/e/x"}},
    {{":method", "GET"}, {":scheme", "http"}, {"x", "1"}, {":path", "/e/x"}, {"host", "a"}},
    {{":method", "GET"}, {":scheme", "http"}, {":path", "/e/x"}, {"host", "a"}, {"host", "b"}},
    {{":method", "GET"},
     {":scheme", "http"},
     {":path", "/e/x"},
     {":authority", "a"},
     {"host", "b"}},
    {{":method", "GET"}, {":scheme", "http"}, {":path", "/e/x"}, {"host", "a"}, {"te", "gzip"}},
    {{":method", "GET"},
     {":scheme", "http"},
     {":path", "/e/x"},
     {"host", "a"},
     {"connection", "keep-alive"}},
    {{":method", "POST"},
     {":scheme", "http"},
     {":path", "/e/x"},
     {"host", "a"},
     {"transfer-encoding", "chunked"}},
    {{":method", "POST"},
     {":scheme", "http"},
     {":path", "/e/x"},
     {"host", "a"},
     {"content-length", "5"}},
    {{":method", "POST"},
     {":scheme", "http"},
     {":path", "/e/x"},
     {"host", "a"},
     {"content-length", "0"},
     {"content-length", "0"}},
    {{":method", "GET"}, {":scheme", "http"}, {":path", "/e/x"}, {"host", "a"}, {"x", "a\nb"}},
    {{":method", "GET"}, {":scheme", "http"}, {":path", "/e/x"}, {"host", "a"}, {"bad name", "x"}},
    {{":method", "G(T"}, {":scheme", "http"}, {":path", "/e/x"}, {"host", "a"}},
    {{":method", "GET"}, {":scheme", "ftp"}, {":path", "/e/x"}, {"host", "a"}},
};

const H2FieldList malformed_answers[] = {
    {{"x-sim-id", "1"}},
    {{":status", "200"}, {":status", "200"}},
    {{":status", "20x"}},
    {{":status", "99"}},
    {{":status", ""}},
    {{"x", "1"}, {":status", "200"}},
    {{":status", "200"}, {":path", "/"}},
    {{":status", "200"}, {"connection", "close"}},
    {{":status", "200"}, {"transfer-encoding", "chunked"}},
    {{":status", "200"}, {"Bad", "x"}},
    {{":status", "200"}, {"bad name", "x"}},
    {{":status", "200"}, {"x", "a\nb"}},
    {{":status", "200"}, {"content-length", "1x"}},
    {{":status", "200"}, {"content-length", "3"}, {"content-length", "4"}},
    {{":status", "101"}},
};
static_assert(std::size(malformed_answers) == h2_malformed_answers);

using namespace std::string_view_literals;

constexpr std::string_view mistakes[] = {
    "\0\0\1\0\0\0\0\0\0x"sv,                  // DATA of stream 0
    "\0\0\1\0\0\0\0\x7f\x01x"sv,              // DATA of a stream that was never opened
    "\0\0\1\1\5\0\0\0\2\x82"sv,               // HEADERS of a stream that is the server's
    "\0\0\1\1\5\0\0\x7f\x01\xff"sv,           // a header block that ends in a number
    "\0\0\1\1\5\0\0\x7f\x01\xfe"sv,           // a field that no table has
    "\0\0\4\3\0\0\0\x7f\x01\0\0\0\1"sv,       // RST_STREAM of a stream that was never opened
    "\0\0\3\3\0\0\0\0\1\0\0\0"sv,             // RST_STREAM of three bytes
    "\0\0\5\4\0\0\0\0\0\0\1\0\0\0"sv,         // SETTINGS of five bytes
    "\0\0\6\4\0\0\0\0\0\0\2\0\0\0\2"sv,       // SETTINGS_ENABLE_PUSH of 2
    "\0\0\6\4\0\0\0\0\0\0\4\x80\0\0\0"sv,     // SETTINGS_INITIAL_WINDOW_SIZE beyond 2^31-1
    "\0\0\6\4\0\0\0\0\0\0\5\0\0\0\1"sv,       // SETTINGS_MAX_FRAME_SIZE of 1
    "\0\0\0\4\0\0\0\0\1"sv,                   // SETTINGS of a stream
    "\0\0\5\5\4\0\0\0\1\0\0\0\2\x82"sv,       // PUSH_PROMISE
    "\0\0\7\6\0\0\0\0\0\1\2\3\4\5\6\7"sv,     // PING of seven bytes
    "\0\0\4\7\0\0\0\0\0\0\0\0\0"sv,           // GOAWAY of four bytes
    "\0\0\4\x8\0\0\0\0\0\0\0\0\0"sv,          // WINDOW_UPDATE by nothing
    "\0\0\4\x8\0\0\0\0\0\x7f\xff\xff\xff"sv,  // WINDOW_UPDATE beyond 2^31-1
    "\0\0\1\x9\4\0\0\0\1\x82"sv,              // CONTINUATION of nothing
    "\xff\xff\xff\0\0\0\0\0\1"sv,             // a frame that is too large
    "GET / HTTP/1.1\r\nHost: a\r\n\r\n"sv,    // another protocol
};

static_assert(std::size(mistakes) == h2_mistakes);

}  // namespace

void make_h2(Script& s) {
  s.h2 = true;
  if (s.ask == Ask::upgrade) s.ask = Ask::get;
  if (s.answer == Answer::switch_protocols) s.answer = Answer::length;
  if (s.conduct == Conduct::half_close) s.conduct = Conduct::good;
  s.http10 = s.client_close = s.pipelined = s.early_tunnel = false;
}

H2FieldList h2_request(const Script& s) {
  if (s.ask == Ask::malformed) {
    return malformed_requests[s.malformed_kind % std::size(malformed_requests)];
  }
  const char* method = s.has_request_body() ? "POST" : s.ask == Ask::head ? "HEAD" : "GET";
  H2FieldList out = {{":method", method},
                     {":scheme", "http"},
                     {":authority", "sim.test"},
                     {":path", s.target()},
                     {"te", "trailers"}};
  if (s.ask == Ask::post_length)
    out.emplace_back("content-length", std::to_string(s.request_bytes));
  if (s.expect) out.emplace_back("expect", "100-continue");
  if (s.malformed_kind % 3 == 0) {
    out.emplace_back("priority", "u=" + std::to_string(s.malformed_kind / 3 % 8) +
                                     (s.malformed_kind / 24 % 2 == 0 ? "" : ", i"));
  }
  return out;
}

H2FieldList h2_interim(int status) {
  H2FieldList out = {{":status", std::to_string(status)}};
  if (status == 103) out.emplace_back("link", "</style.css>; rel=preload");
  return out;
}

H2FieldList h2_response(const Script& s) {
  // It was not asked for a switch.
  const bool switches = s.answer == Answer::switch_protocols;
  H2FieldList out = {{":status", std::to_string(switches ? 200 : s.status())},
                     {"x-sim-id", std::to_string(s.id)}};
  if (switches || s.answer == Answer::length || s.answer == Answer::die_in_body)
    out.emplace_back("content-length", std::to_string(s.response_bytes));
  return out;
}

std::string h2_malformed_answer(unsigned kind, std::int32_t stream) {
  const auto number = static_cast<std::uint32_t>(stream);
  kind %= h2_malformed_answers;
  return test::h2_headers(number, malformed_answers[kind], kind % 2 == 1);
}

std::string_view value_of(const H2FieldList& fields, std::string_view name) {
  const auto at = std::ranges::find(fields, name, &H2FieldList::value_type::first);
  return at == fields.end() ? std::string_view() : std::string_view(at->second);
}

std::string h2_mistake(unsigned kind) {
  return std::string(mistakes[kind % h2_mistakes]);
}

}  // namespace ringside::sim
