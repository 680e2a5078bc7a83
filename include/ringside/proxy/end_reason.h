// Why an exchange ended: who, where, what. Every exchange has exactly one, in its log record.
#pragma once

#include <cstdint>
#include <string_view>

#include "ringside/base/error.h"

namespace ringside::proxy {

enum class Stage : std::uint8_t {
  read_head,      // the client's request head
  route,          // choosing what answers
  admit,          // limits and filters
  respond,        // an answer made here
  queue,          // waiting for a place at a server
  connect,        // to the server
  send_request,   // head and body to the server
  wait_response,  // for the response head
  response_body,  // relaying it
  tunnel,         // after an upgrade
  done,
};

enum class Cause : std::uint8_t {
  complete,  // as it should
  closed,    // went away in an orderly way, too early
  reset,
  timed_out,
  too_slow,  // below limits.body_rate
  refused,
  unreachable,
  tls,  // a handshake or a record that failed
  bad_message,
  too_large,
  limit,         // a configured limit or a full pool
  no_resources,  // memory, buffers, descriptors
  no_address,
  not_found,
  not_allowed,
  misdirected,  // on a connection that was made for another site (421)
  unsupported,
  shutdown,  // ringside is ending
  internal,
};

struct EndReason {
  base::Origin who = base::Origin::self;
  Stage stage = Stage::read_head;
  Cause cause = Cause::internal;
  friend bool operator==(const EndReason&, const EndReason&) = default;
};

std::string_view to_string(base::Origin who);  // "client", "upstream", "ringside"
std::string_view to_string(Stage stage);       // "read_head", ...
std::string_view to_string(Cause cause);       // "complete", "timed_out", ...
Cause cause_of(base::ErrorCode code);

// "complete", else "who/stage/cause": "client/response_body/reset". Returns the length; `out` has
// room for 64 bytes.
std::size_t write(const EndReason& reason, char* out);

}  // namespace ringside::proxy
