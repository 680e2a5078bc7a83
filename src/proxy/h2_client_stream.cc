#include "h2_client_stream.h"

#include <algorithm>
#include <span>
#include <utility>

#include "ringside/http/websocket.h"

#include "h2_client.h"

namespace ringside::proxy {

using base::ErrorCode;
using http::H2Code;

namespace {
std::size_t cost_of(std::size_t bytes) {
  return bytes + sizeof(net::Slice);
}
}  // namespace

H2ClientStream::H2ClientStream(Context& context, H2Client& client)
    : context_(context),
      client_(client),
      input_(context.streams.slices),
      output_(context.streams.slices) {}

bool H2ClientStream::begin(const ClientFacts& facts) {
  exchange_ = context_.exchanges.create(context_, *this, facts);
  if (exchange_ == nullptr) return false;
  keep_in(exchange_->arena());
  return true;
}

// ---- the request

void H2ClientStream::on_head(http::RequestHead& head) {
  if (head.websocket && !add_websocket_key(head)) return on_lost({ErrorCode::no_memory});
  head_whole_ = true;
  exchange_->on_head(head);
}

// The server will prove by it that it speaks WebSocket (RFC 6455 §4.2.2); the exchange looks.
bool H2ClientStream::add_websocket_key(http::RequestHead& head) {
  std::uint8_t nonce[http::websocket_nonce_bytes];
  context_.ids.fill(nonce);
  const auto key = http::websocket_key(nonce);
  const std::string_view kept = exchange_->arena().copy({key.data(), key.size()});
  if (kept.data() == nullptr) return false;
  return head.fields.add(exchange_->arena(), {.name = http::websocket_key_name, .value = kept});
}

void H2ClientStream::on_body(ring::Lease piece) {
  if (lost_) return client_.frames().consume(*this, piece.size());
  if (wanted_ && input_.empty()) return give(std::move(piece));
  const std::size_t bytes = piece.size();
  if (!input_.push(net::Piece(std::move(piece)))) {
    client_.frames().consume(*this, bytes);
    return on_lost({ErrorCode::no_memory});
  }
  client_.note_input(cost_of(bytes));
}

void H2ClientStream::give(ring::Lease piece) {
  client_.frames().consume(*this, piece.size());
  exchange_->on_request_body(std::move(piece));
}

void H2ClientStream::on_end(http::FieldList* trailers) {
  end_waits_ = true;
  trailers_ = trailers;
  if (input_.empty()) read_input();
}

void H2ClientStream::read_input() {
  while (wanted_ && !lost_ && !input_.empty()) {
    net::Slice* slice = input_.take_front();
    ring::Lease piece = std::move(slice->lease);
    input_.pool().destroy(slice);
    client_.note_read(cost_of(piece.size()));
    give(std::move(piece));
  }
  if (wanted_ && !lost_ && input_.empty() && std::exchange(end_waits_, false))
    exchange_->on_request_end(trailers_);
}

void H2ClientStream::want_body() {
  wanted_ = true;
  if (!input_.empty() || end_waits_) client_.wants_body(*this);
}

// A malformed request is reset (RFC 9113 §8.1.1); one that is too large gets its answer.
void H2ClientStream::on_bad(const http::ParseFault& fault) {
  if (lost_) return;
  if (fault.status == 400 || head_whole_) {
    client_.frames().reset(
        *this, fault.status == 400 ? H2Code::protocol_error : H2Code::enhance_your_calm);
    client_.schedule();
    return on_lost({fault.status == 400 ? ErrorCode::bad_message : ErrorCode::too_large});
  }
  exchange_->on_bad_head(fault);
}

void H2ClientStream::on_lost(const base::Error& error) {
  if (lost_) return;
  // All of it has left: the end of this turn is that of the exchange.
  if (response_ended() && request_ended() && response_pending() == 0) return;
  base::Error lost = error;
  lost.origin = base::Origin::client;
  exchange_->on_client_lost(lost);
  lost_ = true;
}

// ---- the response

http::HeadWriter H2ClientStream::start_head(std::uint16_t status, std::string_view reason) {
  status_ = status;
  http::HeadWriter head(exchange_->arena(), 1024);
  head.status_line(status, reason);
  return head;
}

bool H2ClientStream::send_head(http::HeadWriter& head, const ResponseFraming& framing) {
  using Kind = http::Framing::Kind;
  const bool empty = !framing.upgrade && !framing.end_follows &&
                     (framing.body.kind == Kind::none ||
                      (framing.body.kind == Kind::length && framing.body.length == 0));
  if (framing.body.kind == Kind::length) {
    head.field("content-length", framing.body.length);
    length_known_ = !framing.end_follows;
    body_left_ = framing.body.length;
  } else if (framing.tell_length) {
    head.field("content-length", framing.length);
  }
  const std::string_view text = head.finish();
  if (text.data() == nullptr) return false;
  using Head = http::H2Connection::Head;
  const Head kind = framing.interim ? Head::interim : empty ? Head::whole : Head::followed;
  if (!framing.interim) {
    head_given_ = true;
    last_queued_ = empty;
  }
  client_.schedule();
  // It lies in the exchange's arena, and nobody else has it.
  return client_.frames().send_head(*this, status_, {const_cast<char*>(text.data()), text.size()},
                                    kind);
}

bool H2ClientStream::body_queued(std::size_t bytes) {
  if (length_known_) {
    body_left_ -= std::min<std::uint64_t>(body_left_, bytes);
    last_queued_ = body_left_ == 0;
  }
  client_.schedule();
  return client_.frames().resume(*this);
}

bool H2ClientStream::send_body(net::Piece piece) {
  const std::size_t bytes = piece.size();
  return output_.push(std::move(piece)) && body_queued(bytes);
}

bool H2ClientStream::send_body_view(std::string_view bytes) {
  if (bytes.empty()) return true;
  return output_.push_view(bytes) && body_queued(bytes.size());
}

bool H2ClientStream::send_end(const http::FieldList* trailers) {
  if (trailers != nullptr && !client_.frames().send_trailers(*this, *trailers)) return false;
  last_queued_ = true;
  client_.schedule();
  return client_.frames().resume(*this);
}

http::H2Handler::Ready H2ClientStream::ready() const {
  return {.bytes = output_.bytes(), .last = last_queued_};
}

bool H2ClientStream::write(std::size_t bytes) {
  return client_.output().move(output_, bytes);
}

void H2ClientStream::on_framed(std::size_t bytes) {
  bytes_framed_ += bytes;
  framed_at_ = client_.output().position();
  client_.framed(*this);
}

bool H2ClientStream::on_sent() {
  if (!lost_) exchange_->on_client_progress();
  return framed_at_ > client_.output().position_sent();
}

// Of what is on its way, what other streams sent before may count too: it must leave first.
std::size_t H2ClientStream::response_pending() const {
  if (lost_) return 0;
  const std::uint64_t sent = client_.output().position_sent();
  const std::size_t moving = framed_at_ > sent ? static_cast<std::size_t>(framed_at_ - sent) : 0;
  const bool due = !closed() && (head_due() || (head_given_ && last_queued_ && !response_ended()));
  return output_.cost() + moving + (due ? 1 : 0);
}

std::uint64_t H2ClientStream::bytes_delivered() const {
  const std::uint64_t delivered = client_.bytes_delivered();
  const std::uint64_t owed = framed_at_ > delivered ? framed_at_ - delivered : 0;
  return bytes_framed_ - std::min(bytes_framed_, owed);
}

// Of a WebSocket: DATA frames in both directions, whose ends are those of a connection (RFC 8441
// §5).
void H2ClientStream::enter_tunnel() {
  tunnel_ = true;
}

// ---- the end

void H2ClientStream::end_frames(Afterwards afterwards) {
  if (!closed()) {
    H2Code code = H2Code::no_error;  // it is complete, and the rest of the request is not wanted
    if (!response_ended())
      code = tunnel_ || afterwards == Afterwards::reset ? H2Code::cancel : H2Code::internal_error;
    client_.frames().reset(*this, code);
  }
  if (input_.bytes() != 0) client_.frames().consume(*this, input_.bytes());
  while (!input_.empty()) {
    client_.note_read(cost_of(input_.front()->size));
    input_.consume(input_.front()->size);
  }
  client_.frames().forget(*this);
}

void H2ClientStream::exchange_over(Afterwards afterwards) {
  context_.exchanges.destroy(std::exchange(exchange_, nullptr));
  output_.clear();
  end_frames(afterwards);
  client_.stream_over(*this);  // destroys this
}

}  // namespace ringside::proxy
