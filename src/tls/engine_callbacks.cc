#include "engine_callbacks.h"

#include <openssl/bio.h>

#include <algorithm>
#include <cstring>

#include "key_schedule.h"

namespace ringside::tls {

namespace {

int ssl_index() {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

long control(BIO*, int command, long, void*) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

int create(BIO* bio) {
  BIO_set_init(bio, 1);
  return 1;
}

BIO_METHOD* make_method() {
  BIO_METHOD* method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "ringside");
  if (method == nullptr) return nullptr;
  BIO_meth_set_create(method, &create);
  BIO_meth_set_ctrl(method, &control);
  BIO_meth_set_read_ex(method, &EngineCallbacks::read);
  BIO_meth_set_write_ex(method, &EngineCallbacks::write);
  return method;
}

int value_of(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

// How many bytes; 0 when it is not hexadecimal or too long.
std::uint8_t read_hex(std::string_view text, std::span<unsigned char> out) {
  if (text.size() % 2 != 0 || text.size() / 2 > out.size()) return 0;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = value_of(text[i]);
    const int low = value_of(text[i + 1]);
    if (high < 0 || low < 0) return 0;
    out[i / 2] = static_cast<unsigned char>(high * 16 + low);
  }
  return static_cast<std::uint8_t>(text.size() / 2);
}

}  // namespace

void EngineCallbacks::watch_secrets(SSL_CTX* context) {
  SSL_CTX_set_keylog_callback(context, &secret);
}

bool EngineCallbacks::install(Engine& engine, SSL* ssl) {
  static BIO_METHOD* const method = make_method();
  BIO* bio = method != nullptr ? BIO_new(method) : nullptr;
  if (bio == nullptr) return false;
  BIO_set_data(bio, &engine);
  SSL_set_bio(ssl, bio, bio);
  SSL_set_msg_callback(ssl, &message);
  SSL_set_msg_callback_arg(ssl, &engine);
  return SSL_set_ex_data(ssl, ssl_index(), &engine) == 1;
}

Engine* EngineCallbacks::engine_of(const SSL* ssl) {
  return static_cast<Engine*>(SSL_get_ex_data(ssl, ssl_index()));
}

int EngineCallbacks::read(BIO* bio, char* out, std::size_t bytes, std::size_t* done) {
  BIO_clear_retry_flags(bio);
  *done = static_cast<Engine*>(BIO_get_data(bio))->read_input({out, bytes});
  if (*done != 0) return 1;
  BIO_set_retry_read(bio);
  return 0;
}

int EngineCallbacks::write(BIO* bio, const char* from, std::size_t bytes, std::size_t* done) {
  BIO_clear_retry_flags(bio);
  *done = bytes;
  return static_cast<Engine*>(BIO_get_data(bio))->write_output({from, bytes}) ? 1 : 0;
}

void EngineCallbacks::message(int sent, int, int content_type, const void* bytes, std::size_t size,
                              SSL*, void* engine) {
  static_cast<Engine*>(engine)->on_message(sent != 0, content_type,
                                           {static_cast<const unsigned char*>(bytes), size});
}

void EngineCallbacks::secret(const SSL* ssl, const char* line) {
  if (Engine* engine = engine_of(ssl); engine != nullptr) engine->on_secret(line);
}

// ---- bytes

std::size_t Engine::read_input(std::span<char> out) {
  if (stop_reading_ || input_.empty()) return 0;
  const std::size_t some = std::min(out.size(), input_.size());
  std::memcpy(out.data(), input_.data(), some);
  rx_.scanner.pass({input_.data(), some});
  input_.remove_prefix(some);
  return some;
}

// Never refuses for lack of room, so no call of OpenSSL has to be repeated with the same bytes.
bool Engine::write_output(std::span<const char> bytes) {
  if (tx_handed_over_) {
    stop(Failure::Cause::write_after_handoff);
    return true;
  }
  tx_.scanner.pass(bytes);
  const std::size_t some = std::min(bytes.size(), output_.size() - output_used_);
  if (some != 0) std::memcpy(output_.data() + output_used_, bytes.data(), some);
  output_used_ += some;
  if (store_.append(bytes.subspan(some))) return true;
  stop(Failure::Cause::internal);
  return false;
}

// ---- records, messages, secrets

void Engine::on_message(bool sent, int content_type, std::span<const unsigned char> bytes) {
  Direction& direction = sent ? tx_ : rx_;
  switch (content_type) {
    case SSL3_RT_HEADER:
      // In TLS 1.2 the keys change behind ChangeCipherSpec. In TLS 1.3 it means nothing and comes
      // before the secrets. (It has no callback as a message when it is received.)
      ++direction.records;
      if (bytes[0] == SSL3_RT_CHANGE_CIPHER_SPEC) direction.records = 0;
      [[fallthrough]];
    case SSL3_RT_INNER_CONTENT_TYPE:
      // OpenSSL does not tell whether a message goes on behind a record, so that any record of the
      // kind counts as if it did, until one of data or what on_handshake_message() knows.
      if (!sent) message_begun_ = state_ == State::established && bytes[0] == SSL3_RT_HANDSHAKE;
      return;
    case SSL3_RT_ALERT:
      if (bytes.size() == 2) return on_alert(sent, bytes);
      return;
    case SSL3_RT_HANDSHAKE:
      if (!bytes.empty()) return on_handshake_message(sent, bytes[0]);
      return;
    default:
      return;
  }
}

void Engine::on_alert(bool sent, std::span<const unsigned char> bytes) {
  if (!sent) return;
  if (bytes[1] == SSL_AD_NO_RENEGOTIATION) return count_message();
  if (bytes[0] != SSL3_AL_FATAL) return;
  (tx_handed_over_ ? failure_.alert_to_send : failure_.has_alert) = true;
  failure_.alert = bytes[1];
}

void Engine::on_handshake_message(bool sent, unsigned char type) {
  if (state_ != State::established) return;
  if (!sent) count_message();
  if (type != SSL3_MT_KEY_UPDATE) return;
  Direction& direction = sent ? tx_ : rx_;
  direction.records = 0;
  // OpenSSL insists that it ends its record.
  if (!sent) message_begun_ = false;
  const std::span<unsigned char> secret(direction.secret.data(), direction.secret_bytes);
  const Digest digest = secret.size() == 32 ? Digest::sha256 : Digest::sha384;
  if (!secret.empty() && !next_secret(digest, secret)) drop_secrets();
}

// The line of a direction's secret comes at the moment when its keys change (measured: 430 runs
// over versions, ciphers and roles).
void Engine::on_secret(std::string_view line) {
  const bool of_server = line.starts_with("SERVER_TRAFFIC_SECRET_0 ");
  if (!of_server && !line.starts_with("CLIENT_TRAFFIC_SECRET_0 ")) return;
  Direction& direction = of_server == (role_ == Role::server) ? tx_ : rx_;
  direction.records = 0;
  if (!keep_secrets_) return;
  line.remove_prefix(line.rfind(' ') + 1);
  direction.secret_bytes = read_hex(line, direction.secret);
}

// One that never stops asking would cost us a handshake message each.
void Engine::count_message() {
  if (messages_left_ == 0) return stop(Failure::Cause::too_many_messages);
  --messages_left_;
}

}  // namespace ringside::tls
