#include "ringside/tls/channel.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace ringside::tls {

using Status = net::RecordLayer::Status;

namespace {

// Read by people in front of a browser or curl, whose request was in clear.
constexpr std::string_view clear_text_answer =
    "HTTP/1.1 400 Bad Request\r\n"
    "Content-Type: text/plain; charset=utf-8\r\n"
    "Content-Length: 59\r\n"
    "Connection: close\r\n"
    "\r\n"
    "This port speaks TLS: the address must begin with https://\n";

Status status_of(Engine::Status status) {
  switch (status) {
    case Engine::Status::more:
      return Status::more;
    case Engine::Status::closed:
      return Status::ended;
    case Engine::Status::failed:
      return Status::failed;
    // No callback of ours suspends a handshake.
    case Engine::Status::suspended:
    case Engine::Status::need_input:
      break;
  }
  return Status::need_input;
}

// With one writer.
void count(RoleCounters::Counter& counter) {
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

}  // namespace

// ---- life

Channel::~Channel() {
  if (counters_ == nullptr) return;
  if (!secured_ && begun_) count(counters_->failed);
  if (secured_ && !stayed_ && !handoff_.complete())
    count(counters_->user_space[static_cast<std::size_t>(UserSpace::ended)]);
}

bool Channel::start(SslPtr ssl, bool kernel, bool required) {
  wanted_ = kernel;
  required_ = required;
  const bool early = server_context_ != nullptr && server_context_->options().replays != nullptr;
  return engine_.start(std::move(ssl), scratch_, {.keep_secrets = kernel, .early_data = early})
      .has_value();
}

bool Channel::accept(std::shared_ptr<ServerContext> context) {
  counters_ = &owner_.counters_.clients;
  server_context_ = std::move(context);
  if (server_context_->options().kernel_rekeys) handoff_.expect_renewal();
  return start(server_context_->new_session(), server_context_->options().kernel_tls,
               server_context_->credentials().config.ktls == config::KernelTls::require);
}

bool Channel::connect(std::shared_ptr<ClientContext> context, std::string_view host,
                      std::string_view server) {
  counters_ = &owner_.counters_.servers;
  client_context_ = std::move(context);
  if (client_context_->options().kernel_rekeys) handoff_.expect_renewal();
  return start(client_context_->new_session(host, server), client_context_->options().kernel_tls,
               client_context_->config().ktls == config::KernelTls::require);
}

void Channel::dispose() {
  owner_.destroy(this);
}

std::string Channel::failure_text() const {
  if (refused_)
    return "ktls = \"require\", but not for this connection: " +
           std::string(describe(wanted_ ? handoff_.refusal() : Refusal::kernel));
  return describe(kernel_failure_ ? kernel_failure_ : engine_.failure());
}

// ---- in user space

void Channel::note_secured() {
  const ConnectionInfo info = engine_.info();
  version_ = info.version;
  secured_ = true;
  count(info.resumed ? counters_->resumed : counters_->full);
  note_move();
}

net::RecordLayer::Opened Channel::open(std::string_view bytes, std::span<char> room) {
  begun_ |= !bytes.empty();
  const Engine::Received received = engine_.receive(bytes, room);
  Opened opened{.consumed = received.consumed,
                .plaintext = received.plaintext,
                .status = status_of(received.status),
                .secured = received.early || (received.handshake_done && !early_),
                .confirmed = received.handshake_done && early_};
  early_ = (early_ || received.early) && !received.handshake_done;
  if (received.early) count(counters_->early_data);
  if (received.handshake_done) {
    note_secured();
    if (refused_) opened.status = Status::failed;
  }
  if (opened.status != Status::failed) return opened;
  const Failure::Cause cause = engine_.failure().cause;
  if (cause == Failure::Cause::plain_http) clear_text_ = clear_text_answer;
  if (cause == Failure::Cause::too_many_messages) count(counters_->floods);
  return opened;
}

Status Channel::end_of_input() {
  if (!handoff_.rx_installed()) return status_of(engine_.end_of_input());
  if (close_read_) return Status::ended;
  return fail(Failure::Cause::truncated).status;
}

net::RecordLayer::Sealed Channel::seal(std::span<const std::string_view> pieces,
                                       std::span<char> room) {
  const Engine::Sent sent = engine_.send(pieces, room);
  return {.taken = sent.taken, .produced = sent.produced};
}

std::size_t Channel::take_own(std::span<char> room) {
  const std::size_t bytes = engine_.take_output(room);
  if (clear_text_.empty()) return bytes;
  const std::size_t clear = std::min(room.size() - bytes, clear_text_.size());
  std::memcpy(room.data() + bytes, clear_text_.data(), clear);
  clear_text_.remove_prefix(clear);
  return bytes + clear;
}

// ---- the kernel takes over

UserSpace Channel::reason_to_stay() const {
  if (!wanted_) {
    if (attach_failed_) return UserSpace::kernel;
    const config::KernelTls wish = server_context_ != nullptr
                                       ? server_context_->credentials().config.ktls
                                       : client_context_->config().ktls;
    return wish == config::KernelTls::off ? UserSpace::off : UserSpace::unavailable;
  }
  switch (handoff_.refusal()) {
    case Refusal::cipher:
      return UserSpace::cipher;
    case Refusal::fragments:
      return UserSpace::fragments;
    case Refusal::kernel:
      return UserSpace::kernel;
    case Refusal::no_keys:
      return UserSpace::keys;
    case Refusal::none:
    case Refusal::handshake:
    case Refusal::closing:
      break;
  }
  return UserSpace::ended;
}

// Whether it still may, or what follows when it does not.
void Channel::note_move() {
  const Refusal refusal = handoff_.refusal();
  moving_ = wanted_ && !handoff_.complete() &&
            (refusal == Refusal::none || (engine_.handshaking() && refusal == Refusal::handshake));
  if (moving_ || handoff_.complete()) return;
  engine_.drop_secrets();
  refused_ = required_ && refusal != Refusal::closing;
  if (secured_ && !std::exchange(stayed_, true))
    count(counters_->user_space[static_cast<std::size_t>(reason_to_stay())]);
}

// After the peer's FIN it would fail, so at once.
void Channel::on_socket(net::SysPort& sys, int fd) {
  begun_ |= engine_.role() == Role::client;
  attach_failed_ = wanted_ && attach_kernel_tls(sys, fd) != 0;
  wanted_ = wanted_ && !attach_failed_;
  note_move();
}

bool Channel::holds_receiving() const {
  return moving_ && engine_.established() && engine_.role() == Role::server &&
         !handoff_.tx_installed();
}

bool Channel::hand_over_sending(net::SysPort& sys, int fd) {
  if (handoff_.ready_to_install_tx() && handoff_.install_tx(sys, fd) == 0)
    count(counters_->kernel_sends);
  if (!engine_.handshaking()) note_move();
  return handoff_.tx_installed();
}

bool Channel::hand_over_receiving(net::SysPort& sys, int fd) {
  if (handoff_.ready_to_install_rx() && handoff_.install_rx(sys, fd) == 0)
    count(counters_->kernel_receives);
  note_move();
  return handoff_.rx_installed();
}

// ---- records of the kernel's

net::RecordLayer::Control Channel::fail(Failure::Cause cause) {
  kernel_failure_.cause = cause;
  return {.status = Status::failed, .data = {}};
}

msghdr* Channel::control_message() {
  if (control_ == nullptr) control_.reset(new (std::nothrow) ControlRecords(version_));
  return control_ == nullptr ? nullptr : control_->receive.message();
}

net::RecordLayer::Control Channel::on_control(net::SysPort& sys, int fd, std::size_t bytes) {
  const auto got = control_->receive.bytes(bytes);
  const std::optional<std::uint8_t> type = control_->receive.type();
  const ControlRecord record =
      type ? control_->parser.read(*type, got) : ControlRecord{.kind = ControlRecord::Kind::data};
  switch (record.kind) {
    case ControlRecord::Kind::data:
      return {.status = Status::more,
              .data = {reinterpret_cast<const char*>(got.data()), got.size()}};
    case ControlRecord::Kind::ignored:
      return {.status = Status::need_input, .data = {}};
    case ControlRecord::Kind::close:
      close_read_ = true;
      return {.status = Status::ended, .data = {}};
    case ControlRecord::Kind::alert:
      kernel_failure_.alert = record.alert;
      kernel_failure_.has_alert = true;
      return fail(Failure::Cause::peer_alert);
    case ControlRecord::Kind::key_update:
      return on_key_update(sys, fd, record.reply_requested);
    case ControlRecord::Kind::too_many:
      count(counters_->floods);
      return fail(Failure::Cause::too_many_messages);
    case ControlRecord::Kind::unexpected:
      break;
  }
  return fail(Failure::Cause::protocol);
}

// What follows has another key. A kernel that does not take it cannot open what follows; what we
// send may go on under our old one, unless the peer wants that changed too (RFC 8446 §4.6.3).
net::RecordLayer::Control Channel::on_key_update(net::SysPort& sys, int fd, bool reply_requested) {
  const bool answer = reply_requested && !close_said_;
  if (answer && !handoff_.can_renew_tx()) return fail(Failure::Cause::write_after_handoff);
  update_owed_ |= answer;
  if (handoff_.renew_rx(sys, fd) == 0) return {.status = Status::need_input, .data = {}};
  kernel_failure_.cause = Failure::Cause::unknown_key;
  return {.status = Status::unreadable, .data = {}};
}

msghdr* Channel::own_message() {
  return update_owed_ ? control_->update.message() : nullptr;
}

// The peer expects the next key behind our KeyUpdate, and so must the kernel.
int Channel::said(net::SysPort& sys, int fd) {
  return std::exchange(update_owed_, false) ? handoff_.renew_tx(sys, fd) : 0;
}

msghdr* Channel::closing_message() {
  return std::exchange(close_said_, true) ? nullptr : closing_.message();
}

}  // namespace ringside::tls
