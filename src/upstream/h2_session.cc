#include "h2_session.h"

#include <algorithm>
#include <string>
#include <utility>

#include "h1_session.h"
#include "h2_parts.h"
#include "server_pool.h"

namespace ringside::upstream {

using base::Error;
using base::ErrorCode;
using base::Origin;
using http::H2Code;

namespace {

// What may wait in the socket: more would make one stream's body wait behind another's, less would
// make sends small.
constexpr std::size_t waiting_bytes_max = 128 * 1024;
// How long a GOAWAY of ours may take to leave.
constexpr base::Millis farewell_ms = 1'000;

H2Stream& own(http::H2RequestStream& stream) {
  return static_cast<H2Stream&>(stream);
}

}  // namespace

H2Session::H2Session(Pools& pools, H1Session& transport)
    : pools_(pools),
      transport_(transport),
      server_(transport.pool()),
      stream_(transport.stream()),
      window_bytes_(pools.options_.window_bytes),
      frames_(pools.h2_->shared, *this,
              {.head = pools.options_.limits,
               .stream_window_bytes = static_cast<std::uint32_t>(window_bytes_)}),
      output_(pools.h2_->blocks, stream_),
      timer_(&H2Session::timed_out, this),
      heard_ms_(pools.streams_.ring.now_ms()),
      secured_(transport.secured()) {}

bool H2Session::start(base::Millis timeout_ms) {
  if (!frames_.start()) return false;
  awaited_ = Awaited::greeting;
  pools_.streams_.ring.timers().arm(timer_, timeout_ms);
  stream_.hand_to(*this);
  stream_.resume();
  schedule();
  return true;
}

SharedServer& H2Session::server() {
  return *server_.shared;
}

net::SlicePool& H2Session::slices() {
  return pools_.streams_.slices;
}

void H2Session::schedule() {
  if (!ring::Deferred::linked()) pools_.streams_.ring.defer(*this);
}

std::uint32_t H2Session::room() const {
  if (leaving_ || !frames_.takes_requests()) return 0;
  const std::uint32_t most = std::min(server_.shared->config().streams_max, frames_.streams_max());
  return most - std::min(most, streams_now_);
}

H2Stream* H2Session::open() {
  H2Stream* stream = pools_.h2_->streams.create(*this, uses_ != 0);
  if (stream == nullptr) return nullptr;
  ++uses_;
  streams_.push_back(*stream);
  if (++streams_now_ == 1) ask_for_life();
  watch();
  return stream;
}

void H2Session::retire(H2Stream& stream) {
  static_cast<base::ListHook<WantingStreams>&>(stream).unlink();
  static_cast<base::ListHook<SendingStreams>&>(stream).unlink();
  retired_.push_back(stream);
  --streams_now_;
  schedule();
}

// ---- receiving

void H2Session::on_received(ring::Lease lease) {
  if (over_) return;
  heard_ms_ = pools_.streams_.ring.now_ms();
  asked_ = false;
  if (awaited_ == Awaited::answer) awaited_ = Awaited::nothing;
  receiving_ = &lease;
  const bool alive = frames_.receive(lease.bytes(), heard_ms_);
  receiving_ = nullptr;
  schedule();
  if (!alive) end({ErrorCode::bad_message, Origin::upstream});
}

void H2Session::on_response_head(http::H2RequestStream& stream, http::ResponseHead& head) {
  own(stream).on_head(head);
}

void H2Session::on_response_data(http::H2RequestStream& stream, std::string_view bytes) {
  const auto offset = static_cast<std::size_t>(bytes.data() - receiving_->data());
  own(stream).on_body(receiving_->share(offset, bytes.size()));
}

void H2Session::on_response_end(http::H2RequestStream& stream, http::FieldList* trailers) {
  own(stream).on_end(trailers);
}

void H2Session::on_response_bad(http::H2RequestStream& stream, const http::ParseFault& fault) {
  log(fault.reason);
  frames_.reset(stream, H2Code::protocol_error);
  own(stream).fail({ErrorCode::bad_message, Origin::upstream});
}

void H2Session::on_stream_closed(http::H2RequestStream& stream, H2Code code) {
  own(stream).on_closed(code);
}

void H2Session::on_settings() {
  if (std::exchange(greeted_, true)) return;
  awaited_ = Awaited::nothing;
  pools_.greeted(*this);
}

void H2Session::on_going_away() {
  leave();
  if (streams_now_ != 0) pools_.connect_ahead(server_);
}

void H2Session::on_ping_answered() {
  asked_ = true;  // nothing else came: what is quiet need not be asked again
}

// ---- sending

void H2Session::run_deferred() {
  while (H2Stream* stream = wanting_.pop_front())
    stream->read_input();
  sweep();
  if (closed_) {
    if (streams_now_ == 0) pools_.h2_closed(*this);  // destroys this
    return;
  }
  if (stream_.closing()) return;
  send_frames();
  if (!stream_.closing()) end_if_over();
  if (!stream_.closing()) watch();
  if (!leaving_) pools_.streams_freed(*this);
}

void H2Session::sweep() {
  while (H2Stream* stream = retired_.pop_front())
    pools_.h2_->streams.destroy(stream);
}

void H2Session::send_frames() {
  if (send_failed_) return;
  const bool more = frames_.send();
  if (!output_.flush()) {
    lose_all({ErrorCode::no_memory});
    return close();
  }
  if (!more) end({ErrorCode::bad_message, Origin::upstream});
}

H2Session::Ready H2Session::ready(http::H2RequestStream& stream) {
  return own(stream).ready();
}

bool H2Session::has_room() {
  return output_.waiting() < waiting_bytes_max;
}

bool H2Session::write_data(http::H2RequestStream& stream, std::string_view header,
                           std::size_t bytes) {
  return output_.copy(header) && own(stream).write(bytes);
}

void H2Session::on_framed(http::H2RequestStream& stream, std::size_t bytes, bool written) {
  own(stream).on_framed(bytes, written);
}

void H2Session::on_sent() {
  output_.sent();
  sending_.for_each([](H2Stream& stream) {
    if (!stream.on_sent()) static_cast<base::ListHook<SendingStreams>&>(stream).unlink();
  });
  schedule();
}

// ---- the end

void H2Session::log(std::string_view text) {
  std::string line = "server ";
  line.append(server_.shared->config().endpoint.text).append(": ").append(text);
  pools_.logger_.log(base::LogLevel::warn, "upstream", line);
}

void H2Session::leave() {
  leaving_ = true;
  pools_.unlist(*this);
  schedule();
}

void H2Session::lose_all(const Error& error) {
  leave();
  const std::uint64_t sent = stream_.sending() ? output_.position() : output_.position_sent();
  streams_.for_each([&](H2Stream& stream) { stream.on_lost(error, sent); });
  if (!std::exchange(greeted_, true)) pools_.not_greeted(*this, error);
}

// The server's fault: what is to be said of it still leaves.
void H2Session::end(const Error& error) {
  if (std::exchange(over_, true)) return;
  if (!frames_.failure().empty()) log(frames_.failure());
  lose_all(error);
}

void H2Session::end_if_over() {
  if (!over_ && (!leaving_ || streams_now_ != 0)) return;
  if (send_failed_ || output_.waiting() == 0) return close();
  over_ = true;
}

void H2Session::on_end_of_stream() {
  lose_all({ErrorCode::closed, Origin::upstream});
  close();
}

void H2Session::on_failed(const Error& error, Direction direction) {
  Error lost = error;
  if (error.code == ErrorCode::unsupported && secured_) lost.code = ErrorCode::insecure;
  if (lost.code == ErrorCode::insecure && streams_now_ != 0) transport_.log_insecure();
  send_failed_ = true;
  // What the server sent before it closed decides, until nothing more can come.
  if (direction == Direction::send && !stream_.ended() && lost.code != ErrorCode::insecure) {
    leave();
    return streams_.for_each([&](H2Stream& stream) {
      stream.request_begun() ? stream.refuse_rest() : stream.on_lost(lost, 0);
    });
  }
  lose_all(lost);
  close();
}

void H2Session::close() {
  if (stream_.closing()) return;
  over_ = true;
  lose_all({ErrorCode::closed, Origin::upstream});
  pools_.streams_.ring.timers().disarm(timer_);
  stream_.close(false);
}

// The exchanges of its streams may have something of it still.
void H2Session::on_closed() {
  closed_ = true;
  schedule();
}

// ---- health

// What has not been heard of for a while may be gone without a word: before a stream relies on it,
// and once while streams wait, it is asked. (Once: servers of gRPC count such questions.)
void H2Session::ask_for_life() {
  const base::Millis now_ms = pools_.streams_.ring.now_ms();
  const config::Upstream* config = server_.config();
  if (asked_ || config == nullptr || config->ping_interval_ms == 0) return;
  if (now_ms - heard_ms_ < config->ping_interval_ms || !frames_.ping()) return;
  asked_ = true;
  awaited_ = Awaited::answer;
  pools_.streams_.ring.timers().arm(timer_, config->ping_timeout_ms);
  schedule();
}

void H2Session::watch() {
  if ((awaited_ == Awaited::answer || awaited_ == Awaited::greeting) && !over_) return;
  Awaited wanted = streams_now_ == 0 ? Awaited::use : Awaited::quiet;
  if (over_) wanted = Awaited::last_bytes;
  if (wanted == awaited_) return;
  awaited_ = wanted;
  idle_time_.forget();
  base::TimerWheel& timers = pools_.streams_.ring.timers();
  const config::Upstream* config = server_.config();
  switch (wanted) {
    case Awaited::use:
      return pools_.became_idle(*this);
    case Awaited::last_bytes:
      return timers.arm(timer_, farewell_ms);
    default:
      if (config == nullptr || config->ping_interval_ms == 0) return timers.disarm(timer_);
      return timers.arm(timer_, config->ping_interval_ms);
  }
}

void H2Session::rest(base::Millis timeout_ms) {
  pools_.streams_.ring.timers().arm(timer_, idle_time_.begin(timeout_ms, secured_));
}

void H2Session::timed_out(void* self) {
  static_cast<H2Session*>(self)->on_timeout();
}

void H2Session::on_timeout() {
  switch (std::exchange(awaited_, Awaited::nothing)) {
    case Awaited::nothing:
      return;
    case Awaited::greeting:
      log("no SETTINGS of HTTP/2 in time");
      lose_all({ErrorCode::timed_out, Origin::upstream});
      return close();
    case Awaited::quiet:
      ask_for_life();
      return watch();
    case Awaited::answer:
      log("no answer to a PING in time");
      lose_all({ErrorCode::timed_out, Origin::upstream});
      return close();
    case Awaited::use:
      if (const base::Millis left = idle_time_.go_on(); left != 0) {
        awaited_ = Awaited::use;
        stream_.rest();
        return pools_.streams_.ring.timers().arm(timer_, left);
      }
      return quit();
    case Awaited::last_bytes:
      return close();
  }
}

// Idle for too long, or not wanted any more.
void H2Session::quit() {
  frames_.go_away();
  leave();
}

}  // namespace ringside::upstream
