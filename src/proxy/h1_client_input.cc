// An HTTP/1 client connection: what it receives.
#include <algorithm>
#include <new>
#include <utility>

#include "early_request.h"
#include "h1_client.h"
#include "h2_client.h"

namespace ringside::proxy {

using base::Error;
using base::ErrorCode;
using http::ParseState;

namespace {
// Bodies from this size on are received one buffer a turn.
constexpr std::uint64_t bulk_bytes_min = 64 * 1024;
// A client that said that it sends nothing more is not listened to for so long. Most answers come
// sooner, and a receive would only be there to be cancelled.
constexpr base::Millis unwatched_ms = 10;
constexpr http::HeadLimits trailer_limits{
    .line_bytes_max = 8192, .head_bytes_max = 16384, .fields_max = 64};

// Of HTTP/2 (RFC 9113 §3.4).
enum class Preface : std::uint8_t { other, part, whole };

Preface match_preface(net::SliceQueue& input) {
  std::string_view left = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  for (const net::Slice* at = input.front(); at != nullptr && !left.empty(); at = at->next) {
    const std::size_t bytes = std::min<std::size_t>(at->size, left.size());
    if (!left.starts_with(std::string_view(at->data, bytes))) return Preface::other;
    left.remove_prefix(bytes);
  }
  return left.empty() ? Preface::whole : Preface::part;
}
}  // namespace

void H1Client::on_received(ring::Lease lease) {
  if (reading_ == Reading::dropped) return;
  early_input_ |= stream_.early();
  if (!input_.push(std::move(lease))) {
    if (exchange_ != nullptr) return exchange_->on_client_lost({ErrorCode::no_memory});
    return close(false);
  }
  read_input();
}

std::uint64_t H1Client::opaque_bytes() {
  if (!wanted_ || !input_.empty() || exchange_ == nullptr) return 0;
  if (!exchange_->request_takes_pipes()) return 0;
  switch (reading_) {
    case Reading::body_length:
      return body_left_;
    case Reading::body_chunked:
      return chunks_->chunk_remaining();
    case Reading::tunnel:
      return ~std::uint64_t{0};
    default:
      return 0;
  }
}

void H1Client::on_piped(net::PipeBytes bytes) {
  std::uint32_t size = bytes.size();
  if (reading_ == Reading::body_length) {
    body_left_ -= size;
  } else if (reading_ == Reading::body_chunked) {
    chunks_->skip(size);
  }
  exchange_->on_request_body(std::move(bytes));
  if (reading_ == Reading::body_length && body_left_ == 0) request_complete(nullptr);
}

void H1Client::on_end_of_stream() {
  ended_ = true;
  read_input();
}

void H1Client::schedule_read() {
  if (!reading_now_ && !ring::Deferred::linked()) context_.ring.defer(*this);
}

void H1Client::run_deferred() {
  read_input();
}

void H1Client::read_input() {
  if (reading_now_ || stream_.closing()) return;
  reading_now_ = true;
  while (!input_.empty() && read_some()) {
  }
  reading_now_ = false;
  if (input_.empty() && !stream_.early()) early_input_ = false;
  if (h2_ != nullptr) return;
  if (ended_ && input_.empty()) end_of_input();
  balance_input();
}

bool H1Client::read_some() {
  switch (reading_) {
    case Reading::head:
      return !waits_ && read_head();
    case Reading::body_length:
      return read_length();
    case Reading::body_chunked:
      return read_chunks();
    case Reading::trailers:
      return read_trailers();
    case Reading::tunnel:
      return read_tunnel();
    case Reading::complete:
      return false;
    case Reading::dropped:
      input_.clear();
      return false;
  }
  return false;
}

// Stops the client when what waits here reaches the limit; lets it go on when half of that is read.
void H1Client::balance_input() {
  if (input_.empty() && !stream_.parked()) return;
  input_.hold_last();
  if (stream_.closing() || ended_) return;
  // The end of the handshake is behind it; early data has a limit of its own.
  if (waits_) return;
  if (unwatched()) return arm(unwatched_ms);
  std::size_t limit = context_.buffered_max(context_.runtime->snapshot().limits);
  if (!stream_.parked() && input_.cost() >= limit) {
    stream_.park();
  } else if (stream_.parked() && !held_ && input_.cost() < limit / 2) {
    stream_.resume();
  }
}

// After the first receive, which leaves the stream parked. A body may have a line end behind it,
// whatever the client said (RFC 9112 §2.2): only a request without one is known to be all.
bool H1Client::unwatched() const {
  return !watched_ && stream_.parked() && reading_ == Reading::complete && client_closes_ &&
         exchange_ != nullptr && parser_->head().framing.kind == http::Framing::Kind::none &&
         input_.empty();
}

template <typename T, typename... Args>
T* H1Client::make(Args&&... args) {
  void* place = exchange_->arena().allocate(sizeof(T), alignof(T));
  if (place == nullptr) {
    reading_ = Reading::dropped;
    exchange_->on_client_lost({ErrorCode::no_memory});
    return nullptr;
  }
  return new (place) T(std::forward<Args>(args)...);
}

// Prior knowledge (RFC 9113 §3.3): the client just begins. False: more of its bytes are needed, or
// it is not ours any more.
bool H1Client::decide() {
  const config::Listen& listen = context_.runtime->snapshot().listens[facts_.listen];
  const Preface preface = listen.http2 ? match_preface(input_) : Preface::other;
  if (preface == Preface::part && ended_ && !listen.http1) close(false);
  if (preface == Preface::part && (!ended_ || !listen.http1)) return false;
  if (preface == Preface::whole || !listen.http1) {
    become_h2();
    return false;
  }
  decided_ = true;
  return true;
}

void H1Client::become_h2() {
  h2_ = context_.h2_clients.create(context_, *this);
  arm(0);
  if (h2_ == nullptr || !h2_->start()) {
    if (h2_ != nullptr) context_.h2_clients.destroy(std::exchange(h2_, nullptr));
    count(context_.counters.connections_shed);
    return close(true);
  }
  stream_.hand_to(*h2_);
  while (!input_.empty() && !stream_.closing()) {
    net::Slice* slice = input_.take_front();
    ring::Lease lease = std::move(slice->lease);
    input_.pool().destroy(slice);
    h2_->on_received(std::move(lease));
  }
  input_.clear();
}

bool H1Client::begin_exchange() {
  find_address();
  exchange_ = context_.exchanges.create(context_, *this, facts_);
  if (exchange_ == nullptr) {
    count(context_.counters.connections_shed);
    close(true);
    return false;
  }
  const config::Limits& limits = exchange_->snapshot().limits;
  auto* bounds =
      make<http::HeadLimits>(http::HeadLimits{.line_bytes_max = limits.request_line_bytes_max,
                                              .head_bytes_max = limits.header_bytes_max,
                                              .fields_max = limits.header_count_max});
  parser_ = bounds == nullptr ? nullptr : make<http::RequestParser>(exchange_->arena(), *bounds);
  if (parser_ == nullptr) return false;
  arm(timeouts().client_header_ms);
  return true;
}

bool H1Client::read_head() {
  if (exchange_ == nullptr) {
    if (!decided_ && !decide()) return false;
    if (!begin_exchange()) return false;
  }
  net::Slice* front = input_.front();
  http::Gather::Fed fed =
      gather_.feed(*parser_, exchange_->arena(), std::string_view(front->data, front->size));
  if (fed.out_of_memory) {
    reading_ = Reading::dropped;
    exchange_->on_client_lost({ErrorCode::no_memory});
    return true;
  }
  if (fed.state == ParseState::failed) {
    reading_ = Reading::dropped;
    arm(0);
    exchange_->on_bad_head(parser_->fault());
    return true;
  }
  if (fed.state == ParseState::done) {
    head_complete(fed);
  } else {
    input_.consume(fed.used);
  }
  return true;
}

void H1Client::head_complete(const http::Gather::Fed& fed) {
  http::RequestHead& head = parser_->head();
  std::size_t bytes = parser_->consumed();
  net::Slice* front = input_.front();
  if (fed.bytes == front->data) {
    // The head must outlast the buffer that it came in.
    std::string_view copy = exchange_->arena().copy({fed.bytes, bytes});
    if (copy.data() == nullptr) {
      reading_ = Reading::dropped;
      return exchange_->on_client_lost({ErrorCode::no_memory});
    }
    head.rebase(fed.bytes, bytes, copy.data() - fed.bytes);
  }
  input_.consume(fed.used);
  if (stream_.early() && !may_be_early(head) && !was_early_before(head)) {
    waits_ = true;
    return;
  }
  take_head();
}

void H1Client::take_head() {
  http::RequestHead& head = parser_->head();
  // While the connection is early one that may not be is here only to be refused.
  facts_.early = stream_.early() || (early_input_ && may_be_early(head));
  context_.ring.timers().disarm(timer_);
  client_closes_ = !head.keep_alive;
  std::uint32_t requests_max = exchange_->snapshot().limits.requests_per_connection_max;
  if (++requests_ == requests_max || last_request_) head.keep_alive = false;
  chunked_response_ = false;
  first_chunk_ = true;
  wanted_ = held_ = false;
  body_left_ = head.framing.length;
  reading_ = Reading::complete;
  if (head.framing.kind == http::Framing::Kind::chunked) {
    chunks_ = make<http::ChunkedDecoder>();
    if (chunks_ == nullptr) return;
    reading_ = Reading::body_chunked;
  } else if (head.framing.kind == http::Framing::Kind::length && body_left_ > 0) {
    reading_ = Reading::body_length;
  }
  // A head comes in one piece as a rule; a large body must not take all buffers at once.
  bool bulk = reading_ == Reading::body_chunked || body_left_ > bulk_bytes_min;
  stream_.receive_singly(bulk);
  exchange_->on_head(head);
}

bool H1Client::read_length() {
  if (!wanted_) return false;
  net::Slice* front = input_.front();
  auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(front->size, body_left_));
  auto offset = static_cast<std::size_t>(front->data - front->lease.data());
  ring::Lease piece = front->lease.share(offset, bytes);
  input_.consume(bytes);
  body_left_ -= bytes;
  exchange_->on_request_body(std::move(piece));
  if (body_left_ == 0) request_complete(nullptr);
  return true;
}

bool H1Client::read_chunks() {
  if (!wanted_) return false;
  net::Slice* front = input_.front();
  http::ChunkedDecoder::Step step = chunks_->next({front->data, front->size});
  ring::Lease piece;
  if (step.event == http::ChunkedDecoder::Event::data) {
    auto offset = static_cast<std::size_t>(step.piece.data() - front->lease.data());
    piece = front->lease.share(offset, step.piece.size());
  }
  input_.consume(step.consumed);
  switch (step.event) {
    case http::ChunkedDecoder::Event::need_more:
      return true;
    case http::ChunkedDecoder::Event::data:
      exchange_->on_request_body(std::move(piece));
      return true;
    case http::ChunkedDecoder::Event::last_chunk:
      trailers_ = make<http::TrailerParser>(exchange_->arena(), trailer_limits);
      if (trailers_ != nullptr) reading_ = Reading::trailers;
      return true;
    case http::ChunkedDecoder::Event::failed:
      reading_ = Reading::dropped;
      exchange_->on_bad_body({400, chunks_->fault()});
      return true;
  }
  return false;
}

bool H1Client::read_trailers() {
  if (!wanted_) return false;
  net::Slice* front = input_.front();
  http::Gather::Fed fed =
      gather_.feed(*trailers_, exchange_->arena(), std::string_view(front->data, front->size));
  if (fed.state == ParseState::failed) {
    reading_ = Reading::dropped;
    exchange_->on_bad_body(trailers_->fault());
    return true;
  }
  if (fed.state == ParseState::done) {
    // The fields point into the piece: hand them on before it goes.
    ring::Lease keep = front->lease.share(0, 0);
    input_.consume(fed.used);
    request_complete(&trailers_->fields());
    return true;
  }
  input_.consume(fed.used);
  return true;
}

bool H1Client::read_tunnel() {
  if (!wanted_) return false;
  net::Slice* slice = input_.take_front();
  auto offset = static_cast<std::size_t>(slice->data - slice->lease.data());
  ring::Lease piece = slice->lease.share(offset, slice->size);
  input_.pool().destroy(slice);
  exchange_->on_request_body(std::move(piece));
  return true;
}

void H1Client::request_complete(http::FieldList* trailers) {
  reading_ = Reading::complete;
  exchange_->on_request_end(trailers);
}

// The client's FIN, behind everything that it sent.
void H1Client::end_of_input() {
  if (lingering_) return end_lingering();
  if (exchange_ == nullptr) return unread_ ? linger() : close(false);
  if (end_told_) return;
  switch (reading_) {
    case Reading::complete:  // half-closed: it waits for its answer
    case Reading::dropped:
      return;
    case Reading::tunnel:
      if (!wanted_) return;
      end_told_ = true;
      return exchange_->on_request_end(nullptr);
    case Reading::body_length:
    case Reading::body_chunked:
    case Reading::trailers:
      if (!wanted_) return;
      [[fallthrough]];
    case Reading::head:
      end_told_ = true;
      return exchange_->on_client_lost({ErrorCode::closed, base::Origin::client});
  }
}

void H1Client::want_body() {
  wanted_ = true;
  held_ = false;
  schedule_read();
}

// With nothing read ahead the client is stopped at once: what it sends next may go into a pipe,
// once it is wanted.
void H1Client::hold_body() {
  wanted_ = false;
  held_ = input_.empty();
  if (held_) stream_.park();
}

void H1Client::enter_tunnel() {
  stream_.receive_singly(true);
  tunnel_ = true;
  reading_ = Reading::tunnel;
}

void H1Client::on_failed(const Error& error, Direction direction) {
  const bool unreadable = error.code == ErrorCode::unsupported && direction == Direction::receive;
  if (unreadable && tls_ != nullptr && reading_ != Reading::tunnel) return on_unreadable();
  if (exchange_ == nullptr) return error.code == ErrorCode::insecure ? on_insecure() : close(false);
  reading_ = Reading::dropped;
  input_.clear();
  Error lost = error;
  lost.origin = base::Origin::client;
  exchange_->on_client_lost(lost);
}

}  // namespace ringside::proxy
