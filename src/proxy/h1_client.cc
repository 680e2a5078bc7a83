#include "h1_client.h"

#include <utility>

#include "h2_client.h"

namespace ringside::proxy {

using base::Error;
using base::ErrorCode;

H1Client::H1Client(Context& context, std::uint32_t listen)
    : ClientTransport(context, listen, *this),
      input_(context.streams.slices),
      timer_(&H1Client::timed_out, this) {}

bool H1Client::adopt(int fd, const net::Address* peer, AddressPlace place) {
  if (!adopt_socket(fd, peer, std::move(place))) return false;
  arm(timeouts().client_header_ms);
  tls_ == nullptr ? stream_.receive_once() : stream_.resume();
  return true;
}

void H1Client::on_secured() {
  note_security();
  const config::Listen& listen = context_.runtime->snapshot().listens[facts_.listen];
  decided_ = true;
  if (chosen_protocol() == "h2" || !listen.http1) become_h2();
}

// A request that waited goes on as any other.
void H1Client::on_confirmed() {
  if (input_.empty()) early_input_ = false;
  if (!std::exchange(waits_, false) || reading_ != Reading::head) return;
  take_head();
  schedule_read();
}

// The handshake failed, or the records. What the layer has to say of it still leaves.
void H1Client::on_insecure() {
  if (lingering_ || stream_.ended()) return close(false);
  log_insecure();
  linger();
}

// The client goes on under a key that cannot be had. What it has asked for whole it gets, as one
// that has closed its half; a tunnel is not ended by it.
void H1Client::on_unreadable() {
  log_insecure();
  unread_ = true;
  on_end_of_stream();
}

void H1Client::arm(base::Millis delay_ms) {
  if (delay_ms == 0) return context_.ring.timers().disarm(timer_);
  context_.ring.timers().arm(timer_, delay_ms);
}

// ---- output

http::HeadWriter H1Client::start_head(std::uint16_t status, std::string_view reason) {
  http::HeadWriter head(exchange_->arena(), 1024);
  head.status_line(status, reason);
  return head;
}

bool H1Client::send_head(http::HeadWriter& head, const ResponseFraming& framing) {
  if (framing.body.kind == http::Framing::Kind::length) {
    head.field("Content-Length", framing.body.length);
  } else if (framing.body.kind == http::Framing::Kind::chunked) {
    chunked_response_ = true;
    head.field("Transfer-Encoding", "chunked");
  } else if (framing.tell_length) {
    head.field("Content-Length", framing.length);
  }
  if (framing.upgrade) {
    head.field("Connection", "Upgrade");
    head.field("Upgrade", framing.upgrade_value);
  } else if (!framing.interim && !framing.keep_alive) {
    head.field("Connection", "close");
  } else if (!framing.interim && parser_ != nullptr &&
             parser_->head().version == http::Version::http10) {
    head.field("Connection", "keep-alive");
  }
  std::string_view bytes = head.finish();
  return bytes.data() != nullptr && stream_.send_view(bytes);
}

bool H1Client::send_body(net::Piece piece) {
  if (chunked_response_ && !tunnel_) {
    http::ChunkLine line(piece.size(), first_chunk_);
    first_chunk_ = false;
    if (!stream_.send_copy(line.text(), exchange_->arena())) return false;
  }
  return stream_.send_piece(std::move(piece), exchange_->arena());
}

bool H1Client::send_body_view(std::string_view bytes) {
  return stream_.send_view(bytes, exchange_->arena());
}

bool H1Client::send_end(const http::FieldList* trailers) {
  if (tunnel_) {
    stream_.finish_sending();
    return true;
  }
  if (!chunked_response_) return true;
  if (trailers == nullptr || trailers->empty()) {
    return stream_.send_view(first_chunk_ ? "0\r\n\r\n" : "\r\n0\r\n\r\n", exchange_->arena());
  }
  http::HeadWriter writer(exchange_->arena(), 256);
  writer.append(first_chunk_ ? "0\r\n" : "\r\n0\r\n");
  for (const http::Field& field : *trailers) {
    if (!field.hop_by_hop) writer.field(field.name, field.value);
  }
  std::string_view bytes = writer.finish();
  return bytes.data() != nullptr && stream_.send_view(bytes);
}

void H1Client::end_with_response() {
  if (client_closes_ && !tunnel_ && input_.empty()) stream_.close_after_sending();
}

void H1Client::on_sent() {
  if (exchange_ != nullptr) return exchange_->on_client_progress();
  if (lingering_ && ended_) end_lingering();
}

// ---- between requests, and the end

void H1Client::exchange_over(Afterwards afterwards) {
  Exchange* exchange = std::exchange(exchange_, nullptr);
  stream_.keep_until_closed(exchange->arena());
  // A send that is cancelled now may still read the configured body.
  if (stream_.pending_bytes() != 0) context_.exchange_began(*(kept_ = &exchange->runtime()));
  context_.exchanges.destroy(exchange);
  parser_ = nullptr;
  chunks_ = nullptr;
  trailers_ = nullptr;
  gather_.reset();
  waits_ = false;
  switch (afterwards) {
    case Afterwards::cut:
      stream_.end_unannounced();
      [[fallthrough]];
    case Afterwards::close:
      // Who has sent a last request whole sends nothing more that could be left unread; but the
      // end of TLS is a record, as is the close_notify that we owe.
      if (client_closes_ && reading_ == Reading::complete && input_.empty() && stream_.drained() &&
          tls_ == nullptr)
        return close(false);
      if (stream_.ends_itself()) return close(false);
      [[fallthrough]];
    case Afterwards::linger:
      return stopping_ || (tunnel_ && tls_ == nullptr) ? close(false) : linger();
    case Afterwards::reset:
      return close(true);
    case Afterwards::keep:
      break;
  }
  if (stream_.closing()) return;
  reading_ = Reading::head;
  arm(idle_time_.begin(timeouts().keep_alive_ms, tls_ != nullptr));
  read_input();
}

// Closing with unread bytes would make the kernel send RST, and that may overtake our last answer
// (RFC 9112 §9.6): send FIN, read on for a while, then close.
void H1Client::linger() {
  if (ended_ && tls_ == nullptr) return close(false);
  lingering_ = true;
  idle_time_.forget();
  reading_ = Reading::dropped;
  input_.clear();
  stream_.finish_sending();
  stream_.resume();
  lingered_bytes_ = bytes_delivered();
  arm(linger_ms());
}

// A client that reads slowly, but reads, gets what TLS has to say at the end: without it a body
// that lasts until then would look cut.
bool H1Client::lingers_on() {
  if (tls_ == nullptr || stream_.finished()) return false;
  return bytes_delivered() != std::exchange(lingered_bytes_, bytes_delivered());
}

// The client has ended. What TLS has to say at our end needs room in the socket; without it a body
// that lasts until the end would look cut. What it sends unread would reset it.
void H1Client::end_lingering() {
  if (unread_) return;
  if (tls_ == nullptr || stream_.finished()) close(false);
}

void H1Client::drain(base::Millis grace_ms) {
  if (h2_ != nullptr) return h2_->drain(grace_ms);
  last_request_ = true;
  idle_time_.forget();
  if (exchange_ == nullptr && !lingering_ && !stream_.closing()) arm(grace_ms);
}

void H1Client::shut_down() {
  if (h2_ != nullptr) return h2_->shut_down();
  stopping_ = true;
  reading_ = Reading::dropped;
  input_.clear();
  arm(0);
  if (exchange_ != nullptr) return exchange_->on_shutdown();
  close(true);
}

void H1Client::timed_out(void* self) {
  static_cast<H1Client*>(self)->on_timeout();
}

void H1Client::on_timeout() {
  if (exchange_ == nullptr) return idle_timeout();
  if (reading_ == Reading::complete) {
    watched_ = true;
    return balance_input();
  }
  if (reading_ != Reading::head) return;
  reading_ = Reading::dropped;
  input_.clear();
  exchange_->on_head_timeout();
}

void H1Client::idle_timeout() {
  if (const base::Millis left = idle_time_.go_on(); left != 0) {
    stream_.rest();
    return arm(left);
  }
  if (handshaking() && !lingering_) log_tls("handshake: not over in time");
  // A request that is on its way now would make the kernel reset the connection, and what the
  // client has not got yet would be lost.
  if (lingering_ && lingers_on()) return arm(linger_ms());
  if (lingering_ || bytes_delivered() == stream_.bytes_sent()) return close(false);
  linger();
}

void H1Client::close(bool reset) {
  context_.ring.timers().disarm(timer_);
  ring::Deferred::unlink();
  reading_ = Reading::dropped;
  input_.clear();
  stream_.close(reset);
}

void H1Client::closed() {
  base::ListHook<H1Client>::unlink();
  if (kept_ != nullptr) context_.exchange_ended(*kept_);
  context_.clients.destroy(this);  // destroys this
}

}  // namespace ringside::proxy
