#include "h2_stream.h"

#include <cassert>
#include <utility>

#include "h2_session.h"

namespace ringside::upstream {

using base::Error;
using base::ErrorCode;
using base::Origin;
using base::Retry;
using http::H2Code;

namespace {
// What a parked response may cost here, in windows: of tiny pieces the bytes are the least.
constexpr std::size_t cost_factor = 8;
}  // namespace

H2Stream::H2Stream(H2Session& session, bool reused)
    : session_(session), input_(session.slices()), output_(session.slices()), reused_(reused) {}

SharedServer& H2Stream::server() {
  return session_.server();
}

// ---- the request

void H2Stream::begin(ResponseHandler& handler, base::Arena& arena, http::Method method) {
  handler_ = &handler;
  arena_ = &arena;
  method_ = method;
}

http::HeadWriter H2Stream::start_head(const RequestLine& line) {
  line_ = line;
  return {*arena_, 1024};
}

bool H2Stream::send_head(http::HeadWriter& head, const RequestFraming& framing) {
  using Kind = http::Framing::Kind;
  whole_ = framing.body.kind == Kind::none ||
           (framing.body.kind == Kind::length && framing.body.length == 0);
  if (framing.body.kind == Kind::length) head.field("content-length", framing.body.length);
  if (framing.expect_continue) head.field("expect", "100-continue");
  if (framing.te_trailers) head.field("te", "trailers");
  const std::string_view text = head.finish();
  if (text.data() == nullptr) return false;
  last_queued_ = whole_;
  session_.schedule();
  const http::H2RequestLine line{.method = line_.method,
                                 .scheme = session_.scheme(),
                                 .authority = line_.host,
                                 .path = line_.target};
  // It lies in the exchange's arena, and nobody else has it.
  return session_.frames().send_head(*this, *arena_, method_, line,
                                     {const_cast<char*>(text.data()), text.size()}, whole_);
}

bool H2Stream::send_body(net::Piece piece) {
  if (refused_) return true;  // the response decides now
  if (piece.piped() || !output_.push(std::move(piece))) return false;
  session_.schedule();
  return session_.frames().resume(*this);
}

bool H2Stream::send_end(const http::FieldList* trailers) {
  if (refused_ || last_queued_) return true;
  if (trailers != nullptr && !session_.frames().send_trailers(*this, *trailers)) return false;
  last_queued_ = true;
  session_.schedule();
  return session_.frames().resume(*this);
}

bool H2Stream::write(std::size_t bytes) {
  return session_.output().move(output_, bytes);
}

void H2Stream::on_framed(std::size_t bytes, bool written) {
  const std::uint64_t position = session_.output().position();
  if (head_at_ == 0) head_at_ = position;
  framed_at_ = position + (written ? 0 : bytes);
  session_.framed(*this);
}

bool H2Stream::on_sent() {
  if (handler_ != nullptr) handler_->on_request_progress();
  return framed_at_ > session_.output().position_sent();
}

// Of what is on its way, what other streams sent before may count too: it must leave first.
std::size_t H2Stream::request_pending() const {
  if (refused_) return 0;
  const std::uint64_t sent = session_.output().position_sent();
  const std::size_t moving = framed_at_ > sent ? static_cast<std::size_t>(framed_at_ - sent) : 0;
  const bool due = !closed() && (head_due() || (last_queued_ && !request_ended()));
  return output_.cost() + moving + (due ? 1 : 0);
}

// No request of ours asks for one.
void H2Stream::enter_tunnel() {
  assert(false && "an upgrade in HTTP/2");
}

// ---- the response

void H2Stream::on_head(http::ResponseHead& head) {
  if (handler_ != nullptr) handler_->on_response_head(head);
}

void H2Stream::on_body(ring::Lease piece) {
  if (handler_ == nullptr) return session_.frames().consume(*this, piece.size());
  if (!parked_ && input_.empty()) return give(std::move(piece));
  if (!input_.push(net::Piece(std::move(piece)))) return fail({ErrorCode::no_memory});
  if (input_.cost() > cost_factor * session_.window_bytes())
    fail({ErrorCode::too_large, Origin::upstream});
}

void H2Stream::give(ring::Lease piece) {
  session_.frames().consume(*this, piece.size());
  session_.schedule();  // the window may have to be told
  handler_->on_response_body(std::move(piece));
}

void H2Stream::on_end(http::FieldList* trailers) {
  end_waits_ = true;
  trailers_ = trailers;
  if (input_.empty()) read_input();
}

void H2Stream::resume() {
  parked_ = false;
  if (!input_.empty() || end_waits_) session_.wants(*this);
}

void H2Stream::read_input() {
  while (handler_ != nullptr && !parked_ && !input_.empty()) {
    net::Slice* slice = input_.take_front();
    ring::Lease piece = std::move(slice->lease);
    input_.pool().destroy(slice);
    give(std::move(piece));
  }
  if (handler_ != nullptr && !parked_ && input_.empty() && std::exchange(end_waits_, false))
    handler_->on_response_end(trailers_);
}

// ---- the end

void H2Stream::refuse_rest() {
  if (refused_ || request_ended()) return;
  refused_ = true;
  output_.clear();
  if (handler_ != nullptr) handler_->on_request_progress();
}

void H2Stream::on_closed(H2Code code) {
  if (response_ended()) return refuse_rest();
  Error error{ErrorCode::reset, Origin::upstream, Retry::no};
  if (code == H2Code::refused_stream) error = {ErrorCode::refused, Origin::upstream, Retry::yes};
  fail(error);
}

void H2Stream::on_lost(const Error& error, std::uint64_t sent) {
  // A response that is whole goes on to the client.
  if (response_ended()) return refuse_rest();
  Error lost = error;
  lost.origin = error.code == ErrorCode::no_memory ? Origin::self : Origin::upstream;
  if (!request_begun() || head_at_ >= sent) {
    lost.retry = Retry::yes;
  } else {
    lost.retry = reused_ && !response_begun() ? Retry::reused_only : Retry::no;
  }
  fail(lost);
}

void H2Stream::fail(const Error& error) {
  ResponseHandler* handler = handler_;
  let_go();
  if (handler != nullptr) handler->on_upstream_failed(error);
}

// A stream that is not closed is of no use to anybody (RFC 9113 §8.7: CANCEL).
void H2Stream::let_go() {
  if (std::exchange(retired_, true)) return;
  handler_ = nullptr;
  if (!closed()) session_.frames().reset(*this, H2Code::cancel);
  session_.frames().forget(*this);
  input_.clear();
  output_.clear();
  arena_ = nullptr;
  session_.retire(*this);
}

}  // namespace ringside::upstream
