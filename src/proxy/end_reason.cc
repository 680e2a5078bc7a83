#include "ringside/proxy/end_reason.h"

#include <cstring>

namespace ringside::proxy {

std::string_view to_string(base::Origin who) {
  switch (who) {
    case base::Origin::client:
      return "client";
    case base::Origin::upstream:
      return "upstream";
    case base::Origin::self:
      return "ringside";
  }
  return "unknown";
}

std::string_view to_string(Stage stage) {
  switch (stage) {
    case Stage::read_head:
      return "read_head";
    case Stage::route:
      return "route";
    case Stage::admit:
      return "admit";
    case Stage::respond:
      return "respond";
    case Stage::queue:
      return "queue";
    case Stage::connect:
      return "connect";
    case Stage::send_request:
      return "send_request";
    case Stage::wait_response:
      return "wait_response";
    case Stage::response_body:
      return "response_body";
    case Stage::tunnel:
      return "tunnel";
    case Stage::done:
      return "done";
  }
  return "unknown";
}

std::string_view to_string(Cause cause) {
  switch (cause) {
    case Cause::complete:
      return "complete";
    case Cause::closed:
      return "closed";
    case Cause::reset:
      return "reset";
    case Cause::timed_out:
      return "timed_out";
    case Cause::too_slow:
      return "too_slow";
    case Cause::refused:
      return "refused";
    case Cause::unreachable:
      return "unreachable";
    case Cause::tls:
      return "tls";
    case Cause::bad_message:
      return "bad_message";
    case Cause::too_large:
      return "too_large";
    case Cause::limit:
      return "limit";
    case Cause::no_resources:
      return "no_resources";
    case Cause::no_address:
      return "no_address";
    case Cause::not_found:
      return "not_found";
    case Cause::not_allowed:
      return "not_allowed";
    case Cause::misdirected:
      return "misdirected";
    case Cause::unsupported:
      return "unsupported";
    case Cause::shutdown:
      return "shutdown";
    case Cause::internal:
      return "internal";
  }
  return "unknown";
}

Cause cause_of(base::ErrorCode code) {
  using base::ErrorCode;
  switch (code) {
    case ErrorCode::none:
      return Cause::complete;
    case ErrorCode::closed:
      return Cause::closed;
    case ErrorCode::reset:
      return Cause::reset;
    case ErrorCode::refused:
      return Cause::refused;
    case ErrorCode::unreachable:
      return Cause::unreachable;
    case ErrorCode::timed_out:
      return Cause::timed_out;
    case ErrorCode::cancelled:
      return Cause::shutdown;
    case ErrorCode::no_memory:
    case ErrorCode::no_buffers:
    case ErrorCode::no_descriptors:
      return Cause::no_resources;
    case ErrorCode::pool_exhausted:
    case ErrorCode::queue_full:
      return Cause::limit;
    case ErrorCode::no_address:
      return Cause::no_address;
    case ErrorCode::bad_message:
      return Cause::bad_message;
    case ErrorCode::too_large:
      return Cause::too_large;
    case ErrorCode::unsupported:
      return Cause::unsupported;
    case ErrorCode::insecure:
      return Cause::tls;
    case ErrorCode::system:
    case ErrorCode::invalid_argument:
      return Cause::internal;
  }
  return Cause::internal;
}

std::size_t write(const EndReason& reason, char* out) {
  char* at = out;
  auto put = [&at](std::string_view text) {
    std::memcpy(at, text.data(), text.size());
    at += text.size();
  };
  if (reason.cause != Cause::complete) {
    put(to_string(reason.who));
    put("/");
    put(to_string(reason.stage));
    put("/");
  }
  put(to_string(reason.cause));
  return static_cast<std::size_t>(at - out);
}

}  // namespace ringside::proxy
