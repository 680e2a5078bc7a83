#include "ringside/tls/engine.h"

#include <openssl/err.h>

#include <algorithm>
#include <utility>

#include "engine_callbacks.h"
#include "key_schedule.h"
#include "openssl.h"

namespace ringside::tls {

namespace {
// Longer than any method that is registered.
constexpr std::uint8_t method_letters_max = 20;
}  // namespace

Engine::~Engine() {
  release_ssl();
}

// ---- life

base::Result<void> Engine::start(SslPtr ssl, RecordScratch& scratch, const EngineOptions& options) {
  scratch_ = &scratch;
  keep_secrets_ = options.keep_secrets;
  messages_left_ = options.messages_max;
  records_a_key_ = options.records_a_key;
  ERR_clear_error();
  if (!set_up(std::move(ssl))) {
    ssl_.reset();
    return std::unexpected(base::Error{.code = base::ErrorCode::no_memory});
  }
  role_ = SSL_is_server(ssl_.get()) == 1 ? Role::server : Role::client;
  expects_early_ = options.early_data && role_ == Role::server;
  if (!expects_early_) SSL_set_max_early_data(ssl_.get(), 0);
  sniffing_ = role_ == Role::server;
  state_ = State::handshaking;
  if (role_ == Role::client) {
    Received ignored;
    advance_handshake(ignored);
  }
  return {};
}

bool Engine::set_up(SslPtr ssl) {
  ssl_ = std::move(ssl);
  if (!ssl_ || !EngineCallbacks::install(*this, ssl_.get())) return false;
  SSL_set_mode(ssl_.get(), SSL_MODE_AUTO_RETRY | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // Reading ahead would take bytes past the record at which the kernel takes over.
  SSL_set_read_ahead(ssl_.get(), 0);
  SSL_set_quiet_shutdown(ssl_.get(), 0);
  return true;
}

void Engine::drop_secrets() {
  keep_secrets_ = false;
  for (Direction* direction : {&rx_, &tx_}) {
    cleanse(direction->secret);
    direction->secret_bytes = 0;
  }
}

void Engine::release_ssl() {
  drop_secrets();
  store_.release();
  if (!ssl_) return;
  ssl_.reset();
  if (state_ != State::failed) state_ = State::released;
}

void Engine::release_buffers() {
  if (ssl_ != nullptr) SSL_free_buffers(ssl_.get());
}

// ---- receiving

Engine::Received Engine::receive(std::string_view ciphertext, std::span<char> plaintext) {
  Received received;
  input_ = ciphertext;
  if (close_received_) {
    received.status = Status::closed;
  } else if (state_ == State::handshaking || state_ == State::established) {
    ERR_clear_error();
    if (sniffing_) received.status = sniff();
    if (received.status == Status::need_input && expects_early_ && !sniffing_)
      received.status = read_early(plaintext, received);
    if (received.status == Status::need_input && state_ == State::handshaking && !sniffing_ &&
        !expects_early_)
      received.status = advance_handshake(received);
    // What comes now came later than early data, of which somebody may have to be told first.
    if (received.handshake_done && early_)
      received.status = all_given() ? Status::need_input : Status::more;
    else if (received.status == Status::need_input && state_ == State::established)
      received.status = answer_key_update(read_records(plaintext, received));
  } else {
    received.status = Status::failed;
  }
  received.consumed = ciphertext.size() - input_.size();
  input_left_ = !input_.empty();
  input_ = {};
  return received;
}

// The first byte of TLS is a record's type, below 32, or has its high bit set (a ClientHello in the
// form of SSL 2). So letters are not TLS, and with a blank behind them they are a request line.
Engine::Status Engine::sniff() {
  while (!input_.empty()) {
    const char byte = input_.front();
    const bool letter = (byte >= 'A' && byte <= 'Z') || byte == '-' || byte == '_';
    if (!letter && method_letters_ == 0) {
      sniffing_ = false;
      return Status::need_input;
    }
    input_.remove_prefix(1);
    if (byte == ' ') return fail(Failure::Cause::plain_http);
    if (!letter || ++method_letters_ > method_letters_max) {
      failure_.reason = "neither TLS nor HTTP";
      return fail(Failure::Cause::protocol);
    }
  }
  return Status::need_input;
}

// Until the client's EndOfEarlyData, or until it is known that there is none; then the handshake
// goes on.
Engine::Status Engine::read_early(std::span<char> out, Received& received) {
  while (received.plaintext < out.size()) {
    std::span<char> rest = out.subspan(received.plaintext);
    std::size_t bytes = 0;
    const int result = SSL_read_early_data(ssl_.get(), rest.data(), rest.size(), &bytes);
    if (result == SSL_READ_EARLY_DATA_ERROR || stopped_ != Failure::Cause::none) return classify(0);
    received.early |= bytes != 0 && !early_;
    early_ |= bytes != 0;
    received.plaintext += bytes;
    if (result == SSL_READ_EARLY_DATA_SUCCESS) continue;
    expects_early_ = false;
    // So that nothing of it comes together with the end of the handshake.
    return received.plaintext == 0 ? Status::need_input : Status::more;
  }
  return Status::more;
}

Engine::Status Engine::advance_handshake(Received& received) {
  const int result = SSL_do_handshake(ssl_.get());
  if (stopped_ != Failure::Cause::none || result != 1) return classify(result);
  state_ = State::established;
  received.handshake_done = true;
  if (fragments_limited()) {
    const SSL_SESSION* session = SSL_get0_session(ssl_.get());
    fragment_max_ = std::size_t{256} << SSL_SESSION_get_max_fragment_length(session);
  }
  return Status::need_input;
}

Engine::Status Engine::read_records(std::span<char> out, Received& received) {
  while (received.plaintext < out.size()) {
    std::span<char> rest = out.subspan(received.plaintext);
    std::size_t bytes = 0;
    const int result = SSL_read_ex(ssl_.get(), rest.data(), rest.size(), &bytes);
    if (result != 1) return classify(result);
    data_received_ = true;
    received.plaintext += bytes;
    if (stopped_ != Failure::Cause::none) return classify(result);
  }
  return all_given() ? Status::need_input : Status::more;
}

// OpenSSL would put it off until the next record (RFC 8446 §4.6.3 allows it), which may be the
// kernel's.
Engine::Status Engine::answer_key_update(Status status) {
  if (state_ != State::established || close_sent_) return status;
  if (SSL_get_key_update_type(ssl_.get()) == SSL_KEY_UPDATE_NONE) return status;
  if (tx_handed_over_) return fail(Failure::Cause::write_after_handoff);
  // In the middle of another message it has to wait.
  if (SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) != 1) return status;
  const int result = SSL_do_handshake(ssl_.get());
  return result == 1 && stopped_ == Failure::Cause::none ? status : classify(result);
}

Engine::Status Engine::end_of_input() {
  if (close_received_) return Status::closed;
  if (state_ == State::handshaking || state_ == State::established) fail(Failure::Cause::truncated);
  return Status::failed;
}

// ---- ends

// OpenSSL cannot be told to stop from inside a callback: it gets no more to read, and the call that
// is under way ends with this failure.
void Engine::stop(Failure::Cause cause) {
  stop_reading_ = true;
  if (stopped_ == Failure::Cause::none) stopped_ = cause;
}

Engine::Status Engine::classify(int result) {
  // What OpenSSL itself has to say comes before the alert that it could not send any more.
  const bool refused = stopped_ == Failure::Cause::write_after_handoff && ERR_peek_error() != 0;
  if (refused) return fail_in_openssl();
  if (stopped_ != Failure::Cause::none) return fail(stopped_);
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return Status::need_input;
    case SSL_ERROR_ZERO_RETURN:
      close_received_ = true;
      return Status::closed;
    case SSL_ERROR_WANT_X509_LOOKUP:
    case SSL_ERROR_WANT_ASYNC:
    case SSL_ERROR_WANT_ASYNC_JOB:
    case SSL_ERROR_WANT_CLIENT_HELLO_CB:
    case SSL_ERROR_WANT_RETRY_VERIFY:
      return Status::suspended;
    default:
      return fail_in_openssl();
  }
}

Engine::Status Engine::fail_in_openssl() {
  // The first error is the cause, later ones are what it led to; but those of the layers below say
  // less than the first one of TLS itself.
  unsigned long error = ERR_peek_error();
  for (unsigned long next; (next = ERR_get_error()) != 0;) {
    if (ERR_GET_LIB(next) != ERR_LIB_SSL) continue;
    error = next;
    break;
  }
  ERR_clear_error();
  const int reason = ERR_GET_REASON(error);
  failure_.reason = ERR_reason_error_string(error);
  if (ERR_GET_LIB(error) == ERR_LIB_SSL && reason >= SSL_AD_REASON_OFFSET) {
    failure_.has_alert = true;
    failure_.alert = static_cast<AlertDescription>(reason - SSL_AD_REASON_OFFSET);
    return fail(Failure::Cause::peer_alert);
  }
  if (ERR_GET_LIB(error) == ERR_LIB_SSL && reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
    failure_.reason = X509_verify_cert_error_string(SSL_get_verify_result(ssl_.get()));
  const bool alerted = failure_.has_alert || failure_.alert_to_send;
  const bool ours =
      alerted ? failure_.alert == SSL_AD_INTERNAL_ERROR : ERR_GET_LIB(error) != ERR_LIB_SSL;
  return fail(ours ? Failure::Cause::internal : Failure::Cause::protocol);
}

Engine::Status Engine::fail(Failure::Cause cause) {
  failure_.cause = cause;
  failure_.during_handshake = state_ == State::handshaking;
  state_ = State::failed;
  drop_secrets();
  return Status::failed;
}

// ---- what others ask

ConnectionInfo Engine::info() const {
  ConnectionInfo info;
  info.version = static_cast<Version>(SSL_version(ssl_.get()));
  const SSL_CIPHER* cipher = SSL_get_current_cipher(ssl_.get());
  info.cipher = SSL_CIPHER_get_name(cipher);
  info.cipher_id = SSL_CIPHER_get_protocol_id(cipher);
  const unsigned char* alpn = nullptr;
  unsigned alpn_bytes = 0;
  SSL_get0_alpn_selected(ssl_.get(), &alpn, &alpn_bytes);
  info.alpn = {reinterpret_cast<const char*>(alpn), alpn_bytes};
  const char* name = SSL_get_servername(ssl_.get(), TLSEXT_NAMETYPE_host_name);
  if (name != nullptr) info.server_name = name;
  info.resumed = SSL_session_reused(ssl_.get()) == 1;
  info.peer_certificate = SSL_get0_peer_certificate(ssl_.get());
  return info;
}

bool Engine::plaintext_pending() const {
  return ssl_ != nullptr && SSL_pending(ssl_.get()) != 0;
}

bool Engine::message_pending() const {
  return ssl_ != nullptr && (message_begun_ || SSL_is_init_finished(ssl_.get()) != 1);
}

bool Engine::fragments_limited() const {
  const SSL_SESSION* session = SSL_get0_session(ssl_.get());
  return session != nullptr &&
         SSL_SESSION_get_max_fragment_length(session) != TLSEXT_max_fragment_length_DISABLED;
}

// ---- keys

void Engine::tx_handed_over() {
  tx_handed_over_ = true;
}

std::optional<Aead> Engine::kernel_cipher() const {
  if (state_ != State::established) return std::nullopt;
  switch (SSL_CIPHER_get_cipher_nid(SSL_get_current_cipher(ssl_.get()))) {
    case NID_aes_128_gcm:
      return Aead::aes128_gcm;
    case NID_aes_256_gcm:
      return Aead::aes256_gcm;
    case NID_chacha20_poly1305:
      return Aead::chacha20_poly1305;
    default:
      return std::nullopt;
  }
}

namespace {

std::optional<KernelKeys> tls12_keys(SSL* ssl, Role writer, KernelKeys keys) {
  std::array<unsigned char, SSL_MAX_MASTER_KEY_LENGTH> master;
  std::array<unsigned char, SSL3_RANDOM_SIZE> client;
  std::array<unsigned char, SSL3_RANDOM_SIZE> server;
  const std::size_t bytes =
      SSL_SESSION_get_master_key(SSL_get0_session(ssl), master.data(), master.size());
  SSL_get_client_random(ssl, client.data(), client.size());
  SSL_get_server_random(ssl, server.data(), server.size());
  const EVP_MD* digest = SSL_CIPHER_get_handshake_digest(SSL_get_current_cipher(ssl));
  const bool good =
      bytes != 0 && digest != nullptr &&
      derive_tls12(
          EVP_MD_get_size(digest) == 48 ? Digest::sha384 : Digest::sha256,
          {.master = {master.data(), bytes}, .client_random = client, .server_random = server},
          writer, keys);
  cleanse(master);
  if (!good) return std::nullopt;
  return keys;
}

// The explicit nonce after the one that OpenSSL used last; big-endian.
void set_next_nonce(const std::array<unsigned char, RecordScanner::nonce_bytes>& last,
                    KernelKeys& keys) {
  std::copy(last.begin(), last.end(), keys.iv.begin() + 4);
  for (std::size_t i = keys.iv.size(); i-- > 4;) {
    if (++keys.iv[i] != 0) break;
  }
}

}  // namespace

std::optional<KernelKeys> Engine::keys(bool tx) const {
  const std::optional<Aead> aead = kernel_cipher();
  if (!aead || !keep_secrets_) return std::nullopt;
  const Direction& direction = tx ? tx_ : rx_;
  KernelKeys keys;
  keys.aead = *aead;
  keys.version = static_cast<Version>(SSL_version(ssl_.get()));
  keys.sequence = direction.records;
  if (keys.version == Version::tls13) {
    const Secret secret(direction.secret.data(), direction.secret_bytes);
    const Digest digest = secret.size() == 32 ? Digest::sha256 : Digest::sha384;
    if (secret.empty() || !derive_tls13(digest, secret, keys)) return std::nullopt;
    return keys;
  }
  const Role peer = role_ == Role::server ? Role::client : Role::server;
  std::optional<KernelKeys> derived = tls12_keys(ssl_.get(), tx ? role_ : peer, keys);
  if (derived && tx && *aead != Aead::chacha20_poly1305)
    set_next_nonce(direction.scanner.nonce(), *derived);
  return derived;
}

}  // namespace ringside::tls
