#include "h2_client.h"

#include <algorithm>
#include <string>
#include <utility>

namespace ringside::proxy {

using base::Error;
using base::ErrorCode;
using http::H2Code;

namespace {

// What may wait in the socket: more would make one stream's answer wait behind another's, less
// would make sends small.
constexpr std::size_t waiting_bytes_max = 128 * 1024;
// An exchange goes on until its last bytes have left, when its client may have asked for the next
// already; nghttp2 counts streams, and this bounds exchanges.
constexpr std::uint32_t exchanges_factor = 2;
// What may be received of all requests of a connection before anybody took it, in windows of one.
constexpr std::uint32_t window_factor = 4;
constexpr std::uint32_t window_bytes_min = 65'535;  // RFC 9113 §6.9.2
constexpr std::uint32_t window_bytes_max = 1U << 24;
// As far as windows are opened for what a long path holds: 80 ms at 100 MB/s, doubled.
constexpr std::uint32_t window_opened_bytes_max = 1U << 24;

http::H2Limits limits_of(const config::Limits& limits) {
  const std::uint32_t window =
      std::clamp(limits.buffered_bytes_max, window_bytes_min, window_bytes_max);
  return {.head = {.line_bytes_max = limits.request_line_bytes_max,
                   .head_bytes_max = limits.header_bytes_max,
                   .fields_max = limits.header_count_max},
          .streams_max = limits.streams_per_connection_max,
          .stream_window_bytes = window,
          .connection_window_bytes = window * window_factor,
          .window_bytes_max = std::max(window, window_opened_bytes_max)};
}

H2ClientStream& own(http::H2Stream& stream) {
  return static_cast<H2ClientStream&>(stream);
}

}  // namespace

H2Client::H2Client(Context& context, ClientTransport& transport)
    : context_(context),
      transport_(transport),
      stream_(transport.stream()),
      frames_(context.h2, *this, limits_of(context.runtime->snapshot().limits)),
      output_(context.h2_blocks, stream_),
      timer_(&H2Client::timed_out, this),
      grace_timer_(&H2Client::grace_over, this),
      streams_max_(exchanges_factor *
                   context.runtime->snapshot().limits.streams_per_connection_max) {}

bool H2Client::start() {
  transport_.find_address();
  stream_.receive_by_need();
  if (!frames_.start()) return false;
  schedule();
  set_timer();
  return true;
}

// ---- receiving

void H2Client::on_received(ring::Lease lease) {
  if (over_ || stream_.closing()) return;
  greeted_ = true;
  receiving_ = &lease;
  const bool alive = frames_.receive(lease.bytes(), context_.ring.now_ms());
  receiving_ = nullptr;
  if (!alive) return finish();
  schedule();
  balance_input();
  set_timer();
}

// The windows bound the bytes, but bytes that come one by one cost more.
void H2Client::balance_input() {
  if (stream_.closing() || ended_) return;
  // Of windows that are used up by full frames, twice what they hold.
  const std::size_t input_cost_max = std::size_t{2} * frames_.window_bytes();
  if (!stream_.parked() && input_cost_ >= input_cost_max) {
    stream_.park();
  } else if (stream_.parked() && input_cost_ < input_cost_max / 2) {
    stream_.resume();
  }
}

http::H2Stream* H2Client::on_stream() {
  if (leaving_ || over_ || streams_now_ >= streams_max_) return nullptr;
  H2ClientStream* stream = context_.h2_streams.create(context_, *this);
  if (stream == nullptr) return nullptr;
  if (!stream->begin(transport_.facts())) {
    context_.h2_streams.destroy(stream);
    return nullptr;
  }
  streams_.push_back(*stream);
  ++streams_now_;
  if (++requests_ == snapshot().limits.requests_per_connection_max) {
    frames_.go_away();
    leaving_ = true;
  }
  return stream;
}

void H2Client::on_request_head(http::H2Stream& stream, http::RequestHead& head) {
  own(stream).on_head(head);
}

void H2Client::on_request_data(http::H2Stream& stream, std::string_view bytes) {
  const auto offset = static_cast<std::size_t>(bytes.data() - receiving_->data());
  own(stream).on_body(receiving_->share(offset, bytes.size()));
}

void H2Client::on_request_end(http::H2Stream& stream, http::FieldList* trailers) {
  own(stream).on_end(trailers);
}

void H2Client::on_request_bad(http::H2Stream& stream, const http::ParseFault& fault) {
  own(stream).on_bad(fault);
}

void H2Client::on_stream_reset(http::H2Stream& stream, H2Code) {
  own(stream).on_lost({ErrorCode::reset});
}

// Every stream whose response is not on its way already.
void H2Client::lose_all(const Error& error) {
  streams_.for_each([&error](H2ClientStream& stream) {
    if (!stream.closed() || !stream.response_ended()) stream.on_lost(error);
  });
}

void H2Client::log_failure() {
  if (frames_.failure().empty()) return;
  context_.logger.log(
      base::LogLevel::info, "http2",
      "client " + std::string(transport_.facts().address) + ": " + std::string(frames_.failure()));
}

// The client's fault: what was said of it still leaves.
void H2Client::finish() {
  over_ = true;
  log_failure();
  lose_all({ErrorCode::bad_message});
  schedule();
  set_timer();
}

void H2Client::on_end_of_stream() {
  ended_ = true;
  if (lingering_) return end_lingering();
  streams_.for_each([](H2ClientStream& stream) {
    if (!stream.request_ended()) stream.on_lost({ErrorCode::closed});
  });
  schedule();
}

// As H1Client does: requests that came whole get their answers.
void H2Client::on_unreadable() {
  transport_.log_insecure();
  frames_.go_away();
  leaving_ = over_ = true;
  streams_.for_each([](H2ClientStream& stream) {
    if (!stream.request_ended()) stream.on_lost({ErrorCode::closed});
  });
  schedule();
}

void H2Client::on_failed(const Error& error, Direction direction) {
  if (error.code == ErrorCode::unsupported && direction == Direction::receive &&
      transport_.secured())
    return on_unreadable();
  if (error.code == ErrorCode::insecure && streams_.empty() && !lingering_ && !stream_.ended()) {
    transport_.log_insecure();
    over_ = true;
    return linger();
  }
  over_ = true;
  streams_.for_each([&error](H2ClientStream& stream) { stream.on_lost(error); });
  close(error.code != ErrorCode::insecure);
}

// ---- sending

void H2Client::run_deferred() {
  if (stream_.closing()) return;
  while (H2ClientStream* stream = wanting_.pop_front())
    stream->read_input();
  send_frames();
  if (stream_.closing()) return;
  end_if_over();
  if (stream_.closing()) return;
  balance_input();
  set_timer();
}

void H2Client::send_frames() {
  if (lingering_) return;
  const bool more = frames_.send();
  if (!output_.flush()) {
    streams_.for_each([](H2ClientStream& stream) { stream.on_lost({ErrorCode::no_memory}); });
    return close(true);
  }
  if (more || over_) return;
  over_ = true;
  log_failure();
  lose_all({ErrorCode::bad_message});
}

H2Client::Ready H2Client::ready(http::H2Stream& stream) {
  return own(stream).ready();
}

bool H2Client::has_room() {
  return output_.waiting() < waiting_bytes_max;
}

bool H2Client::write_data(http::H2Stream& stream, std::string_view header, std::size_t bytes) {
  return output_.copy(header) && own(stream).write(bytes);
}

void H2Client::on_framed(http::H2Stream& stream, std::size_t bytes) {
  own(stream).on_framed(bytes);
}

void H2Client::on_sent() {
  output_.sent();
  sending_.for_each([](H2ClientStream& stream) {
    if (!stream.on_sent()) static_cast<base::ListHook<SendingStreams>&>(stream).unlink();
  });
  if (lingering_) return end_lingering();
  schedule();
}

void H2Client::stream_over(H2ClientStream& stream) {
  context_.h2_streams.destroy(&stream);
  --streams_now_;
  if (!closed_) return schedule();
  if (streams_.empty()) on_closed();
}

// ---- between requests, and the end

void H2Client::arm(base::Millis delay_ms) {
  if (delay_ms == 0) return context_.ring.timers().disarm(timer_);
  context_.ring.timers().arm(timer_, delay_ms);
}

void H2Client::set_timer() {
  if (awaited_ == Awaited::lingering) return;
  Awaited wanted = Awaited::nothing;
  if (over_)
    wanted = frames_.ended() || streams_.empty() ? Awaited::lingering : Awaited::nothing;
  else if (frames_.in_head())
    wanted = Awaited::head;
  else if (streams_.empty())
    wanted = greeted_ ? Awaited::request : Awaited::preface;
  if (wanted == awaited_) return;
  awaited_ = wanted;
  idle_time_.forget();
  const config::Timeouts& timeouts = snapshot().timeouts;
  switch (wanted) {
    case Awaited::nothing:
      return arm(0);
    case Awaited::preface:
    case Awaited::head:
      return arm(timeouts.client_header_ms);
    case Awaited::request:
      return arm(idle_time_.begin(timeouts.keep_alive_ms, transport_.secured()));
    case Awaited::lingering:
      return arm(std::max<base::Millis>(timeouts.linger_ms, 1));
  }
}

void H2Client::timed_out(void* self) {
  static_cast<H2Client*>(self)->on_timeout();
}

void H2Client::on_timeout() {
  switch (awaited_) {
    case Awaited::nothing:
      return;
    case Awaited::preface:
    case Awaited::lingering:
      return close(false);
    case Awaited::head:
      frames_.end(H2Code::enhance_your_calm, "a head that did not come to its end in time");
      return finish();
    case Awaited::request:
      if (const base::Millis left = idle_time_.go_on(); left != 0) {
        stream_.rest();
        return arm(left);
      }
      // It has stopped reading: no GOAWAY would get through.
      if (!has_room()) return close(true);
      frames_.go_away();
      leaving_ = true;
      return schedule();
  }
}

void H2Client::drain(base::Millis grace_ms) {
  if (leaving_ || over_ || stream_.closing()) return;
  frames_.announce_end();
  context_.ring.timers().arm(grace_timer_, grace_ms);
  schedule();
}

void H2Client::grace_over(void* self) {
  auto& client = *static_cast<H2Client*>(self);
  if (client.leaving_ || client.over_) return;
  client.frames_.go_away();
  client.leaving_ = true;
  client.schedule();
}

void H2Client::shut_down() {
  stopping_ = true;
  over_ = true;
  arm(0);
  if (streams_.empty()) return close(true);
  streams_.for_each([](H2ClientStream& stream) { stream.on_shutdown(); });
}

void H2Client::end_if_over() {
  if (!streams_.empty() || lingering_) return;
  if (stopping_) return close(false);
  if (ended_ || (over_ && has_room())) linger();
}

// As H1Client does: who closes with bytes unread makes the kernel take back what was sent last. And
// who closes takes back himself what has not been sent.
void H2Client::linger() {
  if (ended_ && output_.waiting() == 0) return close(false);
  lingering_ = over_ = true;
  context_.ring.timers().disarm(grace_timer_);
  stream_.finish_sending();
  if (!ended_) stream_.resume();
  awaited_ = Awaited::lingering;
  arm(std::max<base::Millis>(snapshot().timeouts.linger_ms, 1));
}

void H2Client::end_lingering() {
  if (ended_ && output_.waiting() == 0) close(false);
}

void H2Client::close(bool reset) {
  over_ = true;
  context_.ring.timers().disarm(timer_);
  context_.ring.timers().disarm(grace_timer_);
  ring::Deferred::unlink();
  streams_.for_each([](H2ClientStream& stream) { stream.on_lost({ErrorCode::closed}); });
  stream_.close(reset);
}

// The exchanges of its streams end at the end of a turn: they come first.
void H2Client::on_closed() {
  closed_ = true;
  if (!streams_.empty()) return;
  ClientTransport& transport = transport_;
  context_.h2_clients.destroy(this);
  transport.closed();  // destroys it
}

}  // namespace ringside::proxy
