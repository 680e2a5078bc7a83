// A client's side of an HTTP/2 connection (RFC 9113), towards a server: requests in, frames out;
// bytes in, responses out; no I/O. nghttp2 does the framing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "ringside/base/arena.h"
#include "ringside/http/h2_connection.h"
#include "ringside/http/message.h"
#include "ringside/http/parser.h"

namespace ringside::http {

namespace detail {
struct H2RequesterChecks;
}  // namespace detail

struct H2RequesterLimits {
  HeadLimits head;  // of responses
  // What a server may send of a response before anybody has taken it. Connections have no such
  // limit of their own: a response that nobody takes must not hold up the others.
  std::uint32_t stream_window_bytes = 256 * 1024;
};

// The pseudo-header fields of a request (RFC 9113 §8.3.1).
struct H2RequestLine {
  std::string_view method;
  std::string_view scheme;
  std::string_view authority;
  std::string_view path;
};

// One request with its response. Owner: who handles the connection; H2Requester::forget() is called
// before it goes.
class H2RequestStream : public H2StreamState {
 public:
  // The head was written.
  bool request_begun() const { return head_framed_; }
  // The end of the request was written.
  bool request_ended() const { return end_framed_; }
  // Something of the response came.
  bool response_begun() const { return answered_; }
  // Nothing of the response follows.
  bool response_ended() const { return phase_ == Phase::ended || phase_ == Phase::broken; }

 protected:
  ~H2RequestStream() = default;

 private:
  friend class H2Requester;
  friend struct detail::H2RequesterCallbacks;
  enum class Phase : std::uint8_t { head, body, ended, broken };

  ResponseHead head_;
  Method method_ = Method::other;
  Phase phase_ = Phase::head;
  bool head_framed_ = false;
  bool answered_ = false;
};

// Calls come from within H2Requester::receive() and send(). The handler may call anything of the
// connection but those two, and must not destroy a stream before they return.
class H2RequesterHandler : public H2FrameSink {
 public:
  // Interim heads (any number), then the final one. on_response_end follows it in any case.
  virtual void on_response_head(H2RequestStream& stream, ResponseHead& head) = 0;
  // Bytes of the body, a view into what is being received; consume() them sooner or later.
  virtual void on_response_data(H2RequestStream& stream, std::string_view bytes) = 0;
  virtual void on_response_end(H2RequestStream& stream, FieldList* trailers) = 0;
  // The response is malformed or past a limit; nothing more of it is reported.
  virtual void on_response_bad(H2RequestStream& stream, const ParseFault& fault) = 0;
  // It ended before request and response were both complete. `refused_stream`: the server has done
  // nothing with it (RFC 9113 §8.7), or never heard of it.
  virtual void on_stream_closed(H2RequestStream& stream, H2Code code) = 0;
  // The server has said how it wants to be spoken to, for the first time or again.
  virtual void on_settings() = 0;
  // The server takes no new request; those that it took are finished.
  virtual void on_going_away() = 0;
  virtual void on_ping_answered() = 0;

  using Ready = H2Handler::Ready;
  // As of H2Handler, of the request's body.
  virtual Ready ready(H2RequestStream& stream) = 0;
  virtual bool write_data(H2RequestStream& stream, std::string_view header, std::size_t bytes) = 0;
  // A frame of the stream was made, of so many bytes: they were written (DATA), or will be next.
  virtual void on_framed(H2RequestStream& stream, std::size_t bytes, bool written) = 0;

 protected:
  ~H2RequesterHandler() = default;
};

// Owner: a session with a server; thread: its ring's. States: fresh → (start) open → ended. After
// receive() or send() said false it has ended: what send() still has to write says why.
class H2Requester final : public H2Endpoint {
 public:
  H2Requester(H2Shared& shared, H2RequesterHandler& handler, const H2RequesterLimits& limits);
  ~H2Requester();

  // Queues the preface. False: no memory.
  bool start();
  // Takes what came. False: the connection is over.
  bool receive(std::string_view bytes, std::uint64_t now_ms);
  // Writes frames as long as there is room. False: no memory, or nothing is left to be said, and
  // the server may say nothing more.
  bool send();
  // Whether a new request may be sent still: neither side has said that it goes away, and there
  // are stream numbers left.
  bool takes_requests() const;
  // How many streams at a time the server allows; before it has said so, as many as is usual.
  std::uint32_t streams_max() const;

  // ---- requests. False: no memory.

  // `text` as HeadWriter wrote it, without a request line: fields, and the empty line. Names become
  // lower case in place, and fields of an HTTP/1.1 connection are left out. `arena` keeps what is
  // read of the response, and outlives the stream's use. `whole`: there is no body.
  bool send_head(H2RequestStream& stream, base::Arena& arena, Method method,
                 const H2RequestLine& line, std::span<char> text, bool whole);
  // The stream goes away. What the server still sends of it is dropped.
  void forget(H2RequestStream& stream);
  // Bytes of on_response_data were used: the server may send as many more.
  void consume(H2RequestStream& stream, std::size_t bytes);

  // ---- the connection

  // on_ping_answered follows, if the server is there.
  bool ping();
  // We send no new request.
  void go_away();

 private:
  friend struct detail::H2RequesterCallbacks;

  H2RequesterHandler& handler_;
  H2RequesterLimits limits_;
  std::unique_ptr<detail::H2RequesterChecks> checks_;
};

}  // namespace ringside::http
