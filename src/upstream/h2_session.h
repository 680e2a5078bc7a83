// An HTTP/2 connection to a server (RFC 9113), which many exchanges use at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ringside/base/intrusive_list.h"
#include "ringside/base/timer_wheel.h"
#include "ringside/http/h2_requester.h"
#include "ringside/net/frame_output.h"
#include "ringside/net/idle_time.h"
#include "ringside/net/stream.h"
#include "ringside/ring/ring.h"
#include "ringside/upstream/pools.h"

#include "h2_stream.h"

namespace ringside::upstream {

class H1Session;
class ServerPool;

// States: greeting (until the server has said how many streams it takes) → open → leaving (no new
// stream; those that there are go on) → over (frames of its own may still leave) → closed. Owner:
// Pools (its slab); it destroys itself there, and the H1Session that it took the connection over
// from, when the connection is closed and no stream is left. What arrives is read at once, as far
// as the windows of the streams let the server send.
class H2Session final : public base::ListHook<H2Session>,
                        private net::StreamHandler,
                        private http::H2RequesterHandler,
                        private ring::Deferred {
 public:
  H2Session(Pools& pools, H1Session& transport);

  // The connection is its own from now on. Pools hears of it by greeted() or not_greeted(), the
  // latter when the server has not spoken HTTP/2 in time. False: no memory.
  bool start(base::Millis timeout_ms);
  // How many more streams it takes now.
  std::uint32_t room() const;
  std::uint32_t streams() const { return streams_now_; }
  // It takes no new stream for good.
  bool leaving() const { return leaving_; }
  // For a request. Null: no memory.
  H2Stream* open();
  // No new stream; it closes with the last one that there is.
  void leave();
  // The same, and the server is told.
  void quit();
  // Nothing is to be done for so long.
  void rest(base::Millis timeout_ms);
  ServerPool& pool() { return server_; }
  H1Session& transport() { return transport_; }

  // ---- from its streams
  http::H2Requester& frames() { return frames_; }
  net::FrameOutput& output() { return output_; }
  SharedServer& server();
  net::SlicePool& slices();
  std::string_view scheme() const { return secured_ ? "https" : "http"; }
  std::size_t window_bytes() const { return window_bytes_; }
  void schedule();
  void wants(H2Stream& stream) {
    wanting_.push_back(stream);
    schedule();
  }
  void framed(H2Stream& stream) { sending_.push_back(stream); }
  // It is destroyed at the end of the turn.
  void retire(H2Stream& stream);

 private:
  void on_received(ring::Lease lease) override;
  void on_end_of_stream() override;
  void on_sent() override;
  void on_failed(const base::Error& error, Direction direction) override;
  void on_closed() override;

  void on_response_head(http::H2RequestStream& stream, http::ResponseHead& head) override;
  void on_response_data(http::H2RequestStream& stream, std::string_view bytes) override;
  void on_response_end(http::H2RequestStream& stream, http::FieldList* trailers) override;
  void on_response_bad(http::H2RequestStream& stream, const http::ParseFault& fault) override;
  void on_stream_closed(http::H2RequestStream& stream, http::H2Code code) override;
  void on_settings() override;
  void on_going_away() override;
  void on_ping_answered() override;
  Ready ready(http::H2RequestStream& stream) override;
  bool has_room() override;
  bool write(std::string_view bytes) override { return output_.copy(bytes); }
  bool write_data(http::H2RequestStream& stream, std::string_view header,
                  std::size_t bytes) override;
  void on_framed(http::H2RequestStream& stream, std::size_t bytes, bool written) override;

  void run_deferred() override;
  void send_frames();
  void sweep();
  void end(const base::Error& error);
  void log(std::string_view text);
  void lose_all(const base::Error& error);
  void end_if_over();
  void close();
  // Health: see h2_session.cc.
  void watch();
  void ask_for_life();
  static void timed_out(void* self);
  void on_timeout();

  enum class Awaited : std::uint8_t { nothing, greeting, quiet, answer, use, last_bytes };

  Pools& pools_;
  H1Session& transport_;
  ServerPool& server_;
  net::Stream& stream_;
  std::size_t window_bytes_;
  http::H2Requester frames_;
  net::FrameOutput output_;
  base::IntrusiveList<H2Stream, AllStreams> streams_;
  base::IntrusiveList<H2Stream, AllStreams> retired_;
  base::IntrusiveList<H2Stream, WantingStreams> wanting_;
  base::IntrusiveList<H2Stream, SendingStreams> sending_;
  base::Timer timer_;
  net::IdleTime idle_time_;
  const ring::Lease* receiving_ = nullptr;  // what the bytes of on_response_data are in
  base::Millis heard_ms_ = 0;               // when something came last
  std::uint32_t streams_now_ = 0;
  std::uint32_t uses_ = 0;
  Awaited awaited_ = Awaited::nothing;
  bool secured_;
  bool asked_ = false;  // in this quiet time, whether it is there
  bool greeted_ = false;
  bool leaving_ = false;
  bool over_ = false;
  bool send_failed_ = false;
  bool closed_ = false;
};

}  // namespace ringside::upstream
