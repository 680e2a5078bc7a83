// An HTTP/1 client connection (RFC 9112).
#pragma once

#include <cstdint>
#include <string_view>

#include "ringside/base/intrusive_list.h"
#include "ringside/base/timer_wheel.h"
#include "ringside/http/gather.h"
#include "ringside/http/parser.h"
#include "ringside/net/idle_time.h"
#include "ringside/net/slice.h"
#include "ringside/net/stream.h"
#include "ringside/ring/ring.h"

#include "client_session.h"
#include "client_transport.h"
#include "context.h"
#include "exchange.h"

namespace ringside::proxy {

// Owner: the worker's slab and its list of clients; it destroys itself there when its stream is
// closed. Every connection begins as one, and may turn out to speak HTTP/2: then an H2Client has
// its stream from there on, and this is only what holds it. What arrives is queued as leases and
// read from that queue as far as the exchange wants it; requests are answered one after the other,
// in order.
class H1Client final : private net::StreamHandler,
                       public ClientTransport,
                       public ClientSession,
                       public base::ListHook<H1Client>,
                       private ring::Deferred {
 public:
  H1Client(Context& context, std::uint32_t listen);

  // Takes over an accepted descriptor. False when the ring has no place. `peer`: its client's
  // address where it is known already, or null. `place` is what that is counted by; it is kept
  // until the descriptor is closed.
  bool adopt(int fd, const net::Address* peer, AddressPlace place);
  // The worker drains: no request after the one that is being served, or that comes within
  // `grace_ms`.
  void drain(base::Millis grace_ms);
  // Ends the connection and what it serves.
  void shut_down();

  http::HeadWriter start_head(std::uint16_t status, std::string_view reason) override;
  bool send_head(http::HeadWriter& head, const ResponseFraming& framing) override;
  bool send_body(net::Piece piece) override;
  bool send_body_view(std::string_view bytes) override;
  bool send_end(const http::FieldList* trailers) override;
  void end_with_response() override;
  std::size_t response_pending() const override { return stream_.pending_cost(); }
  std::uint64_t bytes_sent() const override { return stream_.bytes_sent(); }
  std::uint64_t bytes_zero_copied() const override { return stream_.bytes_zero_copied(); }
  std::uint64_t bytes_delivered() const override { return ClientTransport::bytes_delivered(); }
  bool takes_pipes() const override { return stream_.takes_pipes(); }
  void want_body() override;
  void hold_body() override;
  void enter_tunnel() override;
  void exchange_over(Afterwards afterwards) override;
  void closed() override;

 private:
  // What the next bytes of the queue are.
  enum class Reading : std::uint8_t {
    head,  // or, with `waits_`, nothing yet
    body_length,
    body_chunked,
    trailers,
    complete,  // the next request's; they wait
    tunnel,
    dropped,  // nobody's: lingering, or after a request that could not be read
  };

  void on_secured() override;
  void on_confirmed() override;
  void on_received(ring::Lease lease) override;
  std::uint64_t opaque_bytes() override;
  void on_piped(net::PipeBytes bytes) override;
  void on_end_of_stream() override;
  void on_sent() override;
  void on_failed(const base::Error& error, Direction direction) override;
  void on_closed() override { closed(); }
  void run_deferred() override;

  // Each reads from the front of the queue; false: nothing can be read now.
  void read_input();
  bool read_some();
  bool read_head();
  bool read_length();
  bool read_chunks();
  bool read_trailers();
  bool read_tunnel();
  void head_complete(const http::Gather::Fed& fed);
  bool begin_exchange();
  void take_head();
  void request_complete(http::FieldList* trailers);
  void end_of_input();
  void balance_input();
  bool unwatched() const;
  void schedule_read();
  template <typename T, typename... Args>
  T* make(Args&&... args);
  void on_insecure();
  void on_unreadable();
  // What the first bytes are.
  bool decide();
  void become_h2();
  bool handshaking() const { return tls_ != nullptr && facts_.tls == nullptr; }
  void close(bool reset);
  void linger();
  bool lingers_on();
  void end_lingering();
  static void timed_out(void* self);
  void on_timeout();
  void idle_timeout();
  void arm(base::Millis delay_ms);
  const config::Timeouts& timeouts() const { return context_.runtime->snapshot().timeouts; }
  base::Millis linger_ms() const { return timeouts().linger_ms == 0 ? 1 : timeouts().linger_ms; }

  net::SliceQueue input_;
  base::Timer timer_;
  net::IdleTime idle_time_;
  Exchange* exchange_ = nullptr;
  H2Client* h2_ = nullptr;  // the connection is its
  // In the exchange's arena.
  http::RequestParser* parser_ = nullptr;
  http::ChunkedDecoder* chunks_ = nullptr;
  http::TrailerParser* trailers_ = nullptr;
  http::Gather gather_;
  std::uint64_t body_left_ = 0;
  std::uint64_t lingered_bytes_ = 0;  // that the client had when the last delay of lingering began
  std::uint32_t requests_ = 0;
  Reading reading_ = Reading::head;
  bool decided_ = false;  // that it is HTTP/1
  bool waits_ = false;    // the head is whole, but not to be served before the handshake is over
  bool early_input_ = false;  // what waits came as early data, or some of it
  bool wanted_ = false;
  bool held_ = false;    // by back-pressure, with nothing read ahead
  bool ended_ = false;   // the client's FIN came
  bool unread_ = false;  // it sends on, but nothing that can be opened: closing resets
  bool end_told_ = false;
  bool reading_now_ = false;  // read_input is on the stack
  bool chunked_response_ = false;
  bool first_chunk_ = true;
  bool tunnel_ = false;
  bool lingering_ = false;
  bool last_request_ = false;
  bool watched_ = false;        // unwatched_ms are over
  bool client_closes_ = false;  // the request said that no other follows it
  bool stopping_ = false;
  RingRuntime* kept_ = nullptr;  // of an exchange that ended with a send in flight
};

}  // namespace ringside::proxy
