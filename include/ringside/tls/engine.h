// One TLS connection without a socket: bytes in, bytes out (OpenSSL 3.0).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "ringside/base/error.h"
#include "ringside/tls/failure.h"
#include "ringside/tls/kernel_keys.h"
#include "ringside/tls/record_scanner.h"
#include "ringside/tls/session.h"

// OpenSSL's type, so that nobody needs its headers to use this one.
struct x509_st;

namespace ringside::tls {

inline constexpr std::size_t record_plaintext_max = 16384;
// Room with which a record of any cipher suite of TLS 1.2 and 1.3 is sure to fit.
inline constexpr std::size_t record_overhead_max = 96;
inline constexpr std::size_t record_bytes_max = record_plaintext_max + record_overhead_max;

// Where small pieces are put together to one record. One a ring thread; outlives its engines.
struct RecordScratch {
  alignas(64) std::array<char, record_plaintext_max> plaintext;
};

// Output that had no room with the caller: whole handshake flights, alerts, the rest of a record.
// Bounded by what OpenSSL writes in one call. Given back to the heap when it is empty.
class OutputStore {
 public:
  OutputStore() = default;
  ~OutputStore() { release(); }
  OutputStore(const OutputStore&) = delete;
  OutputStore& operator=(const OutputStore&) = delete;

  // False when memory ran out.
  bool append(std::span<const char> bytes);
  // Moves the first bytes out; how many.
  std::size_t take(std::span<char> out);
  bool empty() const { return begin_ == end_; }
  std::size_t bytes() const { return end_ - begin_; }
  void clear() { begin_ = end_ = 0; }
  void release();

 private:
  char* data_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

struct EngineOptions {
  // Kernel TLS is wished for: secrets are kept until the hand-off or drop_secrets().
  bool keep_secrets = false;
  // A server's context takes early data: it is given out as it comes, so receive() gets room for
  // plaintext from the first call on.
  bool early_data = false;
  // KeyUpdates, tickets and requests for renegotiation that the peer may send after the handshake.
  unsigned messages_max = 64;
  // Sent under one key before a KeyUpdate of ours (TLS 1.3): RFC 8446 §5.5 allows 2^24.5 with
  // AES-GCM.
  std::uint64_t records_a_key = std::uint64_t{1} << 24;
};

// What a handshake agreed on. Views are valid as long as Engine::has_ssl().
struct ConnectionInfo {
  Version version = Version::tls13;
  std::string_view cipher;       // OpenSSL's name
  std::uint16_t cipher_id = 0;   // IANA's number
  std::string_view alpn;         // empty: none was agreed on
  std::string_view server_name;  // empty: none was asked for
  bool resumed = false;
  x509_st* peer_certificate = nullptr;  // null: none. X509_up_ref() to keep it longer
};

// Owner: a stream or session, thread: its ring's. Immovable. Legal states: fresh → (start)
// handshaking (in which a server may get early data, and answer it) → established → failed, or
// released after both directions were handed to the kernel. Calls never block and touch no
// descriptor.
//
// Output that is not the answer to send() (handshake, alerts, KeyUpdates) is kept and must be
// fetched by take_output() after every other call, a failed one included: an alert explains the
// end to the peer. A full output span is a state, not an error: the rest is kept.
//
// Steady state: nothing is allocated for a record. (OpenSSL has a buffer of about 16.5 KB a
// direction, made at the first record and kept until release_buffers().)
class Engine {
 public:
  Engine() = default;
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // `ssl` comes fresh from ServerContext::new_session() or ClientContext::new_session(), which must
  // outlive the engine, and says which role it has. A client has its first flight to be sent after
  // this (or has failed already). Error: no_memory, also for a null `ssl`.
  base::Result<void> start(SslPtr ssl, RecordScratch& scratch, const EngineOptions& options = {});

  enum class Status : std::uint8_t {
    need_input,  // all that was given is used up, and all plaintext was given out
    more,        // `plaintext` had no room for all: call again with the rest of the input
    suspended,   // a callback of the context waits for something: call again later, with the rest
    closed,      // close_notify was received: no more plaintext will come; sending still works
    failed,      // see failure()
  };
  struct Received {
    std::size_t consumed = 0;   // of the input; less than all only with `more` and after an end
    std::size_t plaintext = 0;  // bytes that were written
    Status status = Status::need_input;
    bool handshake_done = false;  // in this call: info() is there
    // In this call: `plaintext` is the first that came before the end of the handshake, info() is
    // there, and sending works. It may be a replay (RFC 8446 §8).
    bool early = false;
  };
  // Takes ciphertext and gives plaintext out; during the handshake, advances it. OpenSSL copies
  // the input, a partial record at its end included, so the memory is free afterwards. `plaintext`
  // may lie in the part of a buffer whose ciphertext was consumed by an earlier call, not in the
  // input of this one. Plaintext that comes with `closed` or `failed` is good.
  Received receive(std::string_view ciphertext, std::span<char> plaintext);
  // The stream ended (FIN). `closed` after close_notify, otherwise a failure: truncated.
  Status end_of_input();

  struct Sent {
    std::size_t taken = 0;     // plaintext bytes, from the first piece on
    std::size_t produced = 0;  // bytes that were written to `out`
  };
  // Encrypts; only while can_send(). Bytes kept from earlier calls come first. Pieces are read in
  // place where one holds a record, otherwise gathered to one record. Takes as much as makes whole
  // records in `out`; with less room than a small record needs, one record is made and kept.
  // `out` of record_bytes_max bytes or more never makes the engine keep anything.
  Sent send(std::span<const std::string_view> pieces, std::span<char> out);
  // Moves kept output to `out`; how many bytes.
  std::size_t take_output(std::span<char> out) { return store_.take(out); }
  std::size_t output_pending() const { return store_.bytes(); }

  // Queues close_notify. Nothing can be sent after it; receiving goes on. Without effect before the
  // handshake is done (early data or not), after a failure and after the first call.
  void close();

  // Gives OpenSSL's record buffers back, for a connection that is to wait for long. Without effect
  // in the middle of a record. They are made again when needed.
  void release_buffers();

  bool handshaking() const { return state_ == State::handshaking; }
  bool established() const { return state_ == State::established; }
  bool failed() const { return state_ == State::failed; }
  bool can_send() const {
    return (established() || (early_ && handshaking())) && !close_sent_ && !tx_handed_over_;
  }
  bool close_received() const { return close_received_; }
  bool close_sent() const { return close_sent_; }
  const Failure& failure() const { return failure_; }
  // After the handshake, while has_ssl().
  ConnectionInfo info() const;
  bool has_ssl() const { return ssl_ != nullptr; }
  ssl_st* ssl() { return ssl_.get(); }  // for code in this folder, and tests

  // ---- for the hand-off (ringside/tls/handoff.h decides; these only answer)

  Role role() const { return role_; }
  // Null: the kernel has no such cipher, or the connection cannot be handed over at all.
  std::optional<Aead> kernel_cipher() const;
  bool fragments_limited() const;  // max_fragment_length (RFC 6066 §4) was agreed on
  // Of the next record that is sent (`tx`) or received. Empty when OpenSSL failed or no secrets
  // were kept.
  std::optional<KernelKeys> keys(bool tx) const;
  // What they follow from, in TLS 1.3; as long as it is kept.
  std::span<const unsigned char> secret(bool tx) const {
    const Direction& direction = tx ? tx_ : rx_;
    return {direction.secret.data(), direction.secret_bytes};
  }
  // How many bytes belong to the record of which a part was received; 0 between records.
  std::size_t bytes_to_boundary() const { return rx_.scanner.bytes_to_boundary(); }
  bool plaintext_pending() const;  // decrypted bytes that were not given out yet
  bool application_data_received() const { return data_received_; }
  // The last call of receive() left input behind, which the kernel would never see.
  bool input_left() const { return input_left_; }
  // A handshake message has begun, or may have, and is not whole.
  bool message_pending() const;
  // From here on nothing that OpenSSL writes may be sent. What it does write fails the connection.
  void tx_handed_over();
  bool tx_in_kernel() const { return tx_handed_over_; }
  // Overwrites what is kept of the secrets: no hand-off will follow.
  void drop_secrets();
  // Frees the connection in OpenSSL and cleanses the secrets. Only info() is lost; kept output is,
  // too.
  void release_ssl();

 private:
  friend struct EngineCallbacks;
  enum class State : std::uint8_t { fresh, handshaking, established, failed, released };

  // What the keys of a direction follow from.
  struct Direction {
    RecordScanner scanner;
    std::uint64_t records = 0;  // since the keys changed
    std::array<unsigned char, 48> secret{};
    std::uint8_t secret_bytes = 0;  // 0: none is kept
  };

  bool set_up(SslPtr ssl);
  Status sniff();
  Status advance_handshake(Received& received);
  Status read_early(std::span<char> out, Received& received);
  Status read_records(std::span<char> out, Received& received);
  bool all_given() const { return input_.empty() && !plaintext_pending(); }
  Status answer_key_update(Status status);
  // How many plaintext bytes the next record gets; 0: there is no room.
  std::size_t record_size(std::size_t left, std::size_t room, bool first) const;
  bool encrypt(std::string_view plaintext);
  // What a call of OpenSSL that did not succeed means.
  Status classify(int result);
  Status fail(Failure::Cause cause);
  Status fail_in_openssl();
  void stop(Failure::Cause cause);

  // From OpenSSL, within a call of ours.
  std::size_t read_input(std::span<char> out);
  bool write_output(std::span<const char> bytes);
  void on_message(bool sent, int content_type, std::span<const unsigned char> bytes);
  void on_alert(bool sent, std::span<const unsigned char> bytes);
  void on_handshake_message(bool sent, unsigned char type);
  void on_secret(std::string_view line);
  void count_message();

  SslPtr ssl_;
  RecordScratch* scratch_ = nullptr;
  std::string_view input_;  // of the call that is under way
  std::span<char> output_;
  std::size_t output_used_ = 0;
  OutputStore store_;
  Direction rx_;
  Direction tx_;
  std::uint64_t records_a_key_ = 0;
  std::size_t fragment_max_ = record_plaintext_max;
  Failure failure_;
  unsigned messages_left_ = 0;
  State state_ = State::fresh;
  Role role_ = Role::server;
  std::uint8_t method_letters_ = 0;  // of what looks like an HTTP request so far
  bool sniffing_ = false;
  bool expects_early_ = false;  // data, before the handshake goes on
  bool early_ = false;          // such data has come
  bool keep_secrets_ = false;
  bool close_received_ = false;
  bool close_sent_ = false;
  bool tx_handed_over_ = false;
  bool data_received_ = false;
  bool input_left_ = false;
  bool message_begun_ = false;
  bool stop_reading_ = false;
  Failure::Cause stopped_ = Failure::Cause::none;  // what the call under way will fail with
};

}  // namespace ringside::tls
