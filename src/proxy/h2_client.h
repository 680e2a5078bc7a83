// An HTTP/2 client connection (RFC 9113).
#pragma once

#include <cstddef>
#include <cstdint>

#include "ringside/base/intrusive_list.h"
#include "ringside/base/timer_wheel.h"
#include "ringside/http/h2_connection.h"
#include "ringside/net/frame_output.h"
#include "ringside/net/idle_time.h"
#include "ringside/net/stream.h"
#include "ringside/ring/ring.h"

#include "client_transport.h"
#include "context.h"
#include "h2_client_stream.h"

namespace ringside::proxy {

// Owner: the ring's slab; it destroys itself, and its transport, when the stream is closed and no
// exchange is left. What arrives is read at once, as far as the windows let the client send; what
// the exchanges want to send is made into frames at the end of a turn, in fair order, as long as
// little waits in the socket.
class H2Client final : public net::StreamHandler, private http::H2Handler, private ring::Deferred {
 public:
  H2Client(Context& context, ClientTransport& transport);

  // The stream is its own from now on. False: no memory.
  bool start();
  // As of H1Client.
  void drain(base::Millis grace_ms);
  void shut_down();

  void on_received(ring::Lease lease) override;

  // ---- from its streams
  http::H2Connection& frames() { return frames_; }
  net::FrameOutput& output() { return output_; }
  std::uint64_t bytes_delivered() const { return transport_.bytes_delivered(); }
  // Something is to be framed, or to be read.
  void schedule() {
    if (!ring::Deferred::linked()) context_.ring.defer(*this);
  }
  void wants_body(H2ClientStream& stream) {
    wanting_.push_back(stream);
    schedule();
  }
  void framed(H2ClientStream& stream) { sending_.push_back(stream); }
  void note_input(std::size_t cost) { input_cost_ += cost; }
  void note_read(std::size_t cost) { input_cost_ -= cost; }
  // Destroys the stream.
  void stream_over(H2ClientStream& stream);

 private:
  void on_end_of_stream() override;
  void on_sent() override;
  void on_failed(const base::Error& error, Direction direction) override;
  void on_closed() override;

  http::H2Stream* on_stream() override;
  void on_request_head(http::H2Stream& stream, http::RequestHead& head) override;
  void on_request_data(http::H2Stream& stream, std::string_view bytes) override;
  void on_request_end(http::H2Stream& stream, http::FieldList* trailers) override;
  void on_request_bad(http::H2Stream& stream, const http::ParseFault& fault) override;
  void on_stream_reset(http::H2Stream& stream, http::H2Code code) override;
  Ready ready(http::H2Stream& stream) override;
  bool has_room() override;
  bool write(std::string_view bytes) override { return output_.copy(bytes); }
  bool write_data(http::H2Stream& stream, std::string_view header, std::size_t bytes) override;
  void on_framed(http::H2Stream& stream, std::size_t bytes) override;

  void run_deferred() override;
  void send_frames();
  void balance_input();
  void on_unreadable();
  void lose_all(const base::Error& error);
  void finish();
  void log_failure();
  void linger();
  void end_lingering();
  void close(bool reset);
  void end_if_over();
  void set_timer();
  void arm(base::Millis delay_ms);
  static void timed_out(void* self);
  void on_timeout();
  static void grace_over(void* self);
  const config::Snapshot& snapshot() const { return context_.runtime->snapshot(); }

  // What the timer waits for.
  enum class Awaited : std::uint8_t { nothing, preface, head, request, lingering };

  Context& context_;
  ClientTransport& transport_;
  net::Stream& stream_;
  http::H2Connection frames_;
  net::FrameOutput output_;
  base::IntrusiveList<H2ClientStream, AllStreams> streams_;
  base::IntrusiveList<H2ClientStream, WantingStreams> wanting_;
  base::IntrusiveList<H2ClientStream, SendingStreams> sending_;
  base::Timer timer_;
  base::Timer grace_timer_;
  net::IdleTime idle_time_;
  const ring::Lease* receiving_ = nullptr;  // what the bytes of on_request_data are in
  std::size_t input_cost_ = 0;              // of bodies that nobody wants yet
  std::uint32_t streams_now_ = 0;
  std::uint32_t streams_max_;
  std::uint32_t requests_ = 0;
  Awaited awaited_ = Awaited::nothing;
  bool greeted_ = false;  // something came
  bool leaving_ = false;  // a last GOAWAY was queued
  bool over_ = false;     // nothing that comes is read
  bool lingering_ = false;
  bool ended_ = false;  // the client's FIN came
  bool stopping_ = false;
  bool closed_ = false;
};

}  // namespace ringside::proxy
