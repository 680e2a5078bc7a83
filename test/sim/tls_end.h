// One end of a simulated TLS connection: bytes in, bytes out. A shape of TLS 1.3 without its
// secrets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "random.h"
#include "tls_records.h"

namespace ringside::sim {

// The handshake: ClientHello; ServerHello, Certificates, Finished; Finished; tickets. A flight is
// cut into records anywhere. Peers of the proxy and the proxy's own layers use the same code, as
// far as none of them misbehaves.
class TlsEnd {
 public:
  enum class Role : std::uint8_t { client, server };
  // RFC 8446 §6.
  enum Alert : std::uint8_t {
    close_notify = 0,
    unexpected_message = 10,
    bad_record = 20,
    internal_error = 80,
  };

  // `h2`: a client that wants HTTP/2, or a server that takes it.
  TlsEnd(Role role, Random random, bool h2 = false);

  // A client's first flight.
  void begin();

  // ---- early data (RFC 8446 §2.3): what a client sends before it has heard of the server

  // A client's, before begin().
  void offer_early() { early_offered_ = true; }
  // A server's: whether it takes what is offered. One that does not passes over it, and the client
  // has to send it again.
  void take_early(std::function<bool()> decide) { takes_early_ = std::move(decide); }
  // Of a client: data may be sent, but it is early. Of a server: some has come, and the handshake
  // is not over.
  bool early() const { return early_ && !established() && !failed(); }
  // Of a client: it knows that nothing of it was taken.
  bool early_refused() const { return early_refused_; }
  // A client whose early data was taken has heard all of the server's handshake, and ends its own
  // when it likes.
  bool must_confirm() const { return must_confirm_ && !failed(); }
  void confirm();

  // `early_ended`: what a server hears from here on is of the handshake, and then as of any client.
  enum class Event : std::uint8_t { none, secured, data, early_ended, ended, failed };
  // Takes bytes until something happens; `taken`: how many. After ended or failed nothing is taken.
  Event hear(std::string_view bytes, std::size_t* taken);
  // Of the last Event::data.
  std::string& data() { return data_; }

  Role role() const { return role_; }
  bool established() const { return state_ == State::established; }
  bool failed() const { return state_ == State::failed; }
  bool ended() const { return ended_; }  // the peer has said so
  bool h2() const { return h2_; }        // ALPN chose HTTP/2
  bool close_said() const { return close_said_; }
  bool can_send() const { return (established() || early()) && !close_said_; }
  std::uint8_t peer_alert() const { return peer_alert_; }  // of a failure; 0: it was found here

  // What it has to say by itself, in front of all data that is sealed from then on.
  std::string& own() { return own_; }
  void say_close();
  void say_alert(std::uint8_t alert);
  void say_ticket();
  void say_key_update(bool ask_for_one);
  // Beside say_...: nothing may be appended that was not sealed with them.
  RecordKeys& sending() { return tx_; }
  RecordKeys& receiving() { return rx_; }
  const RecordReader& reader() const { return reader_; }
  // In the middle of a message of the handshake protocol.
  bool message_pending() const { return !messages_.empty(); }

 private:
  enum class State : std::uint8_t { handshaking, established, failed };
  // RFC 8446 §4.
  enum Message : std::uint8_t {
    client_hello = 1,
    server_hello = 2,
    ticket = 4,
    end_of_early_data = 5,
    certificate = 11,
    finished = 20,
    key_update = 24,
  };

  void add(std::string& flight, Message message, std::size_t bytes);
  void send_flight(std::string_view messages);
  Event take_record(RecordReader::Record record);
  Event take_messages(std::string_view payload);
  Event take_message(Message message, std::string_view body);
  Event shake_hands(Message message, std::string_view body);
  Event take_alert(std::string_view payload);
  Event hear_hello(std::string_view body);
  Event hear_end_of_early_data();
  Event fail(Alert alert);
  bool passes_over() const;
  bool hears_data() const;
  void finish();
  void secure();

  Role role_;
  Random random_;
  State state_ = State::handshaking;
  Message expected_;
  std::function<bool()> takes_early_;  // null: never
  RecordReader reader_;
  RecordKeys rx_, tx_;
  RecordKeys handshake_;  // while the direction of early data has its own
  std::string own_;
  std::string data_;
  std::string messages_;  // the beginning of one
  bool ended_ = false;
  bool close_said_ = false;
  std::uint8_t peer_alert_ = 0;
  bool h2_;
  bool early_offered_ = false;
  bool early_taken_ = false;
  bool early_refused_ = false;
  bool early_ = false;
  bool early_keys_ = false;  // a server's: what comes is under the keys of early data
  bool must_confirm_ = false;
};

}  // namespace ringside::sim
