#include "kernel_end.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fstream>

#include "ringside/net/sys_port.h"

namespace ringside::tls::test {

namespace {

constexpr std::size_t buffer_bytes = 65536;

// Only bounds what would hang.
void limit_waiting(int fd) {
  const timeval limit{.tv_sec = 60, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

SocketPair::SocketPair() {
  std::signal(SIGPIPE, SIG_IGN);
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::bind(listener, raw, length), 0);
  EXPECT_EQ(::listen(listener, 1), 0);
  EXPECT_EQ(::getsockname(listener, raw, &length), 0);
  ours = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(::connect(ours, raw, length), 0);
  peers = ::accept(listener, nullptr, nullptr);
  ::close(listener);
  limit_waiting(ours);
  limit_waiting(peers);
}

SocketPair::~SocketPair() {
  ::close(ours);
  close_peer();
}

void SocketPair::close_peer() {
  if (peers >= 0) ::close(peers);
  peers = -1;
}

void send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    ASSERT_GT(sent, 0) << "errno " << errno;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

// ---- ours

KernelEnd::KernelEnd(int fd, SSL_CTX* context, Role role, SSL_SESSION* session)
    : fd_(fd), handoff_(engine) {
  EXPECT_EQ(attach_kernel_tls(net::real_sys(), fd), 0);
  EXPECT_TRUE(engine.start(new_session(context, role, session), scratch_, {.keep_secrets = true})
                  .has_value());
  flush();
}

KernelEnd::~KernelEnd() {
  if (testing::Test::HasFailure()) ::shutdown(fd_, SHUT_RDWR);
}

void KernelEnd::flush() {
  std::array<char, buffer_bytes> out;
  while (const std::size_t bytes = engine.take_output(out))
    send_all(fd_, {out.data(), bytes});
}

void KernelEnd::feed(std::size_t bytes_max) {
  std::array<char, buffer_bytes> buffer;
  std::array<char, buffer_bytes> plaintext;
  const ssize_t got = ::recv(fd_, buffer.data(), std::min(bytes_max, buffer.size()), 0);
  if (got <= 0) {
    end =
        got == 0 && engine.end_of_input() == Engine::Status::closed ? End::closed : End::truncated;
    return;
  }
  std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
  Engine::Received done;
  do {
    done = engine.receive(bytes, plaintext);
    received.append(plaintext.data(), done.plaintext);
    bytes.remove_prefix(done.consumed);
  } while (done.status == Engine::Status::more);
  if (done.status == Engine::Status::closed) end = End::closed;
  if (done.status == Engine::Status::failed) end = End::failed;
  if (!engine.tx_in_kernel()) flush();
}

void KernelEnd::handshake() {
  while (engine.handshaking() && end == End::none)
    feed(buffer_bytes);
  ASSERT_TRUE(engine.established()) << describe(engine.failure());
}

void KernelEnd::hand_over() {
  parser_.emplace(engine.info().version);
  ASSERT_EQ(handoff_.refusal(), Refusal::none) << describe(handoff_.refusal());
  ASSERT_TRUE(handoff_.ready_to_install_tx());
  ASSERT_EQ(handoff_.install_tx(net::real_sys(), fd_), 0);
  if (handoff_.ready_to_install_rx()) {
    ASSERT_EQ(handoff_.install_rx(net::real_sys(), fd_), 0);
  }
}

void KernelEnd::send(std::string_view plaintext) {
  ASSERT_TRUE(engine.tx_in_kernel());
  send_all(fd_, plaintext);
}

void KernelEnd::send_close() {
  AlertMessage close;
  ASSERT_EQ(::sendmsg(fd_, close.message(), MSG_NOSIGNAL), 2) << "errno " << errno;
}

void KernelEnd::shut_down() {
  ASSERT_EQ(::shutdown(fd_, SHUT_WR), 0);
}

void KernelEnd::receive(std::size_t bytes) {
  while (received.size() < bytes && end == End::none)
    receive_some();
}

KernelEnd::End KernelEnd::receive_all() {
  while (end == End::none)
    receive_some();
  return end;
}

void KernelEnd::receive_some() {
  if (!handoff_.rx_installed()) return receive_in_user_space();
  std::array<char, buffer_bytes> buffer;
  const ssize_t got = ::recv(fd_, buffer.data(), buffer.size(), 0);
  if (got > 0) {
    received.append(buffer.data(), static_cast<std::size_t>(got));
  } else if (got == 0) {
    end = End::truncated;
  } else if (errno == EIO) {
    receive_control();
  } else {
    EXPECT_EQ(errno, EBADMSG);
    end = End::failed;
  }
}

void KernelEnd::receive_in_user_space() {
  feed(handoff_.wants_rx() ? std::max<std::size_t>(handoff_.receive_exactly(), 1) : buffer_bytes);
  if (end == End::none && handoff_.ready_to_install_rx()) {
    ASSERT_EQ(handoff_.install_rx(net::real_sys(), fd_), 0);
  }
}

void KernelEnd::receive_control() {
  ControlReceive message;
  const ssize_t got = ::recvmsg(fd_, message.message(), 0);
  ASSERT_GT(got, 0) << "errno " << errno;
  ASSERT_TRUE(message.type().has_value());
  last = parser_->read(*message.type(), message.bytes(static_cast<std::size_t>(got)));
  switch (last.kind) {
    case ControlRecord::Kind::data:
      ADD_FAILURE() << "data where a control record was said to be";
      return;
    case ControlRecord::Kind::ignored:
      ++ignored;
      return;
    case ControlRecord::Kind::close:
      end = End::closed;
      return;
    case ControlRecord::Kind::alert:
      end = End::alert;
      return;
    case ControlRecord::Kind::key_update:
      end = End::key_update;
      return;
    case ControlRecord::Kind::too_many:
    case ControlRecord::Kind::unexpected:
      end = End::unexpected;
      return;
  }
}

// ---- the peer

PeerThread::PeerThread(int fd, SSL_CTX* context, Role role, SSL_SESSION* session,
                       std::function<void(SSL*)> talk)
    : ssl_(new_session(context, role, session)) {
  SSL_set_fd(ssl_.get(), fd);
  thread_ = std::thread([ssl = ssl_.get(), talk = std::move(talk)] {
    ERR_clear_error();
    if (SSL_do_handshake(ssl) == 1) return talk(ssl);
    ADD_FAILURE() << "the peer's handshake: " << ERR_error_string(ERR_get_error(), nullptr);
  });
}

void PeerThread::join() {
  if (thread_.joinable()) thread_.join();
}

std::string read_from(SSL* ssl, std::size_t bytes) {
  std::string out(bytes, '\0');
  std::size_t have = 0;
  while (have < bytes) {
    ERR_clear_error();
    const int got = SSL_read(ssl, out.data() + have, static_cast<int>(bytes - have));
    if (got <= 0) {
      ADD_FAILURE() << "the peer reads: " << SSL_get_error(ssl, got) << ' '
                    << ERR_error_string(ERR_get_error(), nullptr);
      break;
    }
    have += static_cast<std::size_t>(got);
  }
  out.resize(have);
  return out;
}

void write_to(SSL* ssl, std::string_view bytes) {
  ERR_clear_error();
  const int wrote = SSL_write(ssl, bytes.data(), static_cast<int>(bytes.size()));
  EXPECT_EQ(wrote, static_cast<int>(bytes.size()))
      << SSL_get_error(ssl, wrote) << ' ' << ERR_error_string(ERR_get_error(), nullptr);
}

bool ends_cleanly(SSL* ssl) {
  std::array<char, 4096> buffer;
  int got = 0;
  ERR_clear_error();
  while ((got = SSL_read(ssl, buffer.data(), buffer.size())) > 0) {
  }
  return SSL_get_error(ssl, got) == SSL_ERROR_ZERO_RETURN;
}

long tls_stat(std::string_view name) {
  std::ifstream lines("/proc/net/tls_stat");
  std::string key;
  long value = 0;
  while (lines >> key >> value) {
    if (key == name) return value;
  }
  return -1;
}

}  // namespace ringside::tls::test
