// One request and its response: reads the head's meaning, routes, gets a server, relays both ways,
// retries, ends, logs.
#pragma once

#include <cstdint>
#include <string_view>

#include "ringside/base/arena.h"
#include "ringside/base/timer_wheel.h"
#include "ringside/filter/forwarding.h"
#include "ringside/http/message.h"
#include "ringside/http/parser.h"
#include "ringside/net/piece.h"
#include "ringside/net/slice.h"
#include "ringside/proxy/end_reason.h"
#include "ringside/ring/ring.h"
#include "ringside/route/router.h"
#include "ringside/upstream/pools.h"
#include "ringside/upstream/session.h"

#include "body_pace.h"
#include "client_session.h"
#include "context.h"
#include "states.h"

namespace ringside::proxy {

class ClientTls;

// Who is at the other end; outlives the exchange.
struct ClientFacts {
  std::string_view address;
  std::uint16_t port = 0;
  std::uint32_t listen = 0;  // index into Snapshot::listens
  bool secure = false;       // the listener speaks TLS
  ClientTls* tls = nullptr;  // set when the handshake is done
  // The request whose head comes now was in early data, so it may be a replay.
  bool early = false;
};

// A rest of a request that is worth reading so that the connection can be kept; more is cheaper to
// close.
inline constexpr std::uint64_t discard_bytes_max = 64 * 1024;

// So much of a request's body is kept, where its server may hand the request back.
inline constexpr std::uint64_t kept_bytes_max = 64 * 1024;

// An answer that is made here. Its body stays in place until the exchange is over.
struct LocalAnswer {
  std::uint16_t status = 200;
  std::string_view body;
  const config::Respond* configured = nullptr;  // of a `respond` route
  std::string_view extra_name;                  // empty: no field beside the usual ones
  std::string_view extra_value;
  bool refusal = false;          // in the place of what the client asked for
  std::string_view grpc_status;  // of a refusal as gRPC has it; empty: it is none
  std::string_view grpc_message;
};

// Owner: the client's session, in the worker's slab; it lives from the first byte of a request
// until the last byte of the response has left. It knows no protocol: both ends are sessions. It
// ends only from the loop (run_deferred), never inside a call.
class Exchange final : private upstream::ResponseHandler,
                       private upstream::Waiter,
                       private ring::Deferred {
 public:
  Exchange(Context& context, ClientSession& client, const ClientFacts& facts);
  ~Exchange();

  base::Arena& arena() { return arena_; }
  const config::Snapshot& snapshot() const { return runtime_.snapshot(); }
  RingRuntime& runtime() { return runtime_; }

  // ---- from the client's session
  // The head is in the arena, and stays there.
  void on_head(http::RequestHead& head);
  // What came is not a request, or one past a limit (`fault`).
  void on_bad_head(const http::ParseFault& fault);
  void on_head_timeout();
  void on_request_body(net::Piece piece);
  void on_request_end(http::FieldList* trailers);
  void on_bad_body(const http::ParseFault& fault);
  // Some of the response has left.
  void on_client_progress();
  // Nothing can be sent any more, or the request will never be whole.
  void on_client_lost(const base::Error& error);
  // The worker is told to end now.
  void on_shutdown();

  // Whether on_request_body may bring pieces in a pipe.
  bool request_takes_pipes() const { return session_ != nullptr && session_->takes_pipes(); }

  bool request_unread() const {
    return request_ != RequestState::complete && request_ != RequestState::gone;
  }

 private:
  // exchange_request.cc
  bool admit(http::RequestHead& head);
  bool nothing_here();
  void route(http::RequestHead& head);
  void find_facts(http::RequestHead& head);
  void start_upstream();
  bool send_request();
  std::string_view upstream_target();
  std::string_view upstream_host();
  void on_session(upstream::Session& session) override;
  void on_no_session(const base::Error& error, upstream::SharedServer* server) override;
  bool retry(const base::Error& error);
  void keep_body(const net::Piece& piece);
  void forget_body();
  std::size_t kept_bytes() const { return kept_ == nullptr ? 0 : kept_->bytes(); }
  bool send_kept_body();

  // exchange_response.cc
  void on_response_head(http::ResponseHead& head) override;
  void on_response_body(net::Piece piece) override;
  void on_response_end(const http::FieldList* trailers) override;
  void on_request_progress() override;
  bool takes_pipes() const override { return client_.takes_pipes(); }
  void on_upstream_failed(const base::Error& error) override;
  void relay_interim(http::ResponseHead& head);
  void relay_final(http::ResponseHead& head);
  void relay_switch(http::ResponseHead& head);
  bool proves_websocket(http::ResponseHead& head) const;
  void refuse_answer(std::string_view text);
  void note_grpc_status(const http::FieldList& fields);
  bool client_keeps(bool server_keeps) const;

  // exchange_https.cc
  const config::RedirectHttps& redirect_rule() const {
    return site_->redirect_https ? *site_->redirect_https
                                 : snapshot().listens[client_facts_.listen].redirect_https;
  }
  bool send_to_https(const route::Match& match, std::string_view host);
  bool misdirected(std::string_view host);
  bool has_hsts() const { return site_ != nullptr && !site_->hsts.empty(); }
  filter::Hsts hsts() { return has_hsts() ? hsts_of_site() : filter::Hsts{}; }
  filter::Hsts hsts_of_site();

  // local_response.cc
  void respond(const config::Respond& answer);
  void redirect(const config::Redirect& to);
  void refuse(std::uint16_t status, std::string_view text, EndReason why);
  void send_local(const LocalAnswer& answer);
  void refuse_call(const LocalAnswer& answer);
  http::HeadWriter start_local(const LocalAnswer& answer);
  void discard_request();

  // exchange_pace.cc
  void begin_pace();
  // To be called whenever who is waited for may have changed.
  void measure() {
    if (request_pace_.on()) note_awaited();
  }
  void note_awaited();
  void arm_pace();
  bool request_awaited() const;
  bool response_awaited() const;
  static void pace_due(void* self);
  void on_pace_due();
  void request_too_slow();

  // exchange.cc
  void request_event(RequestEvent event);
  void response_event(ResponseEvent event);
  void end_with(base::Origin who, Stage stage, Cause cause);
  void cut();
  void drop_upstream();
  upstream::Session* take_session();
  void note_moved(const net::Piece& piece);
  std::string_view count_mover();
  void touch();
  void settle();
  bool over();
  void run_deferred() override;
  void log(std::uint64_t bytes_sent, std::string_view mover);
  Afterwards afterwards() const;
  static void timed_out(void* self);
  void on_timeout();
  std::uint64_t since_start() const { return context_.ring.now_ns() - start_ns_; }
  const config::Timeouts& upstream_timeouts() const;
  std::size_t buffered_max() const;
  Stage stage_now() const;

  Context& context_;
  ClientSession& client_;
  const ClientFacts& client_facts_;
  RingRuntime& runtime_;
  base::Arena arena_;
  base::Timer timer_;
  base::Timer pace_timer_;
  base::Millis pace_due_ms_ = 0;
  BodyPace request_pace_;
  BodyPace response_pace_;
  upstream::Session* session_ = nullptr;
  http::RequestHead* head_ = nullptr;
  const config::Site* site_ = nullptr;
  const config::Route* route_ = nullptr;
  upstream::SharedServer* server_ = nullptr;  // the last one tried
  filter::RequestFacts facts_;
  std::string_view normal_path_;
  std::string_view grpc_status_;
  EndReason end_;
  bool end_known_ = false;
  RequestState request_ = RequestState::reading_head;
  ResponseState response_ = ResponseState::none;
  http::Framing response_framing_;
  // Of the request's body: all that was relayed, while keeps_body_. In the arena; null: nothing.
  net::SliceQueue* kept_ = nullptr;
  bool keep_ = true;  // the client's connection may serve another request
  bool linger_ = false;
  bool end_follows_ = false;     // the client's session is told of the response's end
  bool response_ended_ = false;  // the server's response is whole
  bool response_parked_ = false;
  bool request_held_ = false;  // back-pressure of the server
  bool retried_ = false;
  bool keeps_body_ = false;
  bool continued_ = false;  // a 100 was relayed
  bool reused_ = false;
  bool stopped_ = false;  // told to shut down
  std::uint8_t tries_ = 0;
  std::uint16_t status_ = 0;
  std::uint64_t start_ns_;
  std::uint64_t start_realtime_ns_;
  std::uint64_t bytes_sent_before_;
  std::uint64_t zero_copied_before_;
  std::uint64_t connected_ns_ = AccessRecord::never;
  std::uint64_t first_byte_ns_ = AccessRecord::never;
  std::uint64_t request_bytes_ = 0;
  std::uint64_t relayed_bytes_ = 0;
  std::uint64_t response_body_bytes_ = 0;
  std::uint64_t moved_bytes_[net::movers] = {};  // of both bodies
};

}  // namespace ringside::proxy
