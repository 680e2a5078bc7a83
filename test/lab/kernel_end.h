// Both ends of a TCP connection over loopback, blocking: ours, whose records the kernel does, and a
// peer that is OpenSSL on its socket.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "ringside/tls/control_record.h"
#include "ringside/tls/handoff.h"

#include "../unit/tls/peer.h"

namespace ringside::tls::test {

// A connected pair of sockets; reads and writes that hang for long fail.
struct SocketPair {
  SocketPair();
  ~SocketPair();
  SocketPair(const SocketPair&) = delete;
  SocketPair& operator=(const SocketPair&) = delete;
  void close_peer();

  int ours = -1;
  int peers = -1;
};

// Every byte of it.
void send_all(int fd, std::string_view bytes);

class KernelEnd {
 public:
  enum class End : std::uint8_t { none, closed, truncated, alert, key_update, unexpected, failed };

  KernelEnd(int fd, SSL_CTX* context, Role role, SSL_SESSION* session = nullptr);

  // A peer that waits for what a failed test did not send is set free.
  ~KernelEnd();
  KernelEnd(const KernelEnd&) = delete;
  KernelEnd& operator=(const KernelEnd&) = delete;

  void handshake();
  // Receiving follows by itself, as soon as it can.
  void hand_over();
  bool complete() const { return handoff_.complete(); }

  void send(std::string_view plaintext);
  void send_close();
  void shut_down();
  // Until there are so many bytes in `received`, or an end.
  void receive(std::size_t bytes);
  // Until an end.
  End receive_all();

  Engine engine;
  std::string received;
  End end = End::none;
  ControlRecord last;
  unsigned ignored = 0;  // control records without consequence

 private:
  void receive_some();
  void receive_in_user_space();
  void receive_control();
  void feed(std::size_t bytes_max);
  void flush();

  int fd_;
  RecordScratch scratch_;
  Handoff handoff_;
  std::optional<ControlParser> parser_;
};

// Runs in a thread, and is joined when it goes.
class PeerThread {
 public:
  PeerThread(int fd, SSL_CTX* context, Role role, SSL_SESSION* session,
             std::function<void(SSL*)> talk);
  ~PeerThread() { join(); }
  void join();
  // After join().
  SessionPtr session() const { return SessionPtr(SSL_get1_session(ssl_.get())); }

 private:
  SslPtr ssl_;
  std::thread thread_;
};

// For peers. Reads so many bytes, or fewer when the stream ends.
std::string read_from(SSL* ssl, std::size_t bytes);
void write_to(SSL* ssl, std::string_view bytes);
// Reads to the end; whether it was close_notify.
bool ends_cleanly(SSL* ssl);

// A line of /proc/net/tls_stat.
long tls_stat(std::string_view name);

}  // namespace ringside::tls::test
