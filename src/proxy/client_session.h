// One exchange's view of its client, whatever the protocol.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ringside/http/message.h"
#include "ringside/http/writer.h"
#include "ringside/net/piece.h"

namespace ringside::proxy {

struct ResponseFraming {
  http::Framing body;
  // send_end() comes behind a body of known length, too.
  bool end_follows = false;
  bool keep_alive = true;
  bool interim = false;
  bool upgrade = false;  // 101: Connection: Upgrade and this Upgrade value
  std::string_view upgrade_value;
  // A bodiless answer (HEAD, 304) may still tell the length that the body would have.
  bool tell_length = false;
  std::uint64_t length = 0;
};

// What becomes of the connection once the exchange is over.
enum class Afterwards : std::uint8_t {
  keep,    // the next request may come
  close,   // FIN
  linger,  // FIN, then read and drop for a while: unread bytes would turn our answer into a reset
  cut,     // as close, but no close_notify over TLS: what the client got is not whole
  reset,   // RST: the client must not take what it got for whole
};

// The calls never call the exchange back before they return.
class ClientSession {
 public:
  // Status line; the caller writes the fields, then calls send_head with the writer.
  virtual http::HeadWriter start_head(std::uint16_t status, std::string_view reason) = 0;
  // These are false when memory ran out: the exchange is over then.
  virtual bool send_head(http::HeadWriter& head, const ResponseFraming& framing) = 0;
  virtual bool send_body(net::Piece piece) = 0;
  // Whether send_body may be given pieces in a pipe.
  virtual bool takes_pipes() const = 0;
  // Bytes that stay in place until everything was sent.
  virtual bool send_body_view(std::string_view bytes) = 0;
  // Of a chunked body, or where `end_follows`; `trailers` may be null, and are dropped where they
  // cannot be sent. In a tunnel: FIN.
  virtual bool send_end(const http::FieldList* trailers) = 0;
  // The response is whole, the request was read, and the connection ends with them.
  virtual void end_with_response() = 0;
  // What of the response has not left yet, as SliceQueue::cost().
  virtual std::size_t response_pending() const = 0;
  virtual std::uint64_t bytes_sent() const = 0;
  // As many of these were not copied here.
  virtual std::uint64_t bytes_zero_copied() const = 0;
  // As far as its kernel has taken them: what is sent may wait in our own for minutes. Costs a
  // system call.
  virtual std::uint64_t bytes_delivered() const = 0;

  // The request's body: pieces come to the exchange only while it is wanted.
  virtual void want_body() = 0;
  virtual void hold_body() = 0;
  // From here on what the client sends comes as it is.
  virtual void enter_tunnel() = 0;

  // Destroys the exchange.
  virtual void exchange_over(Afterwards afterwards) = 0;

 protected:
  ~ClientSession() = default;
};

}  // namespace ringside::proxy
