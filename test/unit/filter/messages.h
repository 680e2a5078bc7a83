// Messages from text, for the filter tests.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "ringside/filter/forwarding.h"
#include "ringside/http/parser.h"

namespace ringside::filter {

// One exchange: an arena, a request that was really parsed, and facts about it.
class Exchange {
 public:
  // `fields` are lines that end in "\n"; Host is there already.
  explicit Exchange(std::string_view fields = "",
                    std::string_view request_line = "GET /a/b?x=1 HTTP/1.1")
      : arena_(pool_) {
    http::RequestParser parser(arena_, limits_);
    const std::string_view bytes = keep(request_line, "Host: a.test:8080\n" + std::string(fields));
    EXPECT_EQ(parser.parse(bytes), http::ParseState::done) << parser.fault().reason;
    request = parser.head();
    facts.peer_address = "203.0.113.9";
    facts.peer_port = 4711;
    facts.host = request.authority;
    facts.path = request.path;
    facts.query = request.query;
    facts.has_query = request.has_query;
    facts.method = request.method_text;
    facts.request_id = "id-1";
    facts.listener = "web";
    facts.server_name = "edge";
    facts.request_fields = &request.fields;
    trust({});
  }

  void trust(const std::vector<std::string>& ranges) {
    TrustedProxies(ranges).find_client(facts, arena_);
  }
  // The peer is a trusted proxy.
  void trust_peer() { trust({std::string(facts.peer_address)}); }

  // The fields that go to the server, one a line, without CR.
  std::string sent() {
    http::HeadWriter out(arena_, 512);
    write_request_fields(out, request, facts, forwarding, edits, arena_);
    return plain(out.finish());
  }

  // The same for a response with these fields.
  std::string answered(std::string_view fields, std::string_view status_line = "HTTP/1.1 200 OK") {
    http::ResponseParser parser(arena_, limits_, http::Method::get);
    EXPECT_EQ(parser.parse(keep(status_line, fields)), http::ParseState::done)
        << parser.fault().reason;
    http::HeadWriter out(arena_, 512);
    write_response_fields(out, parser.head(), facts, forwarding, edits, hsts);
    return plain(out.finish());
  }

  std::string expanded(const config::Template& text) {
    return std::string(expand(text, facts, arena_));
  }

  base::Arena& arena() { return arena_; }

  http::RequestHead request;
  RequestFacts facts;
  config::Forwarding forwarding;
  config::HeaderEdits edits;
  Hsts hsts;

 private:
  std::string_view keep(std::string_view first, std::string_view fields) {
    std::string& bytes = buffers_.emplace_back(std::string(first) + "\r\n");
    for (char c : fields) {
      if (c == '\n') bytes += '\r';
      bytes += c;
    }
    bytes += "\r\n";
    return bytes;
  }
  static std::string plain(std::string_view head) {
    std::string out;
    for (char c : head) {
      if (c != '\r') out += c;
    }
    EXPECT_TRUE(out.ends_with('\n'));
    out.pop_back();  // the empty line
    return out;
  }

  std::deque<std::string> buffers_;
  http::HeadLimits limits_;
  base::ChunkPool pool_;
  base::Arena arena_;
};

inline config::Template text(std::string_view literal) {
  return {{std::string(literal), config::Variable::none, {}}};
}
inline config::Template variable(config::Variable which, std::string_view argument = "") {
  return {{{}, which, std::string(argument)}};
}

}  // namespace ringside::filter
