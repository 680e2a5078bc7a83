// A server's side of an HTTP/2 connection (RFC 9113): bytes in, requests out; responses in, frames
// out; no I/O. nghttp2 does the framing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "ringside/base/arena.h"
#include "ringside/http/h2_endpoint.h"
#include "ringside/http/message.h"
#include "ringside/http/parser.h"

namespace ringside::http {

namespace detail {
struct H2Checks;
}  // namespace detail

struct H2Limits {
  HeadLimits head;
  std::uint32_t streams_max = 128;  // at a time
  // What a client may send before anybody has consumed it: of a stream, and in all.
  std::uint32_t stream_window_bytes = 256 * 1024;
  std::uint32_t connection_window_bytes = 1024 * 1024;
  // As far as they are opened, both of them, for uploads that a long path holds up; less when
  // H2Shared::window_bytes are used up. 0: never.
  std::uint32_t window_bytes_max = 0;
};

// One request with its response. Owner: who handles the connection; made in H2Handler::on_stream,
// and H2Connection::forget() is called before it goes.
class H2Stream : public H2StreamState {
 public:
  bool head_received() const { return phase_ != Phase::head; }
  // Nothing of the request follows.
  bool request_ended() const { return phase_ == Phase::ended || phase_ == Phase::broken; }
  // The end of the response was written.
  bool response_ended() const { return end_framed_; }

 protected:
  // keep_in() is to be called before on_stream returns.
  ~H2Stream() = default;

 private:
  friend class H2Connection;
  friend struct detail::H2Callbacks;
  enum class Phase : std::uint8_t { head, body, ended, broken };

  RequestHead head_;
  std::uint64_t consumed_ = 0;
  std::uint32_t window_ = 0;
  Phase phase_ = Phase::head;
  bool prioritised_ = false;  // by a PRIORITY_UPDATE, which counts more than the field
};

// Calls come from within H2Connection::receive() and send(). The handler may call anything of the
// connection but those two.
class H2Handler : public H2FrameSink {
 public:
  // A request begins. Null: there is no place for it, and it is refused.
  virtual H2Stream* on_stream() = 0;
  // The head stays as long as the arena. on_request_end follows when it has a body (which may be
  // empty).
  virtual void on_request_head(H2Stream& stream, RequestHead& head) = 0;
  // Bytes of the body, a view into what is being received; consume() them sooner or later.
  virtual void on_request_data(H2Stream& stream, std::string_view bytes) = 0;
  virtual void on_request_end(H2Stream& stream, FieldList* trailers) = 0;
  // The head, or what follows it, is malformed (fault 400) or past a limit; nothing more of it is
  // reported.
  virtual void on_request_bad(H2Stream& stream, const ParseFault& fault) = 0;
  // The client, or nghttp2 for its mistake, has ended it before it was complete.
  virtual void on_stream_reset(H2Stream& stream, H2Code code) = 0;

  // What of a response's body can be sent now.
  struct Ready {
    std::size_t bytes = 0;
    bool last = false;  // nothing follows those
  };
  virtual Ready ready(H2Stream& stream) = 0;
  // A DATA frame: its header, and the next `bytes` bytes of what is ready.
  virtual bool write_data(H2Stream& stream, std::string_view header, std::size_t bytes) = 0;
  // A frame of the stream was written, of so many bytes.
  virtual void on_framed(H2Stream& stream, std::size_t bytes) = 0;

 protected:
  ~H2Handler() = default;
};

// Owner: a client's session; thread: its ring's. States: fresh → (start) open → ended. After
// receive() or send() said false it has ended: what send() still has to write says why.
class H2Connection final : public H2Endpoint {
 public:
  H2Connection(H2Shared& shared, H2Handler& handler, const H2Limits& limits);
  ~H2Connection();

  // Queues our SETTINGS. False: no memory.
  bool start();
  // Takes what came, the client's preface included. False: the connection is over.
  bool receive(std::string_view bytes, std::uint64_t now_ms);
  // Writes frames as long as there is room. False: no memory, or nothing is left to be said, and
  // the client may say nothing more.
  bool send();
  // A header block has begun and is not complete.
  bool in_head() const { return in_head_; }
  // We ended it for the client's fault, with a GOAWAY.
  bool ended() const { return ended_; }
  // What may be received of all requests before it was consumed.
  std::uint32_t window_bytes() const { return connection_window_; }

  // ---- responses. False: no memory.

  enum class Head : std::uint8_t {
    interim,
    followed,  // by a body, or trailers
    whole,     // it is the response
  };
  // `text` as HeadWriter wrote it: a status line and fields. Names become lower case in place, and
  // fields of an HTTP/1.1 connection are left out.
  bool send_head(H2Stream& stream, std::uint16_t status, std::span<char> text, Head kind);
  // The stream goes away. What the client still sends of it is dropped.
  void forget(H2Stream& stream);
  // Bytes of on_request_data were used: the client may send as many more.
  void consume(H2Stream& stream, std::size_t bytes);
  // The same for a stream that is gone.
  void consume_forgotten(std::size_t bytes);

  // ---- the end

  // The client has done what it must not, or not done what it must: a GOAWAY, and nothing else.
  void end(H2Code code, std::string_view why) { give_up(code, why); }
  // Tells that soon no request will be taken any more (RFC 9113 §6.8).
  void announce_end();
  // No new request is taken; those that were are finished.
  void go_away(H2Code code = H2Code::no_error);

 private:
  friend struct detail::H2Callbacks;
  bool check_header();
  void note_data(std::size_t bytes);
  void open_windows();
  void open_window(H2Stream& stream);
  bool set_connection_window(std::uint32_t bytes);
  void stream_closed();

  H2Handler& handler_;
  H2Limits limits_;
  std::unique_ptr<detail::H2Checks> checks_;
  std::uint32_t connection_window_;
  std::uint32_t streams_open_ = 0;
  struct Framed {
    H2Stream* stream = nullptr;
    std::size_t bytes = 0;
  };
  Framed framed_;  // a head that send() is to write
  bool in_head_ = false;
};

}  // namespace ringside::http
