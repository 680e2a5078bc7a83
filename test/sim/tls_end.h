// One end of a simulated TLS connection: bytes in, bytes out. A shape of TLS 1.3 without its
// secrets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

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

  enum class Event : std::uint8_t { none, secured, data, ended, failed };
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
  bool can_send() const { return established() && !close_said_; }
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
    certificate = 11,
    finished = 20,
    key_update = 24,
  };

  void add(std::string& flight, Message message, std::size_t bytes);
  void send_flight(std::string_view messages);
  Event take_record(RecordReader::Record record);
  Event take_messages(std::string_view payload);
  Event take_message(Message message, std::string_view body);
  Event shake_hands(Message message);
  Event take_alert(std::string_view payload);
  Event fail(Alert alert);
  void secure();

  Role role_;
  Random random_;
  State state_ = State::handshaking;
  Message expected_;
  RecordReader reader_;
  RecordKeys rx_, tx_;
  std::string own_;
  std::string data_;
  std::string messages_;  // the beginning of one
  bool ended_ = false;
  bool close_said_ = false;
  std::uint8_t peer_alert_ = 0;
  bool h2_;
};

}  // namespace ringside::sim
