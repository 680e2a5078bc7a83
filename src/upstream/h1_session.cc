#include "h1_session.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "server_pool.h"

namespace ringside::upstream {

using base::Error;
using base::ErrorCode;
using base::Origin;
using base::Retry;
using http::ParseState;

H1Session::H1Session(Pools& pools, ServerPool& server)
    : pools_(pools),
      server_(server),
      stream_(pools.streams_, *this),
      timer_(&H1Session::timed_out, this) {
  stream_.receive_by_need();
}

base::Result<void> H1Session::secure(tls::Contexts* contexts, std::size_t upstream) {
  if (contexts != nullptr) tls_ = contexts->connect(upstream, server_.shared->config().endpoint);
  if (tls_ == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  stream_.secure(*tls_);
  return {};
}

SharedServer& H1Session::server() {
  return *server_.shared;
}

// ---- life

base::Result<void> H1Session::connect(const net::Address& address, Waiter* waiter,
                                      base::Millis timeout_ms) {
  address_ = address;
  base::Result<void> started = stream_.connect(address_);
  if (!started) return started;
  waiter_ = waiter;
  joinable_ = waiter == nullptr;
  pools_.streams_.ring.timers().arm(timer_, timeout_ms);
  return {};
}

bool H1Session::adopt(int fd) {
  if (!stream_.adopt(fd)) return false;
  state_ = State::busy;
  uses_ = 1;  // it served the ring that lent it
  return true;
}

void H1Session::on_connected() {
  pools_.streams_.ring.timers().disarm(timer_);
  state_ = State::busy;
  if (joinable_ || server_.may_speak_h2()) return pools_.connected(*this);
  hand_out();
}

void H1Session::hand_out() {
  if (waiter_ == nullptr) return pools_.became_idle(*this);
  Waiter* waiter = take_waiter();
  waiter->on_session(*this);
}

Waiter* H1Session::take_waiter() {
  Waiter* waiter = std::exchange(waiter_, nullptr);
  if (waiter == nullptr) return nullptr;
  waiter->state_ = Waiter::State::none;
  waiter->session_ = nullptr;
  return waiter;
}

bool H1Session::speaks_h2() const {
  if (tls_ != nullptr) return tls_->info().alpn == "h2";
  return server_.shared->config().protocol == config::UpstreamProtocol::h2;
}

void H1Session::fail_waiter(const Error& error) {
  Waiter* waiter = std::exchange(waiter_, nullptr);
  const bool joinable = std::exchange(joinable_, false);
  close(false);
  if (waiter != nullptr) pools_.fail(*waiter, error, &server_);
  if (joinable) pools_.connect_failed(server_, error);
}

void H1Session::timed_out(void* self) {
  auto& session = *static_cast<H1Session*>(self);
  if (session.state_ == State::connecting) {
    session.fail_waiter({ErrorCode::timed_out, Origin::upstream, Retry::yes});
    return;
  }
  if (const base::Millis left = session.idle_time_.go_on(); left != 0) {
    session.stream_.rest();
    return session.pools_.streams_.ring.timers().arm(session.timer_, left);
  }
  session.close(false);  // idle for too long
}

void H1Session::rest(base::Millis timeout_ms) {
  state_ = State::idle;
  stream_.resume();  // to hear of the server's FIN at once
  pools_.streams_.ring.timers().arm(timer_, idle_time_.begin(timeout_ms, tls_ != nullptr));
}

void H1Session::wake() {
  state_ = State::busy;
  pools_.streams_.ring.timers().disarm(timer_);
}

void H1Session::release_to(unsigned ring, std::uint64_t token) {
  state_ = State::closing;
  pools_.streams_.ring.timers().disarm(timer_);
  lend_ring_ = ring;
  lend_token_ = token;
  stream_.release();
}

void H1Session::close(bool reset) {
  if (state_ == State::idle) server_.idle_changed(-1);
  if (arena_ != nullptr) stream_.keep_until_closed(*arena_);
  base::ListHook<H1Session>::unlink();
  pools_.streams_.ring.timers().disarm(timer_);
  if (waiter_ != nullptr) {
    waiter_->session_ = nullptr;
    waiter_ = nullptr;
  }
  detach_handler();
  state_ = State::closing;
  stream_.close(reset);
}

void H1Session::on_closed() {
  pools_.session_closed(*this);
}

void H1Session::on_released(int fd) {
  pools_.session_released(*this, fd);
}

// ---- the request

void H1Session::begin(ResponseHandler& handler, base::Arena& arena, http::Method method) {
  handler_ = &handler;
  arena_ = &arena;
  method_ = method;
  ++uses_;
  ++epoch_;
  reading_ = Reading::head;
  parser_ = nullptr;
  trailers_ = nullptr;
  gather_.reset();
  chunked_request_ = tunnel_ = false;
  first_chunk_ = true;
  sent_before_ = stream_.bytes_sent();
  zero_copied_before_ = stream_.bytes_zero_copied();
}

http::HeadWriter H1Session::start_head(const RequestLine& line) {
  http::HeadWriter head(*arena_, 1024 + line.target.size());
  head.request_line(line.method, line.target);
  head.field("Host", line.host);
  return head;
}

bool H1Session::send_head(http::HeadWriter& head, const RequestFraming& framing) {
  chunked_request_ = framing.body.kind == http::Framing::Kind::chunked;
  if (chunked_request_) {
    head.field("Transfer-Encoding", "chunked");
  } else if (framing.body.kind == http::Framing::Kind::length) {
    head.field("Content-Length", framing.body.length);
  }
  if (framing.expect_continue) head.field("Expect", "100-continue");
  if (framing.upgrade) {
    head.field("Connection", framing.te_trailers ? "Upgrade, TE" : "Upgrade");
    head.field("Upgrade", framing.upgrade_value);
  } else if (framing.te_trailers) {
    head.field("Connection", "TE");
  }
  if (framing.te_trailers) head.field("TE", "trailers");
  std::string_view bytes = head.finish();
  if (bytes.data() == nullptr || !stream_.send_view(bytes)) return false;
  stream_.resume();
  return true;
}

bool H1Session::send_body(net::Piece piece) {
  if (send_failed_) return true;  // the response decides now
  if (chunked_request_ && !tunnel_) {
    http::ChunkLine line(piece.size(), first_chunk_);
    first_chunk_ = false;
    if (!stream_.send_copy(line.text(), *arena_)) return false;
  }
  return stream_.send_piece(std::move(piece), *arena_);
}

bool H1Session::send_end(const http::FieldList* trailers) {
  if (send_failed_) return true;
  if (tunnel_) {
    stream_.finish_sending();
    return true;
  }
  if (!chunked_request_) return true;
  std::string_view last = first_chunk_ ? "0\r\n" : "\r\n0\r\n";
  if (trailers == nullptr || trailers->empty()) {
    return stream_.send_view(first_chunk_ ? "0\r\n\r\n" : "\r\n0\r\n\r\n", *arena_);
  }
  http::HeadWriter writer(*arena_, 256);
  writer.append(last);
  for (const http::Field& field : *trailers) {
    if (!field.hop_by_hop) writer.field(field.name, field.value);
  }
  std::string_view bytes = writer.finish();
  return bytes.data() != nullptr && stream_.send_view(bytes);
}

void H1Session::enter_tunnel() {
  tunnel_ = true;
  reading_ = Reading::tunnel;
}

void H1Session::on_sent() {
  if (handler_ != nullptr) handler_->on_request_progress();
}

// ---- the response

void H1Session::on_received(ring::Lease lease) {
  if (state_ != State::busy || handler_ == nullptr) return close(false);  // nobody asked
  std::uint32_t epoch = epoch_;
  bool more = true;
  while (more && epoch == epoch_ && !lease.empty()) {
    switch (reading_) {
      case Reading::head:
        more = read_head(lease);
        break;
      case Reading::body_length:
        more = read_length(lease);
        break;
      case Reading::body_chunked:
        more = read_chunks(lease);
        break;
      case Reading::trailers:
        more = read_trailers(lease);
        break;
      case Reading::body_until_close:
      case Reading::tunnel:
        deliver(std::move(lease));
        return;
      case Reading::nothing:
        // Bytes behind a complete response: this connection is out of step.
        reusable_ = false;
        return;
    }
    if (epoch == epoch_ && reading_ == Reading::nothing) {
      return response_complete(!lease.empty());
    }
  }
}

std::uint64_t H1Session::opaque_bytes() {
  if (state_ != State::busy || handler_ == nullptr) return 0;
  if (!handler_->takes_pipes()) return 0;
  switch (reading_) {
    case Reading::body_length:
      return body_left_;
    case Reading::body_chunked:
      return chunks_->chunk_remaining();
    case Reading::body_until_close:
    case Reading::tunnel:
      return ~std::uint64_t{0};
    default:
      return 0;
  }
}

void H1Session::on_piped(net::PipeBytes bytes) {
  std::uint32_t size = bytes.size();
  if (reading_ == Reading::body_length) {
    body_left_ -= size;
    if (body_left_ == 0) reading_ = Reading::nothing;
  } else if (reading_ == Reading::body_chunked) {
    chunks_->skip(size);
  }
  if (deliver(std::move(bytes)) && reading_ == Reading::nothing) response_complete(false);
}

// True when the parser is done; otherwise more is to come, or the exchange was told of the failure.
template <typename Parser>
bool H1Session::parse(Parser& parser, ring::Lease& lease) {
  http::Gather::Fed fed = gather_.feed(parser, *arena_, lease.bytes());
  if (fed.out_of_memory) {
    fail({ErrorCode::no_memory});
    return false;
  }
  if (fed.state == ParseState::failed) {
    fail_message(parser.fault().reason);
    return false;
  }
  lease.remove_prefix(fed.used);
  return fed.state == ParseState::done;
}

bool H1Session::read_head(ring::Lease& lease) {
  if (parser_ == nullptr) {
    void* place = arena_->allocate(sizeof(http::ResponseParser), alignof(http::ResponseParser));
    if (place == nullptr) {
      fail({ErrorCode::no_memory});
      return false;
    }
    parser_ = new (place) http::ResponseParser(*arena_, pools_.options_.limits, method_);
  }
  return parse(*parser_, lease) && head_complete();
}

bool H1Session::head_complete() {
  http::ResponseHead& head = parser_->head();
  if (!head.interim()) {
    reusable_ = reusable_ && head.keep_alive;
    body_left_ = head.framing.length;
    switch (head.framing.kind) {
      case http::Framing::Kind::none:
        reading_ = Reading::nothing;
        break;
      case http::Framing::Kind::length:
        reading_ = body_left_ == 0 ? Reading::nothing : Reading::body_length;
        break;
      case http::Framing::Kind::chunked: {
        void* place = arena_->allocate(sizeof(http::ChunkedDecoder), alignof(http::ChunkedDecoder));
        if (place == nullptr) {
          fail({ErrorCode::no_memory});
          return false;
        }
        chunks_ = new (place) http::ChunkedDecoder;
        reading_ = Reading::body_chunked;
        break;
      }
      case http::Framing::Kind::until_close:
        reading_ = Reading::body_until_close;
        reusable_ = false;
        break;
    }
  }
  if (head.status == 101) {
    reading_ = Reading::tunnel;  // if the exchange agrees
    reusable_ = false;
  }
  std::uint32_t epoch = epoch_;
  http::ResponseParser* parsed = parser_;
  parser_ = nullptr;
  handler_->on_response_head(parsed->head());
  return epoch == epoch_;
}

bool H1Session::deliver(net::Piece piece) {
  std::uint32_t epoch = epoch_;
  handler_->on_response_body(std::move(piece));
  return epoch == epoch_;
}

bool H1Session::read_length(ring::Lease& lease) {
  std::size_t bytes = static_cast<std::size_t>(std::min<std::uint64_t>(lease.size(), body_left_));
  ring::Lease piece = lease.share(0, bytes);
  lease.remove_prefix(bytes);
  body_left_ -= bytes;
  if (body_left_ == 0) reading_ = Reading::nothing;
  return deliver(std::move(piece));
}

bool H1Session::read_chunks(ring::Lease& lease) {
  http::ChunkedDecoder::Step step = chunks_->next(lease.bytes());
  ring::Lease piece;
  if (!step.piece.empty()) {
    piece =
        lease.share(static_cast<std::size_t>(step.piece.data() - lease.data()), step.piece.size());
  }
  lease.remove_prefix(step.consumed);
  switch (step.event) {
    case http::ChunkedDecoder::Event::need_more:
      return false;
    case http::ChunkedDecoder::Event::data:
      return deliver(std::move(piece));
    case http::ChunkedDecoder::Event::failed:
      fail_message(chunks_->fault());
      return false;
    case http::ChunkedDecoder::Event::last_chunk: {
      void* place = arena_->allocate(sizeof(http::TrailerParser), alignof(http::TrailerParser));
      if (place == nullptr) {
        fail({ErrorCode::no_memory});
        return false;
      }
      trailers_ = new (place) http::TrailerParser(*arena_, pools_.options_.limits);
      reading_ = Reading::trailers;
      return true;
    }
  }
  return false;
}

bool H1Session::read_trailers(ring::Lease& lease) {
  if (!parse(*trailers_, lease)) return false;
  reading_ = Reading::nothing;
  return true;
}

void H1Session::response_complete(bool bytes_left) {
  if (bytes_left) reusable_ = false;
  handler_->on_response_end(trailers_ == nullptr ? nullptr : &trailers_->fields());
}

void H1Session::on_end_of_stream() {
  if (state_ == State::idle || handler_ == nullptr) return close(false);
  reusable_ = false;
  // The send took the connection's error, and the receive sees an end without one: that is no FIN,
  // so it must not end a body. (After a FIN the error is EPIPE.)
  if (reading_ == Reading::body_until_close && send_reset_) {
    return fail({ErrorCode::reset, Origin::upstream});
  }
  if (reading_ == Reading::body_until_close || reading_ == Reading::tunnel) {
    reading_ = Reading::nothing;
    handler_->on_response_end(nullptr);
    return;
  }
  if (reading_ == Reading::nothing) return;  // the response is whole already
  fail({ErrorCode::closed, Origin::upstream});
}

void H1Session::on_failed(const Error& error, Direction direction) {
  // The server goes on under a key that cannot be had: that is no end of a body.
  const bool unreadable = error.code == ErrorCode::unsupported && tls_ != nullptr;
  // Servers close idle connections without a word; only a handshake is worth one.
  const bool noted = state_ == State::connecting || (state_ != State::idle && handler_ != nullptr);
  if (noted && (error.code == ErrorCode::insecure || unreadable)) log_insecure();
  if (state_ == State::connecting) {
    Error failed = error;
    failed.origin = Origin::upstream;
    failed.retry = Retry::yes;
    fail_waiter(failed);
    return;
  }
  reusable_ = false;
  if (handler_ == nullptr) return close(false);
  if (direction == Direction::send) send_failed_ = true;
  if (direction == Direction::send && error.sys_errno == ECONNRESET) send_reset_ = true;
  // The server may have answered before it closed: what it sent decides, until nothing more can
  // come.
  bool response_may_come = direction == Direction::send && !tunnel_ && !stream_.ended();
  if (response_may_come || reading_ == Reading::nothing) {
    send_failed_ = true;
    return handler_->on_request_progress();
  }
  fail(unreadable ? Error{ErrorCode::insecure} : error);
}

void H1Session::log_insecure() {
  pools_.logger_.log(
      base::LogLevel::warn, "tls",
      "server " + server_.shared->config().endpoint.text + ": " + tls_->failure_text());
}

void H1Session::fail(Error error) {
  if (error.origin == Origin::self && error.code != ErrorCode::no_memory) {
    error.origin = Origin::upstream;
  }
  bool answered = reading_ != Reading::head || gather_.started();
  // A send in flight may have reached the server though its completion has not come.
  if (stream_.bytes_sent() == sent_before_ && !stream_.sending()) {
    error.retry = Retry::yes;
  } else {
    error.retry = reused() && !answered ? Retry::reused_only : Retry::no;
  }
  ResponseHandler* handler = handler_;
  close(false);
  if (handler != nullptr) handler->on_upstream_failed(error);
}

void H1Session::fail_message(std::string_view reason) {
  pools_.logger_.log(base::LogLevel::warn, "upstream", reason);
  ResponseHandler* handler = handler_;
  close(false);
  if (handler != nullptr) {
    handler->on_upstream_failed({ErrorCode::bad_message, Origin::upstream, Retry::no});
  }
}

void H1Session::detach_handler() {
  handler_ = nullptr;
  arena_ = nullptr;
  parser_ = nullptr;
  chunks_ = nullptr;
  trailers_ = nullptr;
  gather_.reset();
  ++epoch_;
}

void H1Session::finish() {
  bool reuse = reusable_ && !send_failed_ && stream_.idle();
  detach_handler();
  reading_ = Reading::nothing;
  if (!reuse) return close(false);
  pools_.became_idle(*this);
}

void H1Session::abandon() {
  close(false);
}

}  // namespace ringside::upstream
