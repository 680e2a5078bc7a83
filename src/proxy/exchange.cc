#include "exchange.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "client_tls.h"

namespace ringside::proxy {

using base::Origin;

Exchange::Exchange(Context& context, ClientSession& client, const ClientFacts& facts)
    : context_(context),
      client_(client),
      client_facts_(facts),
      runtime_(*context.runtime),
      arena_(context.chunks),
      timer_(&Exchange::timed_out, this),
      pace_timer_(&Exchange::pace_due, this),
      start_ns_(context.ring.now_ns()),
      start_realtime_ns_(context.ring.realtime_ns()),
      bytes_sent_before_(client.bytes_sent()),
      zero_copied_before_(client.bytes_zero_copied()) {
  context_.exchange_began(runtime_);
  count(context_.counters.exchanges);
}

Exchange::~Exchange() {
  if (kept_ != nullptr) kept_->clear();
  arena_.release();
  context_.exchange_ended(runtime_);
}

void Exchange::request_event(RequestEvent event) {
  Step<RequestState> step = next(request_, event);
  assert(step.legal && "an event that the request's state forbids");
  request_ = step.to;
}

void Exchange::response_event(ResponseEvent event) {
  Step<ResponseState> step = next(response_, event);
  assert(step.legal && "an event that the response's state forbids");
  response_ = step.to;
}

// The first reason counts: what comes after is its consequence.
void Exchange::end_with(Origin who, Stage stage, Cause cause) {
  if (end_known_) return;
  end_known_ = true;
  end_ = {who, stage, cause};
}

Stage Exchange::stage_now() const {
  if (request_ == RequestState::reading_head) return Stage::read_head;
  if (response_ == ResponseState::tunneling) return Stage::tunnel;
  if (response_ != ResponseState::none) return Stage::response_body;
  if (waiting()) return queued() ? Stage::queue : Stage::connect;
  if (session_ == nullptr) return Stage::route;
  return request_ == RequestState::complete ? Stage::wait_response : Stage::send_request;
}

const config::Timeouts& Exchange::upstream_timeouts() const {
  if (route_ != nullptr && route_->upstream) {
    return snapshot().upstreams[*route_->upstream].timeouts;
  }
  return snapshot().timeouts;
}

std::size_t Exchange::buffered_max() const {
  return context_.buffered_max(snapshot().limits);
}

void Exchange::note_moved(const net::Piece& piece) {
  auto mover = static_cast<std::size_t>(piece.mover());
  moved_bytes_[mover] += piece.size();
  count(context_.counters.moved_bytes[mover], piece.size());
}

// Counts, and names, what moved the larger part of the bodies; empty: there was none.
std::string_view Exchange::count_mover() {
  constexpr auto zero_copy = static_cast<std::size_t>(net::Mover::zero_copy);
  std::uint64_t& sent = moved_bytes_[zero_copy];
  auto* most = std::max_element(moved_bytes_, moved_bytes_ + zero_copy);
  if (*most == 0) return {};
  sent += client_.bytes_zero_copied() - zero_copied_before_;
  std::size_t mover = sent > *most / 2 ? zero_copy : static_cast<std::size_t>(most - moved_bytes_);
  if (sent != 0) count(context_.counters.moved_bytes[zero_copy], sent);
  count(context_.counters.bodies[mover]);
  return net::mover_names[mover];
}

// One timer for whatever must make progress next; pushing it back costs a store.
void Exchange::touch() {
  measure();
  const config::Timeouts& server = upstream_timeouts();
  const config::Timeouts& client = site_ == nullptr ? snapshot().timeouts : site_->timeouts;
  base::Millis limit = std::min(server.body_idle_ms, client.body_idle_ms);
  if (response_ == ResponseState::tunneling) {
    limit = client.tunnel_idle_ms;
  } else if (session_ != nullptr && response_ == ResponseState::none &&
             request_ == RequestState::complete && session_->request_pending() == 0) {
    limit = server.response_header_ms;
  }
  if (limit == 0) return context_.ring.timers().disarm(timer_);
  context_.ring.timers().arm(timer_, limit);
}

void Exchange::timed_out(void* self) {
  static_cast<Exchange*>(self)->on_timeout();
}

void Exchange::on_timeout() {
  Stage stage = stage_now();
  bool client_stalls =
      client_.response_pending() > 0 ||
      ((response_ == ResponseState::none || response_ == ResponseState::complete) &&
       request_unread() && !request_held_ && !waiting());
  Origin who = client_stalls ? Origin::client : Origin::upstream;
  if (response_ == ResponseState::none) {
    std::uint16_t status = client_stalls ? 408 : 504;
    drop_upstream();
    refuse(status,
           client_stalls ? "The request's body did not come in time."
                         : "The server did not answer in time.",
           {who, stage, Cause::timed_out});
    return settle();
  }
  end_with(who, stage, Cause::timed_out);
  cut();
  // Who does not read now will not read the rest either.
  if (client_stalls && response_ == ResponseState::lost) stopped_ = true;
  settle();
}

// It goes back to its pool, or ends.
upstream::Session* Exchange::take_session() {
  moved_bytes_[static_cast<std::size_t>(net::Mover::zero_copy)] += session_->request_zero_copied();
  return std::exchange(session_, nullptr);
}

void Exchange::drop_upstream() {
  if (waiting()) context_.pools.abandon(*this);
  if (session_ != nullptr) take_session()->abandon();
}

// The response cannot be finished: the client sees it cut.
void Exchange::cut() {
  drop_upstream();
  if (response_ != ResponseState::lost) response_event(ResponseEvent::lost);
  if (request_ != RequestState::complete) request_event(RequestEvent::lost);
  keep_ = false;
}

void Exchange::on_client_lost(const base::Error& error) {
  end_with(Origin::client, stage_now(), cause_of(error.code));
  stopped_ = true;
  cut();
  settle();
}

void Exchange::on_shutdown() {
  end_with(Origin::self, stage_now(), Cause::shutdown);
  stopped_ = true;
  cut();
  settle();
}

// ---- the end

void Exchange::settle() {
  if (!keep_ && !stopped_ && response_ == ResponseState::complete &&
      request_ == RequestState::complete) {
    client_.end_with_response();
  }
  if (!ring::Deferred::linked() && over()) context_.ring.defer(*this);
}

// Over: nothing more is to be read, relayed or sent.
bool Exchange::over() {
  if (stopped_) return true;
  if (response_ == ResponseState::lost) return client_.response_pending() == 0;
  if (response_ != ResponseState::complete || client_.response_pending() != 0) return false;
  if (session_ != nullptr) {
    if (session_->request_refused())
      drop_upstream();
    else if (request_ == RequestState::complete && session_->request_pending() == 0)
      return true;
  }
  if (session_ == nullptr) {
    // Nobody wants the rest of the request. Small rests are read off so that the connection can be
    // kept.
    return request_ != RequestState::discarding || linger_;
  }
  return false;
}

Afterwards Exchange::afterwards() const {
  bool cut_open_end = response_ == ResponseState::lost && status_ != 0 &&
                      response_framing_.kind == http::Framing::Kind::until_close;
  if (cut_open_end) return Afterwards::reset;
  if (stopped_) return end_.who == Origin::client ? Afterwards::reset : Afterwards::close;
  if (response_ == ResponseState::lost) return Afterwards::cut;
  if (request_ != RequestState::complete) return Afterwards::linger;
  return keep_ && !context_.draining ? Afterwards::keep : Afterwards::close;
}

void Exchange::run_deferred() {
  if (!over()) return;
  context_.ring.timers().disarm(timer_);
  context_.ring.timers().disarm(pace_timer_);
  if (session_ != nullptr) {
    upstream::Session* session = take_session();
    if (response_ended_ && request_ == RequestState::complete && !stopped_) {
      session->finish();
    } else {
      session->abandon();
    }
  }
  if (waiting()) context_.pools.abandon(*this);
  end_with(Origin::self, Stage::done, Cause::complete);
  std::string_view mover = count_mover();
  if (context_.access != nullptr) log(client_.bytes_sent() - bytes_sent_before_, mover);
  client_.exchange_over(afterwards());  // destroys this
}

void Exchange::log(std::uint64_t bytes_sent, std::string_view mover) {
  AccessRecord record;
  record.start_realtime_ns = start_realtime_ns_;
  record.connected_ns = connected_ns_;
  record.first_byte_ns = first_byte_ns_;
  record.total_ns = since_start();
  record.request_bytes = request_bytes_;
  record.response_bytes = bytes_sent;
  record.response_body_bytes = response_body_bytes_;
  record.spliced_bytes = moved_bytes_[static_cast<std::size_t>(net::Mover::splice)];
  record.zero_copy_bytes = moved_bytes_[static_cast<std::size_t>(net::Mover::zero_copy)];
  record.mover = mover;
  record.status = status_;
  record.tries = tries_;
  record.reused = reused_;
  record.end = end_;
  record.client_address =
      facts_.client_address.empty() ? client_facts_.address : facts_.client_address;
  record.client_port = facts_.client_address.empty() ? client_facts_.port : facts_.client_port;
  record.request_id = facts_.request_id;
  record.grpc_status = grpc_status_;
  if (client_facts_.tls != nullptr) {
    record.tls_version = client_facts_.tls->version();
    record.tls_cipher = client_facts_.tls->cipher();
    record.tls_client = client_facts_.tls->subject();
  }
  record.listener = snapshot().listens[client_facts_.listen].name;
  if (head_ != nullptr) {
    auto value_of = [this](http::FieldId id) {
      const http::Field* field = head_->fields.find(id);
      return field == nullptr ? std::string_view{} : field->value;
    };
    record.version = head_->version;
    record.method = head_->method_text;
    record.target = head_->target;
    record.host = head_->authority;
    record.user_agent = value_of(http::FieldId::user_agent);
    record.referer = value_of(http::FieldId::referer);
  }
  if (route_ != nullptr && route_->upstream) {
    record.upstream = snapshot().upstreams[*route_->upstream].name;
    if (server_ != nullptr) record.server = server_->config().endpoint.text;
  }
  context_.access->record(record);
}

}  // namespace ringside::proxy
