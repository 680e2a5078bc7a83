// limits.body_rate: whether the client keeps up, while it is what we wait for.
#include <algorithm>

#include "exchange.h"

namespace ringside::proxy {

using base::Origin;

namespace {
// A check that comes later than this found a ring, or a machine, that did not run: what the client
// did meanwhile may not have been read yet.
constexpr base::Millis late_ms = 1'000;
}  // namespace

void Exchange::begin_pace() {
  const config::Limits& limits = site_ == nullptr ? snapshot().limits : site_->limits;
  if (limits.body_rate_min == 0) return;
  const config::Timeouts& timeouts = site_ == nullptr ? snapshot().timeouts : site_->timeouts;
  request_pace_.begin(limits.body_rate_min, timeouts.body_grace_ms, 0);
  // Of the response before this one some may still be on its way.
  response_pace_.begin(limits.body_rate_min, timeouts.body_grace_ms,
                       bytes_sent_before_ == 0 ? 0 : client_.bytes_delivered());
  measure();
}

// Nothing but more of the request's body would bring us further. While a server is sought, or has
// not taken what came, or the client was not yet told that it may send, the client is not at fault.
bool Exchange::request_awaited() const {
  if (request_ == RequestState::discarding) return response_ == ResponseState::complete && !linger_;
  if (request_ != RequestState::relaying || request_held_ || session_ == nullptr) return false;
  if (head_->expect_continue && !continued_ && request_bytes_ == 0) return false;
  return session_->request_pending() == 0;
}

bool Exchange::response_awaited() const {
  if (response_ == ResponseState::none || status_ == 101) return false;
  return client_.response_pending() != 0;
}

void Exchange::note_awaited() {
  if (stopped_) return;
  const base::Millis now_ms = context_.ring.now_ms();
  request_pace_.wait(request_awaited(), now_ms);
  response_pace_.wait(response_awaited(), now_ms);
  if (!pace_timer_.armed()) arm_pace();
}

void Exchange::arm_pace() {
  base::Millis delay_ms = ~base::Millis{0};
  if (request_pace_.waiting()) delay_ms = request_pace_.left_ms();
  if (response_pace_.waiting()) delay_ms = std::min(delay_ms, response_pace_.left_ms());
  if (delay_ms == ~base::Millis{0}) return;
  pace_due_ms_ = context_.ring.now_ms() + delay_ms;
  context_.ring.timers().arm(pace_timer_, delay_ms);
}

void Exchange::pace_due(void* self) {
  static_cast<Exchange*>(self)->on_pace_due();
}

void Exchange::on_pace_due() {
  if (stopped_) return;
  const base::Millis now_ms = context_.ring.now_ms();
  const bool request_kept = request_pace_.check(now_ms, request_bytes_);
  const bool response_kept = response_pace_.check(now_ms, client_.bytes_delivered());
  const ring::BufferGroup& buffers = context_.streams.buffers;
  if (now_ms > pace_due_ms_ + late_ms || buffers.leased() >= buffers.count()) {
    request_pace_.forgive();
    response_pace_.forgive();
  } else if (!response_kept && response_pace_.waiting()) {
    end_with(Origin::client, stage_now(), Cause::too_slow);
    stopped_ = true;  // who does not read would not read the rest either
    cut();
    return settle();
  } else if (!request_kept && request_pace_.waiting()) {
    return request_too_slow();
  }
  arm_pace();
}

void Exchange::request_too_slow() {
  const Stage stage = stage_now();
  if (response_ == ResponseState::none) {
    drop_upstream();
    keep_ = false;  // nor would the rest come in time to be read off
    refuse(408, "The request's body came too slowly.", {Origin::client, stage, Cause::too_slow});
  } else {
    end_with(Origin::client, stage, Cause::too_slow);
    cut();
  }
  settle();
}

}  // namespace ringside::proxy
