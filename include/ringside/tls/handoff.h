// Gives the record layer of an established connection to the kernel (SOL_TLS), one direction after
// the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ringside/net/sys_port.h"
#include "ringside/tls/engine.h"
#include "ringside/tls/traffic_secret.h"

namespace ringside::tls {

// Attaches the kernel's TLS protocol to a TCP socket; until keys are installed it passes bytes on
// as they are. To be called at accept, or when connected: after the peer's FIN it fails with
// ENOTCONN. 0 or a negative errno; then there is no hand-off.
int attach_kernel_tls(net::SysPort& sys, int fd);

// Why the kernel does not have a connection.
enum class Refusal : std::uint8_t {
  none,
  handshake,  // not established, or failed
  cipher,     // one that the kernel does not know
  fragments,  // max_fragment_length was agreed on; the kernel writes full records
  closing,    // close_notify was sent or received
  no_keys,    // no secrets were kept, or OpenSSL failed
  kernel,     // it said no: kernel_errno()
};
std::string_view describe(Refusal refusal);

// Beside its engine, with the same owner and thread; does not outlive it. First TX, then RX:
//
//   ready_to_install_tx() and all that the engine gave out was sent       → install_tx()
//   ready_to_install_rx(), nothing is being received, and all that was    → install_rx()
//     received was given to the engine
//
// After TX, send() and close() of the engine are over: plaintext goes to the socket, close_notify
// by AlertMessage. After both the engine has freed its SSL object, and all that is received is
// plaintext, or a control record (ringside/tls/control_record.h).
//
// A KeyUpdate of the peer (TLS 1.3) asks for renew_rx() before anything more is received, and,
// where it wants an answer, for a KeyUpdateMessage and then renew_tx().
class Handoff {
 public:
  explicit Handoff(Engine& engine) : engine_(engine) {}

  // The kernel takes further keys (KernelSupport::rekey): what they follow from is kept.
  void expect_renewal() { renewable_ = true; }

  // Why there will be no (further) hand-off; `none`: there may be one.
  Refusal refusal() const;
  int kernel_errno() const { return kernel_errno_; }

  // A record of OpenSSL's must not follow one of the kernel's: every byte that the engine gave out
  // must have been sent too, which only the caller knows.
  bool ready_to_install_tx() const;
  // 0 or a negative errno: -EAGAIN, and nothing happened, unless ready_to_install_tx(); otherwise
  // there is a refusal() and the engine goes on in user space.
  int install_tx(net::SysPort& sys, int fd);

  // Whether receiving is to come to a halt for RX, that is: no receive armed, and from then on at
  // most receive_exactly() bytes at a time. A client of TLS 1.3 waits for the first application
  // data: tickets come before it, and OpenSSL should see them.
  bool wants_rx() const;
  // How many bytes the engine may be given at most, and must be given before RX can be installed.
  // Then there may be more, since a record's length is known only after its header. 0: none, since
  // RX can be installed, or the engine has input or plaintext to give out first.
  std::size_t receive_exactly() const;
  // Between two records, with all input taken and all plaintext given out, and not inside of a
  // message of the handshake protocol, which may be split over records. (After a ticket of TLS 1.3
  // that is only known with the next data.)
  bool ready_to_install_rx() const;
  // As install_tx(); when there is a refusal, receiving goes on in user space while the kernel
  // sends.
  int install_rx(net::SysPort& sys, int fd);

  bool tx_installed() const { return tx_installed_; }
  bool rx_installed() const { return rx_installed_; }
  bool complete() const { return tx_installed_ && rx_installed_; }

  // Once the kernel has that direction: gives it the next key. 0 or a negative errno: the direction
  // is at its end. -ENOKEY: nothing was kept for it.
  int renew_rx(net::SysPort& sys, int fd) { return renew(sys, fd, false); }
  int renew_tx(net::SysPort& sys, int fd) { return renew(sys, fd, true); }
  bool can_renew_tx() const { return tx_secret_.kept(); }

 private:
  int install(net::SysPort& sys, int fd, bool tx);
  int renew(net::SysPort& sys, int fd, bool tx);

  Engine& engine_;
  Refusal refusal_ = Refusal::none;
  int kernel_errno_ = 0;
  bool tx_installed_ = false;
  bool rx_installed_ = false;
  bool renewable_ = false;
  TrafficSecret tx_secret_;
  TrafficSecret rx_secret_;
};

}  // namespace ringside::tls
