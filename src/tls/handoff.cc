#include "ringside/tls/handoff.h"

#include <linux/tls.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace ringside::tls {

int attach_kernel_tls(net::SysPort& sys, int fd) {
  return sys.set_option_bytes(fd, SOL_TCP, TCP_ULP, "tls", sizeof "tls");
}

std::string_view describe(Refusal refusal) {
  switch (refusal) {
    case Refusal::none:
      return "none";
    case Refusal::handshake:
      return "no handshake";
    case Refusal::cipher:
      return "cipher";
    case Refusal::fragments:
      return "max_fragment_length";
    case Refusal::closing:
      return "closing";
    case Refusal::no_keys:
      return "no keys";
    case Refusal::kernel:
      break;
  }
  return "kernel";
}

Refusal Handoff::refusal() const {
  if (refusal_ != Refusal::none || complete()) return refusal_;
  if (!engine_.established()) return Refusal::handshake;
  if (engine_.close_received() || engine_.close_sent()) return Refusal::closing;
  if (!engine_.kernel_cipher()) return Refusal::cipher;
  if (engine_.fragments_limited()) return Refusal::fragments;
  return Refusal::none;
}

bool Handoff::ready_to_install_tx() const {
  return !tx_installed_ && refusal() == Refusal::none && engine_.output_pending() == 0;
}

bool Handoff::wants_rx() const {
  if (!tx_installed_ || rx_installed_ || refusal() != Refusal::none) return false;
  return engine_.role() == Role::server || engine_.application_data_received() ||
         engine_.info().version == Version::tls12;
}

std::size_t Handoff::receive_exactly() const {
  const std::size_t left = engine_.bytes_to_boundary();
  return left == 0 && engine_.message_pending() ? record_header_bytes : left;
}

bool Handoff::ready_to_install_rx() const {
  return wants_rx() && receive_exactly() == 0 && !engine_.input_left() &&
         !engine_.plaintext_pending();
}

int Handoff::install_tx(net::SysPort& sys, int fd) {
  if (!ready_to_install_tx()) return -EAGAIN;
  const int result = install(sys, fd, true);
  tx_installed_ = result == 0;
  if (tx_installed_) engine_.tx_handed_over();
  return result;
}

int Handoff::install_rx(net::SysPort& sys, int fd) {
  if (!ready_to_install_rx()) return -EAGAIN;
  const int result = install(sys, fd, false);
  rx_installed_ = result == 0;
  if (rx_installed_) engine_.release_ssl();
  return result;
}

namespace {
int give(net::SysPort& sys, int fd, bool tx, const std::optional<KernelKeys>& keys) {
  if (!keys) return -ENOKEY;
  std::array<unsigned char, KernelKeys::crypto_info_bytes_max> info;
  const std::size_t bytes = keys->crypto_info(info);
  const int result = sys.set_option_bytes(fd, SOL_TLS, tx ? TLS_TX : TLS_RX, info.data(), bytes);
  cleanse(info);
  return result;
}
}  // namespace

int Handoff::install(net::SysPort& sys, int fd, bool tx) {
  const std::optional<KernelKeys> keys = engine_.keys(tx);
  const int result = give(sys, fd, tx, keys);
  if (result == 0) {
    if (renewable_ && keys->version == Version::tls13)
      (tx ? tx_secret_ : rx_secret_).keep(keys->aead, engine_.secret(tx));
    return 0;
  }
  refusal_ = keys ? Refusal::kernel : Refusal::no_keys;
  kernel_errno_ = -result;
  engine_.drop_secrets();
  return result;
}

int Handoff::renew(net::SysPort& sys, int fd, bool tx) {
  TrafficSecret& secret = tx ? tx_secret_ : rx_secret_;
  const int result = give(sys, fd, tx, secret.advance());
  if (result != 0) secret.drop();
  return result;
}

}  // namespace ringside::tls
