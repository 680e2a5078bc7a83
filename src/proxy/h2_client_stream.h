// One stream of an HTTP/2 client connection: what an exchange sees of its client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ringside/base/intrusive_list.h"
#include "ringside/http/h2_connection.h"
#include "ringside/net/slice.h"

#include "client_session.h"
#include "context.h"
#include "exchange.h"

namespace ringside::proxy {

class H2Client;

// Lists of a connection's streams.
struct AllStreams {};
struct WantingStreams {};  // the exchange wants its body, and it is here
struct SendingStreams {};  // frames of them have not left yet

// Owner: the ring's slab, and its connection. It lives as long as its exchange.
class H2ClientStream final : public ClientSession,
                             public http::H2Stream,
                             public base::ListHook<AllStreams>,
                             public base::ListHook<WantingStreams>,
                             public base::ListHook<SendingStreams> {
 public:
  H2ClientStream(Context& context, H2Client& client);

  // False: there is no place for an exchange.
  bool begin(const ClientFacts& facts);

  // ---- from the connection
  void on_head(http::RequestHead& head);
  void on_body(ring::Lease piece);
  void on_end(http::FieldList* trailers);
  void on_bad(const http::ParseFault& fault);
  // The exchange is told, once, that its client is gone.
  void on_lost(const base::Error& error);
  void on_shutdown() { exchange_->on_shutdown(); }
  // Gives the exchange what it wants of what has come.
  void read_input();
  http::H2Handler::Ready ready() const;
  bool write(std::size_t bytes);
  void on_framed(std::size_t bytes);
  // Some bytes of the connection have left. False: nothing of this stream is on its way any more.
  bool on_sent();
  bool begun() const { return exchange_ != nullptr; }

  // ---- from the exchange
  http::HeadWriter start_head(std::uint16_t status, std::string_view reason) override;
  bool send_head(http::HeadWriter& head, const ResponseFraming& framing) override;
  bool send_body(net::Piece piece) override;
  bool takes_pipes() const override { return false; }
  bool send_body_view(std::string_view bytes) override;
  bool send_end(const http::FieldList* trailers) override;
  void end_with_response() override {}  // the connection ends by itself, behind all of its streams
  std::size_t response_pending() const override;
  std::uint64_t bytes_sent() const override { return bytes_framed_; }
  std::uint64_t bytes_zero_copied() const override { return 0; }
  std::uint64_t bytes_delivered() const override;
  void want_body() override;
  void hold_body() override { wanted_ = false; }
  void enter_tunnel() override;
  void exchange_over(Afterwards afterwards) override;

 private:
  bool body_queued(std::size_t bytes);
  void give(ring::Lease piece);
  bool add_websocket_key(http::RequestHead& head);
  void end_frames(Afterwards afterwards);

  Context& context_;
  H2Client& client_;
  Exchange* exchange_ = nullptr;
  net::SliceQueue input_;
  net::SliceQueue output_;  // of the body, without frames
  http::FieldList* trailers_ = nullptr;
  std::uint64_t body_left_ = 0;  // of a response that ends with its last byte
  std::uint64_t bytes_framed_ = 0;
  std::uint64_t framed_at_ = 0;  // position of the output behind its last frame
  std::uint16_t status_ = 0;
  bool length_known_ = false;
  bool wanted_ = false;
  bool end_waits_ = false;  // of the request, behind the input
  bool last_queued_ = false;
  bool head_given_ = false;  // a final one
  bool head_whole_ = false;  // of the request
  bool lost_ = false;
  bool tunnel_ = false;
};

}  // namespace ringside::proxy
