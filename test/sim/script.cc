#include "script.h"

#include <algorithm>

#include "marks.h"

namespace ringside::sim {

namespace {

constexpr const char* malformed_requests[] = {
    "GET /e/x HTTP/1.1\r\nHost: sim.test\r\nBad Name: x\r\n\r\n",
    "GET /e/x HTTP/1.1\r\n\r\n",
    "GET /e/x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    ("POST /e/x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n"
     "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    "POST /e/x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    "GET /e/x HTTP/1.1\r\nHost: a\r\nX: 1\r\n folded\r\n\r\n",
    "GET /e/x HTTP/2.5\r\nHost: a\r\n\r\n",
    "G(T /e/x HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /e/x HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\nabc",
    "POST /e/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n",
    "GET /e/x\x01 HTTP/1.1\r\nHost: a\r\n\r\n",
};

constexpr const char* malformed_responses[] = {
    "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    "HTP/1.1 200 OK\r\n\r\n",
    "HTTP/1.1 20x OK\r\n\r\n",
    "HTTP/1.1 200 OK\r\nBad Name: x\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 1x\r\n\r\n",
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: unasked\r\n\r\n",
};

std::string chunked(std::string_view body, std::uint32_t id, bool trailers) {
  Random random(id * 7919ULL + 1);
  std::string out;
  for (std::size_t at = 0; at < body.size();) {
    const std::size_t most = random.one_in(3) ? 7 : 5000;
    const std::size_t piece = std::min<std::size_t>(body.size() - at, random.between(1, most));
    static constexpr char digits[] = "0123456789abcdef";
    std::string size;
    for (std::size_t rest = piece; rest != 0; rest /= 16)
      size.insert(size.begin(), digits[rest % 16]);
    out += size + "\r\n";
    out.append(body.substr(at, piece));
    out += "\r\n";
    at += piece;
  }
  out += trailers ? "0\r\nX-Sim-Trailer: end\r\n\r\n" : "0\r\n\r\n";
  return out;
}

std::size_t draw_bytes(Random& random) {
  switch (random.below(16)) {
    case 0:
    case 1:
      return 0;
    case 2:
      return random.between(1, 3);
    case 3:
    case 4:
      return random.between(4'000, 40'000);
    case 5:
      return random.one_in(4) ? random.between(40'000, 300'000) : random.between(1'000, 9'000);
    default:
      return random.between(1, 1'500);
  }
}

Ask draw_ask(Random& random) {
  static constexpr Ask asks[] = {
      Ask::get,         Ask::get,         Ask::get,          Ask::get,          Ask::head,
      Ask::post_length, Ask::post_length, Ask::post_chunked, Ask::post_chunked, Ask::upgrade,
      Ask::local,       Ask::redirect,    Ask::not_found,    Ask::malformed};
  return random.pick(asks);
}

Answer draw_answer(Random& random, Ask ask) {
  if (ask == Ask::upgrade && !random.one_in(4)) return Answer::switch_protocols;
  static constexpr Answer answers[] = {
      Answer::length,    Answer::length,          Answer::length,      Answer::length,
      Answer::length,    Answer::chunked,         Answer::chunked,     Answer::chunked,
      Answer::chunked,   Answer::until_close,     Answer::no_content,  Answer::not_modified,
      Answer::malformed, Answer::die_before_head, Answer::die_in_body, Answer::never};
  Answer answer = random.pick(answers);
  // It costs a minute of virtual time each.
  if (answer == Answer::never && !random.one_in(3)) answer = Answer::length;
  return answer;
}

Conduct draw_conduct(Random& random) {
  static constexpr Conduct conducts[] = {Conduct::half_close, Conduct::slow_reader,
                                         Conduct::abort_sending, Conduct::abort_reading};
  return random.one_in(4) ? random.pick(conducts) : Conduct::good;
}

}  // namespace

bool Script::last_on_connection() const {
  return ask == Ask::upgrade || ask == Ask::malformed || client_close || http10 ||
         conduct == Conduct::half_close || aborts();
}

int Script::status() const {
  switch (answer) {
    case Answer::no_content:
      return 204;
    case Answer::not_modified:
      return 304;
    case Answer::switch_protocols:
      return 101;
    default:
      return 200;
  }
}

std::string Script::target() const {
  switch (ask) {
    case Ask::local:
      return "/local/" + std::to_string(id);
    case Ask::redirect:
      return "/redirect/" + std::to_string(id);
    case Ask::not_found:
      return "/nowhere/" + std::to_string(id);
    default:
      return (unix_upstream ? "/u/" : "/e/") + std::to_string(id);
  }
}

std::string Script::request_head() const {
  if (ask == Ask::malformed)
    return malformed_requests[malformed_kind % std::size(malformed_requests)];
  std::string out = has_request_body() ? "POST " : ask == Ask::head ? "HEAD " : "GET ";
  out += target() + (http10 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n");
  out += "Host: sim.test\r\n";
  if (ask == Ask::post_length) out += "Content-Length: " + std::to_string(request_bytes) + "\r\n";
  if (ask == Ask::post_chunked) out += "Transfer-Encoding: chunked\r\n";
  if (expect) out += "Expect: 100-continue\r\n";
  if (ask == Ask::upgrade) out += "Connection: Upgrade\r\nUpgrade: sim\r\n";
  if (client_close) out += "Connection: close\r\n";
  if (claims_early) out += "Early-Data: 1\r\n";
  return out + "\r\n";
}

std::string Script::request_body() const {
  if (!has_request_body()) return {};
  const std::string body = marked(id, Lane::request, 0, request_bytes);
  return ask == Ask::post_chunked ? chunked(body, id, trailers) : body;
}

std::string Script::interim_heads() const {
  std::string out;
  for (unsigned i = 0; i < interims; ++i)
    out += "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n";
  return out;
}

std::string Script::response_head() const {
  if (answer == Answer::malformed) {
    return malformed_responses[malformed_kind % std::size(malformed_responses)];
  }
  const std::string version = http10_server ? "HTTP/1.0 " : "HTTP/1.1 ";
  std::string out = version + std::to_string(status()) + " Scripted\r\n";
  out += "X-Sim-Id: " + std::to_string(id) + "\r\n";
  switch (answer) {
    case Answer::length:
    case Answer::die_in_body:
      out += "Content-Length: " + std::to_string(response_bytes) + "\r\n";
      break;
    case Answer::chunked:
      out += "Transfer-Encoding: chunked\r\n";
      break;
    case Answer::switch_protocols:
      out += "Connection: Upgrade\r\nUpgrade: sim\r\n";
      break;
    default:
      break;
  }
  if (answer != Answer::switch_protocols) {
    if (server_close) out += "Connection: close\r\n";
    if (http10_server && !server_close && answer != Answer::until_close) {
      out += "Connection: keep-alive\r\n";
    }
  }
  return out + "\r\n";
}

std::string Script::response_body() const {
  const bool bodied = answer == Answer::length || answer == Answer::chunked ||
                      answer == Answer::until_close || answer == Answer::die_in_body;
  if (!bodied || ask == Ask::head) return {};
  const std::size_t bytes = answer == Answer::die_in_body ? die_after : response_bytes;
  const std::string body = marked(id, Lane::response, 0, bytes);
  return answer == Answer::chunked ? chunked(body, id + 1, trailers) : body;
}

Script draw_script(Random& random, std::uint32_t id) {
  Script s;
  s.id = id;
  s.ask = draw_ask(random);
  s.answer = draw_answer(random, s.ask);
  s.conduct = draw_conduct(random);
  s.http10 = s.ask != Ask::upgrade && s.ask != Ask::post_chunked && random.one_in(12);
  s.client_close = s.ask != Ask::upgrade && random.one_in(10);
  s.request_bytes = draw_bytes(random);
  s.expect = s.has_request_body() && !s.http10 && random.one_in(4);
  s.trailers = random.one_in(3);
  s.malformed_kind = static_cast<unsigned>(random.next());
  s.early_answer = s.has_request_body() && random.one_in(5);
  s.interims = random.one_in(5) ? static_cast<unsigned>(random.between(1, 2)) : 0;
  s.http10_server = random.one_in(16) && s.answer != Answer::chunked &&
                    s.answer != Answer::switch_protocols && s.interims == 0;
  s.server_close = random.one_in(6);
  s.close_when_idle = random.one_in(6);
  s.reset_when_dying = random.coin();
  s.response_bytes = draw_bytes(random);
  if (s.answer == Answer::die_in_body) {
    s.response_bytes = std::max<std::size_t>(s.response_bytes, 2);
    s.die_after = random.below(s.response_bytes);
    if (s.ask == Ask::head) s.answer = Answer::length;
  }
  s.tunnel_up_bytes = draw_bytes(random);
  s.tunnel_down_bytes = draw_bytes(random);
  s.early_tunnel = random.coin();
  s.abort_with_reset = random.coin();
  s.pipelined = random.one_in(3);
  s.unix_upstream = random.one_in(4);
  if (s.conduct == Conduct::abort_sending) {
    s.abort_after = random.below(s.request_head().size() + s.request_body().size() + 1);
  } else if (s.conduct == Conduct::abort_reading) {
    s.abort_after = random.below(300 + s.response_bytes);
  }
  // One of the malformed answers is a switch that nobody asked for; here it would be asked for.
  if (s.ask == Ask::upgrade && s.answer == Answer::malformed) s.answer = Answer::length;
  // An upgrade needs both directions until its end.
  if (s.ask == Ask::upgrade && s.conduct == Conduct::half_close) s.conduct = Conduct::good;
  return s;
}

void may_stall(Script& s) {
  const bool plain = s.conduct == Conduct::good && !s.expect && !s.early_answer && !s.pipelined;
  const bool answered = s.answer == Answer::length || s.answer == Answer::chunked;
  s.stalls = plain && answered && s.has_request_body() && s.request_bytes >= 2 &&
             s.malformed_kind % 2 == 0;
}

void may_claim_early(Script& s, Faults& faults) {
  const bool suits = s.ask <= Ask::post_chunked && !s.h2;
  s.claims_early = suits && faults.hit(Fault::early_claimed);
}

std::string to_string(const Script& s) {
  static constexpr const char* asks[] = {"get",          "head",      "post_length",
                                         "post_chunked", "upgrade",   "local",
                                         "redirect",     "not_found", "malformed"};
  static constexpr const char* answers[] = {
      "length",           "chunked",   "until_close",     "no_content",  "not_modified",
      "switch_protocols", "malformed", "die_before_head", "die_in_body", "never"};
  static constexpr const char* conducts[] = {"good", "half_close", "slow_reader", "abort_sending",
                                             "abort_reading"};
  std::string out = "exchange " + std::to_string(s.id) + ": ";
  out += asks[static_cast<int>(s.ask)];
  if (s.has_request_body()) out += " " + std::to_string(s.request_bytes) + " bytes";
  out += std::string(" -> ") + answers[static_cast<int>(s.answer)];
  out += " " + std::to_string(s.response_bytes) + " bytes, client ";
  out += conducts[static_cast<int>(s.conduct)];
  if (s.h2) out += ", h2";
  if (s.http10) out += ", 1.0";
  if (s.client_close) out += ", close";
  if (s.expect) out += ", expect";
  if (s.early_answer) out += ", early answer";
  if (s.interims != 0) out += ", " + std::to_string(s.interims) + " interim";
  if (s.http10_server) out += ", 1.0 server";
  if (s.server_close) out += ", server closes";
  if (s.close_when_idle) out += ", closes when idle";
  if (s.answer == Answer::die_in_body) out += ", dies after " + std::to_string(s.die_after);
  if (s.reset_when_dying) out += " by reset";
  if (s.aborts()) out += ", aborts after " + std::to_string(s.abort_after);
  if (s.pipelined) out += ", pipelined";
  if (s.unix_upstream) out += ", unix";
  if (s.claims_early) out += ", says that it was early";
  if (s.stalls) out += ", stalls";
  return out;
}

}  // namespace ringside::sim
