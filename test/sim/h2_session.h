// One side of HTTP/2, by nghttp2: frames in and out, and what the other side may not do.
#pragma once

#include <nghttp2/nghttp2.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "random.h"

namespace ringside::sim {

using H2FieldList = std::vector<std::pair<std::string, std::string>>;

// Calls come from within H2Session::receive() and next(), which may not be called from there.
class H2SessionListener {
 public:
  // Of a request: its head, or trailers. Of a response: an interim head, the final one, or
  // trailers.
  virtual void on_stream_head(std::int32_t stream, const H2FieldList& fields) = 0;
  virtual void on_stream_body(std::int32_t stream, std::string_view bytes) = 0;
  virtual void on_stream_end(std::int32_t stream) = 0;
  // Nothing of it follows in either direction.
  virtual void on_stream_closed(std::int32_t stream, std::uint32_t code) = 0;
  // The other side takes, or sends, no request any more. It may be told again.
  virtual void on_go_away(std::uint32_t code) = 0;

  // A client's: the head of a request is what next() gives now; or it never will.
  virtual void on_request_leaves(std::int32_t) {}
  virtual void on_request_unsent(std::int32_t) {}
  // A server's: a request came that it had taken back the room for, not knowing yet whether the
  // client has heard of it. It is refused.
  virtual void on_request_too_many(std::int32_t) {}
  // The END_STREAM of what is sent was in what next() gave so far.
  virtual void on_message_whole(std::int32_t stream) = 0;
  struct Piece {
    std::size_t bytes = 0;
    bool last = false;
    bool wait = false;  // nothing now; resume() when there is
  };
  virtual Piece on_body_wanted(std::int32_t stream, std::span<char> room) = 0;
  virtual H2FieldList trailers_of(std::int32_t stream) = 0;

  // The other side did what it must not.
  virtual void on_violation(const std::string& what) = 0;

 protected:
  ~H2SessionListener() = default;
};

// Owner: a scripted peer. What its listener is told of is what the proxy did; that the proxy keeps
// to the windows and to how many streams there may be, and says nothing of a stream that it has
// ended, is looked after here.
class H2Session {
 public:
  enum class Role : std::uint8_t { client, server };
  struct Options {
    Role role = Role::client;
    std::uint32_t stream_window_bytes = 65'535;      // what may come of a stream at a time
    std::uint32_t connection_window_bytes = 65'535;  // of all of them
    std::uint32_t table_bytes = 4096;                // of header compression
    bool padding = false;
    std::uint32_t streams_max = 0;  // a server's: at a time; 0: it does not say
  };
  H2Session(H2SessionListener& listener, const Options& options, Random random);
  ~H2Session();
  H2Session(const H2Session&) = delete;
  H2Session& operator=(const H2Session&) = delete;

  void receive(std::string_view bytes);
  // What is to be sent next, whole frames, until the next call; empty: nothing now.
  std::string_view next();

  // A client's. Its number.
  std::int32_t request(const H2FieldList& fields, bool bodied);
  // A server's.
  void interim(std::int32_t stream, const H2FieldList& fields);
  void respond(std::int32_t stream, const H2FieldList& fields, bool bodied);
  void change_streams_max(std::uint32_t streams);
  // Before a GOAWAY, or not: it hands nothing back.
  void notice_go_away();

  void resume(std::int32_t stream);
  void reset(std::int32_t stream, std::uint32_t code);
  // Bytes of on_stream_body were used: as many more may come.
  void consume(std::int32_t stream, std::size_t bytes);
  void set_stream_window(std::int32_t stream, std::uint32_t bytes);
  void change_initial_window(std::uint32_t bytes);
  void ping();
  // A server's hands back what is above `last`.
  void go_away(std::uint32_t code, std::int32_t last = 0);
  // Bytes that it does not know of may have opened streams, which the server resets.
  void expect_others() { others_ = true; }
  // From then on what a server does not take at a time waits here.
  bool settings_seen() const { return settings_seen_; }
  // The other side has read our preface.
  bool greeted() const { return greeted_; }

 private:
  struct Callbacks;
  enum class Ended : std::uint8_t { by_end_stream, by_reset };

  void check_header();
  bool serves() const { return options_.role == Role::server; }
  void create();
  void say_settings();
  void check_windows(std::int32_t stream);
  void frame_arrived(const nghttp2_frame& frame);
  void frame_left(const nghttp2_frame& frame);
  void violation(const std::string& what) { listener_.on_violation(what); }

  H2SessionListener& listener_;
  Options options_;
  Random random_;
  nghttp2_session* session_ = nullptr;
  std::string header_;                   // of a frame, as far as it has come
  std::size_t payload_left_ = 0;         // of that frame
  H2FieldList fields_;                   // of the block that is being read
  std::map<std::int32_t, Ended> ended_;  // by the other side
  std::set<std::int32_t> scripted_;  // streams that are reset, and 0 for a GOAWAY, by the script
  bool settings_seen_ = false;
  bool greeted_ = false;
  bool others_ = false;
};

}  // namespace ringside::sim
