// One request on an HTTP/2 connection to a server, as an exchange sees it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ringside/base/intrusive_list.h"
#include "ringside/http/h2_requester.h"
#include "ringside/net/slice.h"
#include "ringside/upstream/session.h"

namespace ringside::upstream {

class H2Session;

// Lists of a connection's streams.
struct AllStreams {};      // those that an exchange has, and those that wait to be destroyed
struct WantingStreams {};  // their exchange takes again what has come
struct SendingStreams {};  // frames of them have not left yet

// Owner: Pools (its slab), and its connection, which destroys it at the end of a turn once its
// exchange has let go.
class H2Stream final : public Session,
                       public http::H2RequestStream,
                       public base::ListHook<AllStreams>,
                       public base::ListHook<WantingStreams>,
                       public base::ListHook<SendingStreams> {
 public:
  explicit H2Stream(H2Session& session, bool reused);

  void begin(ResponseHandler& handler, base::Arena& arena, http::Method method) override;
  http::HeadWriter start_head(const RequestLine& line) override;
  bool send_head(http::HeadWriter& head, const RequestFraming& framing) override;
  bool send_body(net::Piece piece) override;
  bool send_end(const http::FieldList* trailers) override;
  bool takes_pipes() const override { return false; }
  bool may_hand_back() const override { return true; }
  std::size_t request_pending() const override;
  std::uint64_t request_zero_copied() const override { return 0; }
  bool request_refused() const override { return refused_; }
  void enter_tunnel() override;
  void park() override { parked_ = true; }
  void resume() override;
  void finish() override { let_go(); }
  void abandon() override { let_go(); }
  bool reused() const override { return reused_; }
  SharedServer& server() override;

  // ---- from the connection
  void on_head(http::ResponseHead& head);
  void on_body(ring::Lease piece);
  void on_end(http::FieldList* trailers);
  void on_closed(http::H2Code code);
  // The response cannot be had.
  void fail(const base::Error& error);
  // The connection is lost. `sent`: bytes of it that have left for sure.
  void on_lost(const base::Error& error, std::uint64_t sent);
  // The server takes no more of the request.
  void refuse_rest();
  // Gives the exchange what it wants of what has come.
  void read_input();
  http::H2RequesterHandler::Ready ready() const {
    return {.bytes = output_.bytes(), .last = last_queued_};
  }
  bool write(std::size_t bytes);
  void on_framed(std::size_t bytes, bool written);
  // Some bytes of the connection have left. False: nothing of this stream is on its way any more.
  bool on_sent();
  // An exchange has it.
  bool in_use() const { return handler_ != nullptr; }

 private:
  void give(ring::Lease piece);
  void let_go();

  H2Session& session_;
  ResponseHandler* handler_ = nullptr;
  base::Arena* arena_ = nullptr;
  RequestLine line_;
  net::SliceQueue input_;
  net::SliceQueue output_;               // of the body, without frames
  http::FieldList* trailers_ = nullptr;  // of the response, behind the input
  std::uint64_t head_at_ = 0;            // position of the output before its first frame
  std::uint64_t framed_at_ = 0;          // and behind its last one
  http::Method method_ = http::Method::other;
  bool reused_;
  bool whole_ = false;  // the head is the request
  bool last_queued_ = false;
  bool parked_ = false;
  bool end_waits_ = false;
  bool refused_ = false;
  bool retired_ = false;
};

}  // namespace ringside::upstream
