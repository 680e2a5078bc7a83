// One connection to a server, as the exchange sees it, whatever its protocol.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ringside/base/arena.h"
#include "ringside/base/error.h"
#include "ringside/http/message.h"
#include "ringside/http/writer.h"
#include "ringside/net/piece.h"
#include "ringside/upstream/directory.h"

namespace ringside::upstream {

// What a session reports of the response. Calls come on the ring's thread; the handler may call
// anything of the session, finish() and abandon() included, after which nothing more is reported to
// it.
class ResponseHandler {
 public:
  // Interim heads (any number), then the final one, or 101. The head's views are valid during the
  // call only.
  virtual void on_response_head(http::ResponseHead& head) = 0;
  // A piece of the body without its framing; in a tunnel, bytes as they came.
  virtual void on_response_body(net::Piece piece) = 0;
  // The whole response came. `trailers` may be null; valid during the call. In a tunnel: the
  // server's FIN.
  virtual void on_response_end(const http::FieldList* trailers) = 0;
  // Some of the request has left: request_pending() went down.
  virtual void on_request_progress() = 0;
  // Whether on_response_body may bring pieces in a pipe.
  virtual bool takes_pipes() const { return true; }
  // The response cannot be had (any more). The session is not the handler's any longer.
  virtual void on_upstream_failed(const base::Error& error) = 0;

 protected:
  ~ResponseHandler() = default;
};

struct RequestLine {
  std::string_view method;
  std::string_view target;  // origin form, or "*"
  std::string_view host;    // value of Host
};

struct RequestFraming {
  http::Framing body;
  bool upgrade = false;  // send Connection: Upgrade and this Upgrade value
  std::string_view upgrade_value;
  bool expect_continue = false;
  bool te_trailers = false;
};

// Owner: the pool. An exchange has it between begin() and finish(), abandon() or
// on_upstream_failed.
class Session {
 public:
  // `arena` outlives the use; `method` decides how the response is framed.
  virtual void begin(ResponseHandler& handler, base::Arena& arena, http::Method method) = 0;
  // Request line and Host. The caller writes the other fields, then calls send_head with the
  // writer.
  virtual http::HeadWriter start_head(const RequestLine& line) = 0;
  // These are false when memory ran out; abandon() then.
  virtual bool send_head(http::HeadWriter& head, const RequestFraming& framing) = 0;
  virtual bool send_body(net::Piece piece) = 0;
  // Of a chunked body; `trailers` may be null. In a tunnel: FIN.
  virtual bool send_end(const http::FieldList* trailers) = 0;
  // Whether send_body may be given pieces in a pipe.
  virtual bool takes_pipes() const = 0;
  // Whether the server may hand a request back untouched that it has received: who wants to send it
  // again keeps its body.
  virtual bool may_hand_back() const = 0;
  // What of the request has not left yet, as SliceQueue::cost().
  virtual std::size_t request_pending() const = 0;
  // Bytes of the request that left without being copied here.
  virtual std::uint64_t request_zero_copied() const = 0;
  // The server takes no more of the request (its connection broke in that direction); the response
  // may still come.
  virtual bool request_refused() const = 0;
  // After a 101 was reported: bytes pass as they are in both directions.
  virtual void enter_tunnel() = 0;
  // Back-pressure on the response.
  virtual void park() = 0;
  virtual void resume() = 0;
  // Request and response are complete: the connection goes back to its pool when it can.
  virtual void finish() = 0;
  // Ends the connection. Anything unsent is dropped.
  virtual void abandon() = 0;

  // It has served a request before this one.
  virtual bool reused() const = 0;
  virtual SharedServer& server() = 0;

 protected:
  ~Session() = default;
};

}  // namespace ringside::upstream
