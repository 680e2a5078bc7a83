#include "ringside/tls/channel.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ringside::tls {

namespace {

// Read by people in front of a browser or curl, whose request was in clear.
constexpr std::string_view clear_text_answer =
    "HTTP/1.1 400 Bad Request\r\n"
    "Content-Type: text/plain; charset=utf-8\r\n"
    "Content-Length: 59\r\n"
    "Connection: close\r\n"
    "\r\n"
    "This port speaks TLS: the address must begin with https://\n";

net::RecordLayer::Status status_of(Engine::Status status) {
  switch (status) {
    case Engine::Status::more:
      return net::RecordLayer::Status::more;
    case Engine::Status::closed:
      return net::RecordLayer::Status::ended;
    case Engine::Status::failed:
      return net::RecordLayer::Status::failed;
    // No callback of ours suspends a handshake.
    case Engine::Status::suspended:
    case Engine::Status::need_input:
      break;
  }
  return net::RecordLayer::Status::need_input;
}

}  // namespace

bool Channel::accept(std::shared_ptr<ServerContext> context) {
  server_context_ = std::move(context);
  return engine_.start(server_context_->new_session(), scratch_).has_value();
}

bool Channel::connect(std::shared_ptr<ClientContext> context, std::string_view host,
                      std::string_view server) {
  client_context_ = std::move(context);
  return engine_.start(client_context_->new_session(host, server), scratch_).has_value();
}

std::string Channel::failure_text() const {
  return describe(engine_.failure());
}

net::RecordLayer::Opened Channel::open(std::string_view bytes, std::span<char> room) {
  const Engine::Received received = engine_.receive(bytes, room);
  if (received.status == Engine::Status::failed &&
      engine_.failure().cause == Failure::Cause::plain_http) {
    clear_text_ = clear_text_answer;
  }
  return {.consumed = received.consumed,
          .plaintext = received.plaintext,
          .status = status_of(received.status),
          .secured = received.handshake_done};
}

net::RecordLayer::Status Channel::end_of_input() {
  return status_of(engine_.end_of_input());
}

net::RecordLayer::Sealed Channel::seal(std::span<const std::string_view> pieces,
                                       std::span<char> room) {
  const Engine::Sent sent = engine_.send(pieces, room);
  return {.taken = sent.taken, .produced = sent.produced};
}

std::size_t Channel::take_own(std::span<char> room) {
  std::size_t bytes = engine_.take_output(room);
  const std::size_t clear = std::min(room.size() - bytes, clear_text_.size());
  std::memcpy(room.data() + bytes, clear_text_.data(), clear);
  clear_text_.remove_prefix(clear);
  return bytes + clear;
}

}  // namespace ringside::tls
