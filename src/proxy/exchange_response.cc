// The response's side of an exchange: from the server to the client.
#include <utility>

#include "ringside/base/text.h"
#include "ringside/http/websocket.h"

#include "exchange.h"

namespace ringside::proxy {

using base::Origin;

void Exchange::on_response_head(http::ResponseHead& head) {
  touch();
  if (head.status == 101) return relay_switch(head);
  if (head.interim()) return relay_interim(head);
  relay_final(head);
}

// RFC 9110 §15.2: any number of them, never to an HTTP/1.0 client.
void Exchange::relay_interim(http::ResponseHead& head) {
  if (head_->version == http::Version::http10) return;
  if (head.status == 100) continued_ = true;
  response_event(ResponseEvent::interim);
  http::HeadWriter writer = client_.start_head(head.status, head.reason);
  static const config::HeaderEdits none;
  filter::write_response_fields(writer, head, facts_, snapshot().forwarding, none,
                                {.value = hsts().value});
  if (!client_.send_head(writer, {.interim = true})) {
    end_with(Origin::self, Stage::wait_response, Cause::no_resources);
    cut();
  }
}

bool Exchange::client_keeps(bool server_keeps) const {
  if (!keep_ || context_.draining) return false;
  // The server will not read the rest of the request, so it cannot be read off to find the next
  // one. A client that still waits for 100 may never send it.
  if (request_unread()) return server_keeps && !(head_->expect_continue && !continued_);
  return true;
}

void Exchange::relay_final(http::ResponseHead& head) {
  // To the client it would say that the tunnel is there.
  if (head_->websocket && head.status < 300)
    return refuse_answer("The server does not speak WebSocket here.");
  status_ = head.status;
  if (keeps_body_) forget_body();
  first_byte_ns_ = since_start();
  bool old_client = head_->version == http::Version::http10;
  ResponseFraming framing{.body = head.framing, .end_follows = head.end_follows};
  if (head.framing.kind == http::Framing::Kind::none) {
    // A bodiless answer may tell the length that the body would have; 204 and 1xx may not (RFC 9110
    // §8.6).
    const http::Field* length = head.fields.find(http::FieldId::content_length);
    bool may_tell = head_->method == http::Method::head || head.status == 304;
    if (may_tell && length != nullptr) {
      auto bytes = base::parse_decimal<std::uint64_t>(length->value);
      framing.tell_length = bytes.has_value();
      framing.length = bytes.value_or(0);
    }
  } else if (head.framing.kind != http::Framing::Kind::length) {
    // The end must be visible: chunked for those who know it, the connection's end for the others.
    framing.body.kind =
        old_client ? http::Framing::Kind::until_close : http::Framing::Kind::chunked;
  }
  // A server that has nothing but a status to send puts it into the head. Every client of gRPC
  // wants trailers, so that others pay nothing here.
  if (head_->te_trailers) note_grpc_status(head.fields);
  keep_ = client_keeps(head.keep_alive) && framing.body.kind != http::Framing::Kind::until_close;
  framing.keep_alive = keep_;
  response_framing_ = framing.body;
  end_follows_ = framing.end_follows || framing.body.kind == http::Framing::Kind::chunked;
  response_event(ResponseEvent::head);
  http::HeadWriter writer = client_.start_head(head.status, head.reason);
  filter::write_response_fields(writer, head, facts_, snapshot().forwarding,
                                route_->response_headers, hsts());
  if (!client_.send_head(writer, framing)) {
    end_with(Origin::self, Stage::response_body, Cause::no_resources);
    cut();
    settle();
  }
}

void Exchange::refuse_answer(std::string_view text) {
  drop_upstream();
  refuse(502, text, {Origin::upstream, Stage::wait_response, Cause::bad_message});
  settle();
}

// Also keeps the proof, which is for us, from the client (RFC 8441 §5).
bool Exchange::proves_websocket(http::ResponseHead& head) const {
  const http::Field* key = head_->fields.find(http::websocket_key_name);
  const http::Field* given = head.fields.find(http::websocket_accept_name);
  if (key == nullptr || given == nullptr) return false;
  const auto wanted = http::websocket_accept(key->value);
  if (given->value != std::string_view(wanted.data(), wanted.size())) return false;
  for (http::Field& field : head.fields) {
    if (base::equals_ignore_case(field.name, http::websocket_accept_name)) field.hop_by_hop = true;
  }
  return true;
}

void Exchange::note_grpc_status(const http::FieldList& fields) {
  const http::Field* status = fields.find("grpc-status");
  if (status != nullptr) grpc_status_ = arena_.copy(status->value);
}

void Exchange::relay_switch(http::ResponseHead& head) {
  const http::Field* wanted = head_->fields.find(http::FieldId::upgrade);
  const http::Field* given = head.fields.find(http::FieldId::upgrade);
  if (!head_->upgrade || wanted == nullptr || given == nullptr ||
      request_ != RequestState::complete)
    return refuse_answer("The server switched protocols unasked.");
  if (head_->websocket && !proves_websocket(head))
    return refuse_answer("The server does not prove that it speaks WebSocket.");
  status_ = head_->websocket ? 200 : 101;
  first_byte_ns_ = since_start();
  keep_ = false;
  response_event(ResponseEvent::tunnel);
  request_event(RequestEvent::tunnel);
  http::HeadWriter writer = client_.start_head(status_, head.reason);
  filter::write_response_fields(writer, head, facts_, snapshot().forwarding,
                                route_->response_headers, hsts());
  ResponseFraming framing{.upgrade = true, .upgrade_value = given->value};
  if (!client_.send_head(writer, framing)) {
    end_with(Origin::self, Stage::tunnel, Cause::no_resources);
    cut();
    return settle();
  }
  session_->enter_tunnel();
  client_.enter_tunnel();
  client_.want_body();
  touch();
}

void Exchange::on_response_body(net::Piece piece) {
  touch();
  response_body_bytes_ += piece.size();
  note_moved(piece);
  if (!client_.send_body(std::move(piece))) {
    end_with(Origin::self, stage_now(), Cause::no_resources);
    cut();
    return settle();
  }
  if (!response_parked_ && client_.response_pending() >= buffered_max()) {
    response_parked_ = true;
    session_->park();
  }
  measure();
}

void Exchange::on_response_end(const http::FieldList* trailers) {
  response_ended_ = true;
  if (trailers != nullptr) note_grpc_status(*trailers);
  bool was_tunnel = response_ == ResponseState::tunneling;
  response_event(ResponseEvent::end);
  if ((was_tunnel || end_follows_) && !client_.send_end(trailers)) {
    end_with(Origin::self, Stage::response_body, Cause::no_resources);
    cut();
  }
  touch();
  settle();
}

void Exchange::on_client_progress() {
  touch();
  if (response_parked_ && session_ != nullptr && client_.response_pending() < buffered_max() / 2) {
    response_parked_ = false;
    session_->resume();
  }
  settle();
}

void Exchange::on_upstream_failed(const base::Error& error) {
  Stage stage = stage_now();
  // By our own hand (memory) the session is still there.
  drop_upstream();
  if (retry(error)) return settle();
  if (response_ == ResponseState::none) {
    bool ours = error.origin == Origin::self;
    refuse(ours ? 503 : 502, ours ? "Out of memory." : "The server did not answer as it should.",
           {error.origin, stage, cause_of(error.code)});
  } else if (response_ == ResponseState::complete) {
    // The answer is whole; only the rest of the request has nowhere to go.
    if (request_unread()) request_event(RequestEvent::lost);
  } else {
    end_with(error.origin, stage, cause_of(error.code));
    cut();
  }
  settle();
}

}  // namespace ringside::proxy
