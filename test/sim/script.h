// What shall happen in one exchange, as far as its two peers decide it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "faults.h"
#include "random.h"

namespace ringside::sim {

enum class Ask : std::uint8_t {
  get,
  head,
  post_length,
  post_chunked,
  upgrade,
  local,      // a route that ringside answers itself
  redirect,   // likewise
  not_found,  // a path without a route
  malformed,  // not a request
};

enum class Answer : std::uint8_t {
  length,
  chunked,
  until_close,
  no_content,
  not_modified,
  switch_protocols,
  malformed,
  die_before_head,
  die_in_body,
  never,
};

// How the client behaves.
enum class Conduct : std::uint8_t {
  good,
  half_close,  // ends its side when the request is out
  slow_reader,
  abort_sending,  // goes away in the middle of the request
  abort_reading,  // goes away in the middle of the response
};

struct Script {
  std::uint32_t id = 0;
  Ask ask = Ask::get;
  Answer answer = Answer::length;
  Conduct conduct = Conduct::good;

  bool h2 = false;  // the client speaks HTTP/2
  bool http10 = false;
  bool client_close = false;  // Connection: close
  bool expect = false;        // Expect: 100-continue
  bool trailers = false;      // with a chunked body
  std::size_t request_bytes = 0;
  unsigned malformed_kind = 0;

  bool early_answer = false;  // before the request's body has come
  unsigned interims = 0;      // 103s before the final head
  bool http10_server = false;
  bool server_close = false;  // Connection: close
  bool close_when_idle = false;
  bool reset_when_dying = false;
  std::size_t response_bytes = 0;
  std::size_t die_after = 0;  // bytes of the body

  std::size_t tunnel_up_bytes = 0;
  std::size_t tunnel_down_bytes = 0;
  bool early_tunnel = false;  // the client does not wait for the 101
  bool abort_with_reset = false;
  std::size_t abort_after = 0;  // bytes sent or read
  bool pipelined = false;       // sent without waiting for the answer before it
  bool unix_upstream = false;
  bool claims_early = false;  // says that somebody has had it as early data
  bool stalls = false;        // sends half of its body and waits; only where a least rate is set

  bool has_request_body() const { return ask == Ask::post_length || ask == Ask::post_chunked; }
  bool reaches_upstream() const { return ask <= Ask::upgrade; }
  bool safe_method() const { return !has_request_body(); }
  // While the handshake is not over.
  bool may_be_early() const { return safe_method() && ask != Ask::upgrade; }
  bool aborts() const {
    return conduct == Conduct::abort_sending || conduct == Conduct::abort_reading;
  }
  // Nothing can follow it on its connection.
  bool last_on_connection() const;
  int status() const;  // that the upstream answers with

  std::string target() const;
  std::string request_head() const;
  // All of the body as it goes over the wire.
  std::string request_body() const;
  std::string interim_heads() const;
  std::string response_head() const;
  std::string response_body() const;
};

Script draw_script(Random& random, std::uint32_t id);
// For a run with a least rate of bodies. Draws nothing, so that all else stays as it was.
void may_stall(Script& script);
// For a run with early data.
void may_claim_early(Script& script, Faults& faults);

std::string to_string(const Script& script);

}  // namespace ringside::sim
