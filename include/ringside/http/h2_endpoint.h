// What both ends of an HTTP/2 connection (RFC 9113) have in common: a session of nghttp2, and what
// a peer may do on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "ringside/base/arena.h"
#include "ringside/http/h2_memory.h"
#include "ringside/http/message.h"

struct nghttp2_session;

namespace ringside::http {

namespace detail {
class H2HeadReader;
struct H2Callbacks;
struct H2EndpointCallbacks;
struct H2Fields;
struct H2Parts;
struct H2RequesterCallbacks;
}  // namespace detail

// RFC 9113 §7.
enum class H2Code : std::uint32_t {
  no_error = 0x0,
  protocol_error = 0x1,
  internal_error = 0x2,
  flow_control_error = 0x3,
  stream_closed = 0x5,
  refused_stream = 0x7,
  cancel = 0x8,
  enhance_your_calm = 0xb,
};

// What a peer may do so many times at once, and then again at a rate. Pure: time is told.
class H2Allowance {
 public:
  constexpr H2Allowance(std::uint32_t most, std::uint32_t per_second)
      : left_(most), most_(most), per_second_(per_second) {}
  // False: it is used up.
  bool take(std::uint64_t now_ms);
  void give_back(std::uint32_t times);

 private:
  std::uint32_t left_;
  std::uint32_t most_;
  std::uint32_t per_second_;
  std::uint64_t filled_ms_ = 0;
};

// What connections of a ring share. Outlives them.
class H2Shared {
 public:
  H2Shared();
  ~H2Shared();
  H2Shared(const H2Shared&) = delete;
  H2Shared& operator=(const H2Shared&) = delete;
  H2Memory& memory() { return memory_; }
  // What the windows of all connections may be wider by, in sum, than they begin with. 0 at first.
  void set_window_bytes(std::size_t bytes) { window_bytes_ = bytes; }

 private:
  friend class H2Endpoint;
  friend class H2Connection;
  friend class H2Requester;
  std::unique_ptr<detail::H2Parts> parts_;
  H2Memory memory_;
  std::size_t window_bytes_ = 0;
  std::size_t window_bytes_used_ = 0;
};

// One request with its response, at either end.
class H2StreamState {
 public:
  H2StreamState() = default;
  H2StreamState(const H2StreamState&) = delete;
  H2StreamState& operator=(const H2StreamState&) = delete;

  // 0: it has not begun.
  std::int32_t id() const { return id_; }
  // No frame of it follows, in either direction.
  bool closed() const { return closed_; }
  // A head of ours, or trailers, have not become frames yet.
  bool head_due() const { return heads_due_ != 0; }

 protected:
  ~H2StreamState() = default;
  // Heads are kept there; it outlives the stream's use.
  void keep_in(base::Arena& arena) { arena_ = &arena; }

 private:
  friend class H2Connection;
  friend class H2Endpoint;
  friend class H2Requester;
  friend class H2RequestStream;
  friend class H2Stream;
  friend struct detail::H2Callbacks;
  friend struct detail::H2EndpointCallbacks;
  friend struct detail::H2RequesterCallbacks;

  base::Arena* arena_ = nullptr;
  detail::H2HeadReader* reader_ = nullptr;
  detail::H2Fields* trailers_ = nullptr;  // that we send, until the body is framed
  std::int64_t body_bytes_ = 0;           // received
  std::int64_t length_ = -1;              // of the body that has to come; -1: it is not known
  std::int32_t id_ = 0;
  std::uint32_t heads_due_ = 0;
  bool closed_ = false;
  bool reset_ = false;
  bool end_framed_ = false;
};

// Where frames go. Calls come from within send().
class H2FrameSink {
 public:
  // Whether more may be written now; else send() comes to its end.
  virtual bool has_room() = 0;
  // Frames, to be copied. False: no memory, and the connection is over.
  virtual bool write(std::string_view bytes) = 0;

 protected:
  ~H2FrameSink() = default;
};

// Owner and thread as of H2Connection and H2Requester, which it is the base of.
class H2Endpoint {
 public:
  H2Endpoint(const H2Endpoint&) = delete;
  H2Endpoint& operator=(const H2Endpoint&) = delete;

  // One line for a log: what the peer did that ended it. Empty: it is no fault of the peer's.
  std::string_view failure() const { return failure_; }

  // What a handler's ready() tells has changed. False: no memory.
  bool resume(H2StreamState& stream);
  // To be sent behind the body, once ready() says that it is complete: call it before. False: no
  // memory.
  bool send_trailers(H2StreamState& stream, const FieldList& trailers);
  // Without effect on a stream that has not begun, is closed, or was reset before.
  void reset(H2StreamState& stream, H2Code code);

 protected:
  explicit H2Endpoint(H2Shared& shared);
  ~H2Endpoint();

  // Of one frame. False: the connection is over.
  bool receive_part(std::string_view bytes);
  // Writes what nghttp2 has next. A value: what send() says now; none: there may be more.
  std::optional<bool> send_next(H2FrameSink& sink);
  // Ends it with a GOAWAY, and says false.
  bool give_up(H2Code code, std::string_view why);
  void note_abuse(std::string_view what) { give_up(H2Code::enhance_your_calm, what); }

  H2Shared& shared_;
  nghttp2_session* session_ = nullptr;
  std::uint64_t now_ms_ = 0;
  // Streams that one end took back, or that ended for the peer's mistake: each has cost us
  // something. What completes makes up for one.
  H2Allowance resets_;
  // Frames that ask for an answer, or for nothing. What we send makes up for those that let us.
  H2Allowance idle_frames_;
  bool ended_ = false;

 private:
  friend struct detail::H2Callbacks;
  friend struct detail::H2EndpointCallbacks;
  friend struct detail::H2RequesterCallbacks;

  std::size_t block_bytes_ = 0;  // of the header block that is being read
  std::string_view failure_;     // a literal, or nghttp2's
};

}  // namespace ringside::http
