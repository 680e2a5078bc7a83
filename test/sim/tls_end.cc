#include "tls_end.h"

#include <algorithm>
#include <utility>

namespace ringside::sim {

namespace {

constexpr std::size_t message_head_bytes = 4;
constexpr std::uint64_t tickets_max = 2;

// A secret for each sender, in the handshake and after it.
std::uint64_t secret_of(TlsEnd::Role sender, bool handshake) {
  return (sender == TlsEnd::Role::client ? 0x1000U : 0x2000U) + (handshake ? 0x40U : 0U);
}

constexpr RecordKeys keys_of_early_data{.secret = 0x1020, .sequence = 0};

TlsEnd::Role other(TlsEnd::Role role) {
  return role == TlsEnd::Role::client ? TlsEnd::Role::server : TlsEnd::Role::client;
}

}  // namespace

TlsEnd::TlsEnd(Role role, Random random, bool h2)
    : role_(role),
      random_(random),
      expected_(role == Role::client ? server_hello : client_hello),
      rx_{.secret = secret_of(other(role), true)},
      tx_{.secret = secret_of(role, true)},
      h2_(h2) {}

void TlsEnd::add(std::string& flight, Message message, std::size_t bytes) {
  flight += static_cast<char>(message);
  flight += '\0';
  flight += static_cast<char>(bytes >> 8);
  flight += static_cast<char>(bytes);
  flight.append(bytes, static_cast<char>('a' + message));
}

void TlsEnd::send_flight(std::string_view messages) {
  for (std::uint64_t more = random_.below(4); !messages.empty(); more -= more != 0 ? 1U : 0U) {
    const std::size_t some = more == 0 ? messages.size() : random_.between(1, messages.size());
    append_record(own_, RecordType::handshake, messages.substr(0, some), tx_);
    messages.remove_prefix(some);
  }
}

void TlsEnd::begin() {
  std::string flight;
  add(flight, client_hello, random_.between(40, 300));
  // An extension of its own would be other bytes for those that do not want it.
  if (h2_) flight.back() = 'h';
  if (early_offered_) flight.back() = 'e';
  send_flight(flight);
  if (!early_offered_) return;
  early_ = true;
  handshake_ = std::exchange(tx_, keys_of_early_data);
}

void TlsEnd::confirm() {
  must_confirm_ = false;
  std::string flight;
  add(flight, end_of_early_data, 0);
  send_flight(flight);
  tx_ = handshake_;
  finish();
  state_ = State::established;
}

// A client's last flight.
void TlsEnd::finish() {
  std::string flight;
  add(flight, finished, 32);
  send_flight(flight);
  tx_ = {.secret = secret_of(role_, false)};
}

void TlsEnd::secure() {
  rx_ = {.secret = secret_of(other(role_), false)};
  must_confirm_ = role_ == Role::client && early_;
  if (must_confirm_) return;
  state_ = State::established;
  if (role_ == Role::client) return;
  for (std::uint64_t tickets = random_.below(tickets_max + 1); tickets != 0; --tickets)
    say_ticket();
}

void TlsEnd::say_close() {
  if (!established() || close_said_) return;
  append_record(own_, RecordType::alert, std::string("\x01\x00", 2), tx_);
  close_said_ = true;
}

void TlsEnd::say_alert(std::uint8_t alert) {
  const char fatal[] = {2, static_cast<char>(alert)};
  append_record(own_, RecordType::alert, {fatal, sizeof fatal}, tx_);
}

void TlsEnd::say_ticket() {
  std::string message;
  add(message, ticket, random_.between(20, 200));
  send_flight(message);
}

void TlsEnd::say_key_update(bool ask_for_one) {
  const char message[] = {key_update, 0, 0, 1, ask_for_one ? '\x01' : '\x00'};
  append_record(own_, RecordType::handshake, {message, sizeof message}, tx_);
  tx_.update();
}

TlsEnd::Event TlsEnd::fail(Alert alert) {
  state_ = State::failed;
  if (!close_said_) say_alert(alert);
  return Event::failed;
}

TlsEnd::Event TlsEnd::hear(std::string_view bytes, std::size_t* taken) {
  *taken = 0;
  if (failed()) return Event::failed;
  if (ended_) return Event::ended;
  while (*taken < bytes.size()) {
    *taken += reader_.feed(bytes.substr(*taken));
    if (!reader_.whole()) return Event::none;
    if (passes_over()) {
      reader_.drop();
      continue;
    }
    std::optional<RecordReader::Record> record = reader_.take(rx_);
    const Event event = record ? take_record(std::move(*record)) : fail(bad_record);
    if (event != Event::none) return event;
  }
  return Event::none;
}

// Early data that was not taken: nobody has the keys.
bool TlsEnd::passes_over() const {
  return role_ == Role::server && early_offered_ && !early_taken_ && !established() &&
         reader_.type() == RecordType::data;
}

bool TlsEnd::hears_data() const {
  return established() || early_keys_ || must_confirm_;
}

TlsEnd::Event TlsEnd::take_record(RecordReader::Record record) {
  if (record.type == RecordType::handshake) return take_messages(record.payload);
  // A message that has begun must be whole before anything else comes (RFC 8446 §5.1).
  if (!messages_.empty()) return fail(unexpected_message);
  if (record.type == RecordType::alert) return take_alert(record.payload);
  if (!hears_data()) return fail(unexpected_message);
  data_ = std::move(record.payload);
  if (data_.empty()) return Event::none;
  early_ |= early_keys_;
  return Event::data;
}

TlsEnd::Event TlsEnd::take_alert(std::string_view payload) {
  if (payload.size() != 2) return fail(unexpected_message);
  peer_alert_ = static_cast<std::uint8_t>(payload[1]);
  if (peer_alert_ == close_notify && established()) {
    ended_ = true;
    return Event::ended;
  }
  state_ = State::failed;
  return Event::failed;
}

TlsEnd::Event TlsEnd::take_messages(std::string_view payload) {
  messages_ += payload;
  Event out = Event::none;
  while (messages_.size() >= message_head_bytes) {
    const auto at = [this](std::size_t i) { return static_cast<unsigned char>(messages_[i]); };
    const std::size_t body = static_cast<std::size_t>(at(2)) << 8 | at(3);
    if (at(1) != 0) return fail(unexpected_message);
    if (messages_.size() < message_head_bytes + body) break;
    const std::string whole = messages_.substr(0, message_head_bytes + body);
    messages_.erase(0, whole.size());
    const auto message = static_cast<Message>(whole[0]);
    const Event event = take_message(message, std::string_view(whole).substr(message_head_bytes));
    if (event == Event::failed) return event;
    if (event != Event::none) out = event;
    // The last under its key.
    const bool last = message == key_update || message == finished || message == end_of_early_data;
    if (last && !messages_.empty()) return fail(unexpected_message);
  }
  return out;
}

TlsEnd::Event TlsEnd::take_message(Message message, std::string_view body) {
  if (!established()) return shake_hands(message, body);
  if (message == ticket && role_ == Role::client) return Event::none;
  if (message != key_update || body.size() != 1) return fail(unexpected_message);
  rx_.update();
  if (body[0] != 0 && !close_said_) say_key_update(false);
  return Event::none;
}

TlsEnd::Event TlsEnd::shake_hands(Message message, std::string_view body) {
  const bool certificates = role_ == Role::client && expected_ == finished;
  if (certificates && message == certificate) return Event::none;
  if (message == end_of_early_data && early_keys_) return hear_end_of_early_data();
  if (message != expected_ || early_keys_) return fail(unexpected_message);
  if (message == client_hello) return hear_hello(body);
  if (message == server_hello) {
    expected_ = finished;
    h2_ = h2_ && body.ends_with('h');
    if (!early_offered_ || body.ends_with('e')) return Event::none;
    early_ = false;
    early_refused_ = true;
    tx_ = handshake_;
    return Event::none;
  }
  if (role_ == Role::client && !early_) finish();
  secure();
  return Event::secured;
}

TlsEnd::Event TlsEnd::hear_hello(std::string_view body) {
  expected_ = finished;
  h2_ = h2_ && body.ends_with('h');
  early_offered_ = body.ends_with('e');
  early_taken_ = early_offered_ && takes_early_ && takes_early_();
  std::string flight;
  add(flight, server_hello, random_.between(40, 100));
  if (h2_) flight.back() = 'h';
  if (early_taken_) flight.back() = 'e';
  for (std::uint64_t more = random_.between(1, 2); more != 0; --more)
    add(flight, certificate, random_.between(100, 900));
  add(flight, finished, 32);
  send_flight(flight);
  tx_ = {.secret = secret_of(role_, false)};
  early_keys_ = early_taken_;
  if (early_keys_) handshake_ = std::exchange(rx_, keys_of_early_data);
  return Event::none;
}

TlsEnd::Event TlsEnd::hear_end_of_early_data() {
  early_keys_ = false;
  rx_ = handshake_;
  return Event::early_ended;
}

}  // namespace ringside::sim
