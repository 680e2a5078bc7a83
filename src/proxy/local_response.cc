// Answers made here: `respond` and `redirect` routes, and refusals.
#include <algorithm>
#include <cstdio>
#include <ctime>

#include "ringside/base/text.h"
#include "ringside/filter/local_fields.h"

#include "exchange.h"
#include "grpc_answer.h"

namespace ringside::proxy {

using base::Origin;

namespace {

bool sets(const LocalAnswer& answer, std::string_view name) {
  if (answer.configured == nullptr) return false;
  const auto& headers = answer.configured->headers;
  return std::any_of(headers.begin(), headers.end(), [name](const auto& field) {
    return base::equals_ignore_case(field.first, name);
  });
}

bool bodiless(std::uint16_t status) {
  return status < 200 || status == 204 || status == 304;
}

}  // namespace

std::string_view DateCache::at(std::uint64_t realtime_ns) {
  std::uint64_t second = realtime_ns / 1'000'000'000;
  if (second != second_ || size_ == 0) {
    second_ = second;
    auto time = static_cast<std::time_t>(second);
    std::tm parts{};
    ::gmtime_r(&time, &parts);
    static constexpr const char* days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static constexpr const char* months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                             "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    // IMF-fixdate of RFC 9110 §5.6.7; strftime would ask the locale.
    int size = std::snprintf(text_, sizeof text_, "%s, %02d %s %04d %02d:%02d:%02d GMT",
                             days[parts.tm_wday % 7], parts.tm_mday % 100,
                             months[parts.tm_mon % 12], (1900 + parts.tm_year) % 10000,
                             parts.tm_hour % 100, parts.tm_min % 100, parts.tm_sec % 100);
    size_ = static_cast<std::size_t>(size);
  }
  return {text_, size_};
}

void Exchange::respond(const config::Respond& answer) {
  end_with(Origin::self, Stage::respond, Cause::complete);
  send_local({.status = answer.status, .body = answer.body, .configured = &answer});
}

void Exchange::redirect(const config::Redirect& to) {
  std::string_view location = filter::expand(to.location, facts_, arena_);
  if (location.data() == nullptr) {
    return refuse(503, "Out of memory.", {Origin::self, Stage::respond, Cause::no_resources});
  }
  end_with(Origin::self, Stage::respond, Cause::complete);
  send_local({.status = to.status, .extra_name = "Location", .extra_value = location});
}

void Exchange::on_bad_head(const http::ParseFault& fault) {
  keep_ = false;
  refuse(fault.status, fault.reason,
         {Origin::client, Stage::read_head,
          fault.status == 400 || fault.status == 505 ? Cause::bad_message : Cause::too_large});
  if (request_ != RequestState::gone) request_event(RequestEvent::lost);
  settle();
}

void Exchange::on_head_timeout() {
  if (response_ != ResponseState::none) return;  // lost in this very turn
  keep_ = false;
  refuse(408, "The request's header did not come in time.",
         {Origin::client, Stage::read_head, Cause::timed_out});
  if (request_ != RequestState::gone) request_event(RequestEvent::lost);
  settle();
}

void Exchange::on_bad_body(const http::ParseFault& fault) {
  Stage stage = stage_now();
  drop_upstream();
  keep_ = false;
  if (response_ == ResponseState::none) {
    refuse(fault.status, fault.reason, {Origin::client, stage, Cause::bad_message});
    if (request_ != RequestState::gone) request_event(RequestEvent::lost);
  } else if (response_ == ResponseState::complete) {
    request_event(RequestEvent::lost);
  } else {
    end_with(Origin::client, stage, Cause::bad_message);
    cut();
  }
  settle();
}

// An error answer. What the reason was is the log's business; the body says it in one sentence.
void Exchange::refuse(std::uint16_t status, std::string_view text, EndReason why) {
  end_with(why.who, why.stage, why.cause);
  std::size_t bytes = text.size() + 1;
  auto* line = static_cast<char*>(arena_.allocate(bytes, 1));
  if (line == nullptr) return cut();
  text.copy(line, text.size());
  line[text.size()] = '\n';
  send_local({.status = status, .body = {line, bytes}, .refusal = true});
}

// Decides what becomes of a body that nobody wants.
void Exchange::discard_request() {
  if (head_ == nullptr || !request_unread() || request_ == RequestState::reading_head) return;
  // Of a chunked body nobody knows how much is to come, so keeping the connection cannot be
  // promised.
  bool small = head_->framing.kind == http::Framing::Kind::length &&
               head_->framing.length - request_bytes_ <= discard_bytes_max;
  bool may_never_come = head_->expect_continue && !continued_;
  if (!keep_ || !small || may_never_come) {
    keep_ = false;
    linger_ = true;
    client_.hold_body();
  }
  request_event(RequestEvent::discard);
  if (!linger_) client_.want_body();
}

// The head but for its framing. What the route says goes before what the site says, and that before
// our own.
http::HeadWriter Exchange::start_local(const LocalAnswer& answer) {
  using filter::LocalFields;
  static const config::HeaderEdits none;
  http::HeadWriter writer = client_.start_head(answer.status, {});
  LocalFields fields(writer, route_ == nullptr ? none : route_->response_headers,
                     answer.refusal ? LocalFields::Kind::error : LocalFields::Kind::answer);
  fields.field("Server", snapshot().server.server_name);
  fields.field("Date", context_.date.at(context_.ring.realtime_ns()));
  if (answer.configured != nullptr) {
    for (const auto& [name, value] : answer.configured->headers)
      fields.field(name, value);
  }
  if (!answer.grpc_status.empty()) {
    fields.field("Content-Type", "application/grpc");
    fields.field("grpc-status", answer.grpc_status);
    fields.field("grpc-message", answer.grpc_message);
  }
  if (!answer.body.empty() && !sets(answer, "content-type"))
    fields.field("Content-Type", "text/plain; charset=utf-8");
  if (has_hsts() && !sets(answer, filter::hsts_name)) {
    const filter::Hsts hsts = hsts_of_site();
    if (hsts.secure) fields.field("Strict-Transport-Security", hsts.value);
  }
  if (!answer.extra_name.empty()) fields.field(answer.extra_name, answer.extra_value);
  if (!facts_.request_id.empty()) fields.field("X-Request-Id", facts_.request_id);
  fields.finish(facts_);
  return writer;
}

// To a call of gRPC, whose clients know no other status than its own.
void Exchange::refuse_call(const LocalAnswer& answer) {
  const std::string_view line = answer.body.substr(0, answer.body.find('\n'));
  const std::string_view message = grpc_message(line, arena_);
  if (message.data() == nullptr) return cut();
  grpc_status_ = grpc_status_of(answer.status);
  send_local({.extra_name = answer.extra_name,
              .extra_value = answer.extra_value,
              .refusal = true,
              .grpc_status = grpc_status_,
              .grpc_message = message});
}

void Exchange::send_local(const LocalAnswer& answer) {
  const bool call = !answer.grpc_status.empty();
  if (answer.refusal && !call && head_ != nullptr && is_grpc(*head_)) return refuse_call(answer);
  const std::uint16_t status = answer.status;
  const std::string_view body = answer.body;
  status_ = status;
  if (first_byte_ns_ == AccessRecord::never) first_byte_ns_ = since_start();
  discard_request();
  if (context_.draining) keep_ = false;
  response_event(ResponseEvent::head);
  http::HeadWriter writer = start_local(answer);
  // It has no length either: a head that is the trailers.
  bool none = call || bodiless(status) || (head_ != nullptr && head_->method == http::Method::head);
  ResponseFraming framing{.keep_alive = keep_};
  if (none) {
    framing.tell_length = !call && !bodiless(status);
    framing.length = body.size();
  } else {
    framing.body = {.kind = http::Framing::Kind::length, .length = body.size()};
  }
  response_framing_ = framing.body;
  bool sent = client_.send_head(writer, framing);
  if (sent && !none) {
    sent = client_.send_body_view(body);
    response_body_bytes_ += body.size();
  }
  if (!sent) {
    end_with(Origin::self, Stage::respond, Cause::no_resources);
    return cut();
  }
  response_event(ResponseEvent::end);
  touch();
}

}  // namespace ringside::proxy
