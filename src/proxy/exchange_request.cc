// The request's side of an exchange: what it asks for, who answers, and sending it there.
#include <algorithm>
#include <cstring>
#include <new>

#include "ringside/base/text.h"
#include "ringside/http/uri.h"

#include "client_tls.h"
#include "early_request.h"
#include "exchange.h"

namespace ringside::proxy {

using base::Origin;

namespace {
constexpr std::uint8_t tries_max = 3;

std::string_view field_value(const http::RequestHead& head, http::FieldId id) {
  const http::Field* field = head.fields.find(id);
  return field == nullptr ? std::string_view{} : field->value;
}

// An upgrade to another HTTP would open a tunnel that nobody looks into (RFC 9113 §3.1 took h2c
// back).
bool upgrade_is_http(std::string_view value) {
  while (!value.empty()) {
    std::size_t comma = std::min(value.find(','), value.size());
    std::string_view item = base::trim_ows(value.substr(0, comma));
    if (base::starts_with_ignore_case(item, "h2c") ||
        base::starts_with_ignore_case(item, "http/")) {
      return true;
    }
    value.remove_prefix(std::min(comma + 1, value.size()));
  }
  return false;
}

}  // namespace

void Exchange::on_head(http::RequestHead& head) {
  head_ = &head;
  keep_ = head.keep_alive;
  bool bodyless = head.framing.kind == http::Framing::Kind::none ||
                  (head.framing.kind == http::Framing::Kind::length && head.framing.length == 0);
  request_event(bodyless ? RequestEvent::head_bodyless : RequestEvent::head);
  find_facts(head);
  touch();
  const bool admitted = admit(head);
  begin_pace();
  if (admitted) route(head);
  settle();
}

void Exchange::find_facts(http::RequestHead& head) {
  facts_.peer_address = client_facts_.address;
  facts_.peer_port = client_facts_.port;
  facts_.client_address = client_facts_.address;
  facts_.client_port = client_facts_.port;
  if (client_facts_.secure) facts_.scheme = "https";
  facts_.tls = client_facts_.tls;
  facts_.early = client_facts_.early;
  facts_.host = head.authority;
  facts_.path = head.path;
  facts_.query = head.query;
  facts_.has_query = head.has_query;
  facts_.method = head.method_text;
  facts_.listener = snapshot().listens[client_facts_.listen].name;
  facts_.server_name = snapshot().server.server_name;
  facts_.request_fields = &head.fields;
  runtime_.runtime->trusted.find_client(facts_, arena_);
  if (snapshot().forwarding.request_id) {
    facts_.request_id = context_.ids.keep_or_next(facts_, arena_);
  }
}

// What is refused whatever the route.
bool Exchange::admit(http::RequestHead& head) {
  if (head.method == http::Method::connect) {
    keep_ = false;  // what follows was meant for a tunnel, not for us
    refuse(405, "CONNECT is not served here.", {Origin::client, Stage::admit, Cause::not_allowed});
    return false;
  }
  // Waiting for the handshake would not make it certain.
  if (facts_.early && !may_be_early(head)) {
    refuse(425, "This request cannot be served before the TLS handshake is over.",
           {Origin::client, Stage::admit, Cause::not_allowed});
    return false;
  }
  std::string_view host = http::normalise_host(head.host, arena_);
  if (head.form == http::TargetForm::asterisk) {
    normal_path_ = head.path;
  } else if (auto path = http::normalise_path(head.path, arena_)) {
    normal_path_ = *path;
  } else {
    refuse(400, "The path is not validly encoded.",
           {Origin::client, Stage::admit, Cause::bad_message});
    return false;
  }
  if (host.data() == nullptr && !head.host.empty()) {
    refuse(503, "Out of memory.", {Origin::self, Stage::admit, Cause::no_resources});
    return false;
  }
  route::Match match =
      runtime_.runtime->router.find(client_facts_.listen, host, normal_path_, head.method_text);
  site_ = match.site;
  if (client_facts_.secure && misdirected(host)) return false;
  if (site_ == nullptr) return nothing_here();
  if (redirect_rule().on && send_to_https(match, host)) return false;
  switch (match.kind) {
    case route::Match::Kind::found:
      route_ = match.route;
      break;
    case route::Match::Kind::method_not_allowed:
      end_with(Origin::client, Stage::route, Cause::not_allowed);
      send_local({.status = 405,
                  .body = "The method is not allowed here.\n",
                  .extra_name = "Allow",
                  .extra_value = match.allow,
                  .refusal = true});
      return false;
    default:
      return nothing_here();
  }
  std::uint64_t body_max = site_->limits.body_bytes_max;
  if (body_max != 0 && head.framing.kind == http::Framing::Kind::length &&
      head.framing.length > body_max) {
    refuse(413, "The request's body is too large.",
           {Origin::client, Stage::admit, Cause::too_large});
    return false;
  }
  return true;
}

bool Exchange::nothing_here() {
  refuse(404, "Nothing is served here.", {Origin::client, Stage::route, Cause::not_found});
  return false;
}

void Exchange::route(http::RequestHead&) {
  if (route_->respond) return respond(*route_->respond);
  if (route_->redirect) return redirect(*route_->redirect);
  start_upstream();
}

void Exchange::start_upstream() {
  ++tries_;
  context_.pools.acquire(*this, *runtime_.table, *route_->upstream, server_);
}

std::string_view Exchange::upstream_target() {
  if (head_->form == http::TargetForm::asterisk) return "*";
  std::string_view path = head_->path;
  if (!route_->strip_prefix.empty()) {
    // Where the bytes as sent do not begin with the prefix that matched, the normalised ones do.
    if (!path.starts_with(route_->strip_prefix)) path = normal_path_;
    if (path.starts_with(route_->strip_prefix)) path.remove_prefix(route_->strip_prefix.size());
  }
  bool slash = path.empty() || path[0] != '/';
  bool as_sent = route_->add_prefix.empty() && !slash && path.data() == head_->path.data();
  if (as_sent && head_->form == http::TargetForm::origin) return head_->target;
  std::size_t bytes = route_->add_prefix.size() + path.size() + head_->query.size() + 2;
  char* target = static_cast<char*>(arena_.allocate(bytes, 1));
  if (target == nullptr) return {};
  char* at = target;
  auto put = [&at](std::string_view text) {
    std::memcpy(at, text.data(), text.size());
    at += text.size();
  };
  put(route_->add_prefix);
  if (slash) put("/");
  put(path);
  if (head_->has_query) {
    put("?");
    put(head_->query);
  }
  return {target, static_cast<std::size_t>(at - target)};
}

std::string_view Exchange::upstream_host() {
  if (const config::Template* host = filter::host_override(route_->request_headers)) {
    return filter::expand(*host, facts_, arena_);
  }
  if (route_->preserve_host && !head_->authority.empty()) return head_->authority;
  const config::Endpoint& endpoint = server_->config().endpoint;
  return endpoint.kind == config::Endpoint::Kind::unix_socket ? "localhost"
                                                              : std::string_view(endpoint.text);
}

void Exchange::on_session(upstream::Session& session) {
  session_ = &session;
  server_ = &session.server();
  if (connected_ns_ == AccessRecord::never) connected_ns_ = since_start();
  if (!send_request()) {
    drop_upstream();
    refuse(503, "Out of memory.", {Origin::self, Stage::send_request, Cause::no_resources});
  } else if (request_ == RequestState::held) {
    keeps_body_ = session.may_hand_back();
    request_event(RequestEvent::relay);
    client_.want_body();
  }
  touch();
  settle();
}

bool Exchange::send_request() {
  session_->begin(*this, arena_, head_->method);
  reused_ = session_->reused();
  upstream::RequestLine line{
      .method = head_->method_text, .target = upstream_target(), .host = upstream_host()};
  if (line.target.data() == nullptr || line.host.data() == nullptr) return false;
  http::HeadWriter writer = session_->start_head(line);
  filter::write_request_fields(writer, *head_, facts_, snapshot().forwarding,
                               route_->request_headers, arena_);
  upstream::RequestFraming framing{.body = head_->framing,
                                   .expect_continue = head_->expect_continue,
                                   .te_trailers = head_->te_trailers};
  std::string_view upgrade = field_value(*head_, http::FieldId::upgrade);
  if (head_->upgrade && !upgrade_is_http(upgrade)) {
    framing.upgrade = true;
    framing.upgrade_value = upgrade;
  }
  if (!session_->send_head(writer, framing)) return false;
  if (kept_ != nullptr && !send_kept_body()) return false;
  // On another try the request may be whole already: an empty chunked body still has its end to
  // send. (Its trailers are gone with the buffer that they came in; dropping them is allowed, RFC
  // 9110 §6.5.1.)
  return request_ != RequestState::complete || session_->send_end(nullptr);
}

void Exchange::on_no_session(const base::Error& error, upstream::SharedServer* server) {
  if (server != nullptr) server_ = server;
  base::Error failed = error;
  if (server != nullptr) failed.retry = base::Retry::yes;
  if (server != nullptr && retry(failed)) return settle();
  bool tried = server != nullptr;
  Origin who = tried || error.code == base::ErrorCode::no_address ? Origin::upstream : Origin::self;
  Stage stage = tried ? Stage::connect : Stage::queue;
  std::uint16_t status = 503;
  if (tried) status = error.code == base::ErrorCode::timed_out ? 504 : 502;
  refuse(status, tried ? "The server cannot be reached." : "No server is free to answer.",
         {who, stage, cause_of(error.code)});
  settle();
}

// Another try, where the request cannot have had an effect: nothing of it was sent, or the server
// handed it back (RFC 9113 §8.7), or it is safe and met a connection that the server had given up
// (RFC 9110 §9.2.2, RFC 9112 §9.3.1). What was relayed of its body must be here still.
bool Exchange::retry(const base::Error& error) {
  if (response_ != ResponseState::none || continued_ || stopped_) return false;
  if (relayed_bytes_ != kept_bytes()) return false;
  if (request_ == RequestState::gone || request_ == RequestState::discarding) return false;
  bool nothing_sent = error.retry == base::Retry::yes && tries_ < tries_max;
  bool stale = error.retry == base::Retry::reused_only && http::is_safe(head_->method) && !retried_;
  if (!nothing_sent && !stale) return false;
  if (stale) retried_ = true;
  if (request_ == RequestState::relaying) {
    client_.hold_body();
    request_event(RequestEvent::hold);
  }
  count(context_.counters.upstream_retries);
  start_upstream();
  return true;
}

// The piece is in no pipe: who may hand a request back takes none.
void Exchange::keep_body(const net::Piece& piece) {
  if (kept_ == nullptr) {
    void* place = arena_.allocate(sizeof(net::SliceQueue), alignof(net::SliceQueue));
    if (place == nullptr) return forget_body();
    kept_ = new (place) net::SliceQueue(context_.streams.slices);
  }
  if (relayed_bytes_ > kept_bytes_max || !kept_->push(net::Piece(piece.share()))) forget_body();
}

void Exchange::forget_body() {
  keeps_body_ = false;
  if (kept_ != nullptr) kept_->clear();
}

bool Exchange::send_kept_body() {
  bool sent = true;
  kept_->for_each([&](const net::Slice& slice) {
    sent = sent && session_->send_body(slice.lease.share(0, slice.lease.size()));
  });
  return sent;
}

void Exchange::on_request_body(net::Piece piece) {
  request_bytes_ += piece.size();
  note_moved(piece);
  touch();
  if (request_ == RequestState::discarding) return;
  if (session_ == nullptr) return;
  std::uint64_t body_max = site_->limits.body_bytes_max;
  if (body_max != 0 && request_ != RequestState::tunneling && request_bytes_ > body_max) {
    drop_upstream();
    if (response_ == ResponseState::none) {
      refuse(413, "The request's body is too large.",
             {Origin::client, Stage::send_request, Cause::too_large});
    } else {
      end_with(Origin::client, Stage::send_request, Cause::too_large);
      cut();
    }
    return settle();
  }
  relayed_bytes_ += piece.size();
  if (keeps_body_) keep_body(piece);
  if (!session_->send_body(std::move(piece))) {
    return on_upstream_failed({base::ErrorCode::no_memory});
  }
  if (session_->request_pending() >= buffered_max()) {
    request_held_ = true;
    client_.hold_body();
  }
  measure();
}

void Exchange::on_request_end(http::FieldList* trailers) {
  if (request_ == RequestState::gone) return;  // cut, and only waiting for its last bytes to leave
  bool relay = session_ != nullptr && request_ != RequestState::discarding;
  request_event(RequestEvent::end);
  if (trailers != nullptr) filter::drop_managed_trailers(*trailers);
  if (relay && !session_->send_end(trailers)) on_upstream_failed({base::ErrorCode::no_memory});
  touch();
  settle();
}

void Exchange::on_request_progress() {
  touch();
  if (session_ != nullptr && request_held_ && session_->request_pending() < buffered_max() / 2) {
    request_held_ = false;
    client_.want_body();
  }
  measure();
  settle();
}

}  // namespace ringside::proxy
