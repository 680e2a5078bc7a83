// An HTTP/1.1 connection to a server (RFC 9112).
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "ringside/base/intrusive_list.h"
#include "ringside/base/timer_wheel.h"
#include "ringside/http/gather.h"
#include "ringside/http/parser.h"
#include "ringside/net/idle_time.h"
#include "ringside/net/stream.h"
#include "ringside/tls/layer.h"
#include "ringside/upstream/pools.h"
#include "ringside/upstream/session.h"

namespace ringside::upstream {

class ServerPool;

// States: connecting → busy ⇄ idle → closing. Owner: Pools (its slab); destroys itself there when
// its stream is closed.
class H1Session final : public Session,
                        public base::ListHook<H1Session>,
                        private net::StreamHandler {
 public:
  H1Session(Pools& pools, ServerPool& server);

  // Before connect(): the connection is to be TLS, as Snapshot::upstreams[upstream] has it.
  base::Result<void> secure(tls::Contexts* contexts, std::size_t upstream);

  // Connects for `waiter`, who gets the session; on failure the waiter hears of it. Null: for those
  // who joined, of whom Pools knows.
  base::Result<void> connect(const net::Address& address, Waiter* waiter, base::Millis timeout_ms);
  // It cannot be used, though it is connected.
  void fail_connect(const base::Error& error) { fail_waiter(error); }
  // Takes over a connection that another ring lent.
  bool adopt(int fd);
  // The waiter does not want it any more; the connection goes on and will be idle.
  void forget_waiter() { waiter_ = nullptr; }
  // Into the idle list of its pool: listens for the server's FIN, for at most `timeout_ms`.
  void rest(base::Millis timeout_ms);
  // Out of it again, for use.
  void wake();
  // For another ring; Pools hears of it by on_session_released.
  void release_to(unsigned ring, std::uint64_t token);
  // TLS cannot move to another ring: half of it is in the memory of this one.
  bool secured() const { return tls_ != nullptr; }
  bool lendable() const { return tls_ == nullptr && stream_.idle(); }
  void close(bool reset);
  ServerPool& pool() { return server_; }
  // For an H2Session that takes the connection over.
  net::Stream& stream() { return stream_; }
  // Whoever it connected for gets it; else it is idle.
  void hand_out();
  // Null: it left.
  Waiter* take_waiter();
  // Whether it connects for whoever joins; from now on it does not.
  bool take_joinable() { return std::exchange(joinable_, false); }
  // By ALPN, or by what is known of the server. Only when it has just been connected.
  bool speaks_h2() const;
  void log_insecure();
  unsigned lend_ring() const { return lend_ring_; }
  std::uint64_t lend_token() const { return lend_token_; }

  void begin(ResponseHandler& handler, base::Arena& arena, http::Method method) override;
  http::HeadWriter start_head(const RequestLine& line) override;
  bool send_head(http::HeadWriter& head, const RequestFraming& framing) override;
  bool send_body(net::Piece piece) override;
  bool send_end(const http::FieldList* trailers) override;
  bool takes_pipes() const override { return stream_.takes_pipes(); }
  bool may_hand_back() const override { return false; }
  std::size_t request_pending() const override { return stream_.pending_cost(); }
  std::uint64_t request_zero_copied() const override {
    return stream_.bytes_zero_copied() - zero_copied_before_;
  }
  bool request_refused() const override { return send_failed_; }
  void enter_tunnel() override;
  void park() override { stream_.park(); }
  void resume() override { stream_.resume(); }
  void finish() override;
  void abandon() override;
  bool reused() const override { return uses_ > 1; }
  SharedServer& server() override;

 private:
  enum class State : std::uint8_t { connecting, idle, busy, closing };
  // What the next bytes of the server are.
  enum class Reading : std::uint8_t {
    nothing,
    head,
    body_length,
    body_chunked,
    trailers,
    body_until_close,
    tunnel
  };

  void on_connected() override;
  void on_received(ring::Lease lease) override;
  std::uint64_t opaque_bytes() override;
  void on_piped(net::PipeBytes bytes) override;
  void on_end_of_stream() override;
  void on_sent() override;
  void on_failed(const base::Error& error, Direction direction) override;
  void on_closed() override;
  void on_released(int fd) override;

  bool read_head(ring::Lease& lease);
  bool read_length(ring::Lease& lease);
  bool read_chunks(ring::Lease& lease);
  bool read_trailers(ring::Lease& lease);
  bool deliver(net::Piece piece);
  template <typename Parser>
  bool parse(Parser& parser, ring::Lease& lease);
  bool head_complete();
  void response_complete(bool bytes_left);
  void fail(base::Error error);
  void fail_message(std::string_view reason);
  void fail_waiter(const base::Error& error);
  void detach_handler();
  static void timed_out(void* self);

  Pools& pools_;
  ServerPool& server_;
  net::Address address_;  // in place while the connect is submitted
  net::Stream stream_;
  tls::LayerPtr tls_;  // null: clear text
  base::Timer timer_;
  net::IdleTime idle_time_;
  Waiter* waiter_ = nullptr;
  ResponseHandler* handler_ = nullptr;
  base::Arena* arena_ = nullptr;
  // In the exchange's arena; they exist while a response is read.
  http::ResponseParser* parser_ = nullptr;
  http::ChunkedDecoder* chunks_ = nullptr;
  http::TrailerParser* trailers_ = nullptr;
  http::Gather gather_;
  std::uint64_t body_left_ = 0;
  std::uint64_t sent_before_ = 0;  // bytes sent on this connection before this exchange
  std::uint64_t zero_copied_before_ = 0;
  std::uint32_t uses_ = 0;
  std::uint32_t epoch_ = 0;  // changes when the handler lets go, so that a loop over input notices
  std::uint64_t lend_token_ = 0;
  unsigned lend_ring_ = 0;
  State state_ = State::connecting;
  Reading reading_ = Reading::nothing;
  http::Method method_ = http::Method::other;
  bool chunked_request_ = false;
  bool first_chunk_ = true;
  bool tunnel_ = false;
  bool reusable_ = true;
  bool send_failed_ = false;
  bool send_reset_ = false;
  bool joinable_ = false;  // it connects for whoever joins
};

}  // namespace ringside::upstream
