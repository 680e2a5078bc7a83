#include "ringside/tls/kernel_support.h"

#include <linux/tls.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "ringside/tls/handoff.h"

namespace ringside::tls {

namespace {

// A descriptor that is closed when it goes.
class Socket {
 public:
  Socket(net::SysPort& sys, int family) : sys_(sys) {
    base::Result<int> fd = sys.open_stream_socket(family);
    if (fd)
      fd_ = *fd;
    else
      error_ = -fd.error().sys_errno;
  }
  ~Socket() {
    if (fd_ >= 0) sys_.close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int fd() const { return fd_; }
  int error() const { return error_; }  // of opening it: 0 or a negative errno

 private:
  net::SysPort& sys_;
  int fd_ = -1;
  int error_ = 0;
};

// Where the connections go to.
class Listener {
 public:
  explicit Listener(net::SysPort& sys) : socket_(sys, AF_INET), error_(listen(sys)) {}
  int error() const { return error_; }
  const net::Address& address() const { return address_; }

 private:
  int listen(net::SysPort& sys) {
    int error = socket_.error();
    if (error == 0) error = sys.bind(socket_.fd(), *net::Address::from_ip("127.0.0.1", 0));
    if (error == 0) error = sys.listen(socket_.fd(), 4);
    if (error != 0) return error;
    base::Result<net::Address> address = sys.local_address(socket_.fd());
    if (!address) return -address.error().sys_errno;
    address_ = *address;
    return 0;
  }

  Socket socket_;
  net::Address address_;
  int error_;
};

std::string why_not_attached(int error) {
  switch (error) {
    case -ENOENT:
      return "the kernel's module \"tls\" is not loaded: run \"modprobe tls\" as root, and write "
             "\"tls\" to a file in /etc/modules-load.d for the next start";
    case -ENOPROTOOPT:
      return "the kernel knows no TCP_ULP (it was built without CONFIG_TLS, or a sandbox hides it)";
    default:
      return std::string("the kernel refuses TLS on a socket: ") + std::strerror(-error);
  }
}

struct Trial {
  bool connected = false;
  bool attached = false;  // it came as far as the keys
  bool rekeyed = false;
  int error = 0;  // 0 or a negative errno
};

Trial try_cipher(net::SysPort& sys, const net::Address& address, Aead aead) {
  Trial trial;
  Socket socket(sys, AF_INET);
  trial.error = socket.error();
  if (trial.error == 0) trial.error = sys.connect_now(socket.fd(), address);
  trial.connected = trial.error == 0;
  if (trial.connected) trial.error = attach_kernel_tls(sys, socket.fd());
  trial.attached = trial.connected && trial.error == 0;
  if (!trial.attached) return trial;
  KernelKeys keys;
  keys.aead = aead;
  std::array<unsigned char, KernelKeys::crypto_info_bytes_max> info{};
  const std::size_t bytes = keys.crypto_info(info);
  const auto give = [&] {
    return sys.set_option_bytes(socket.fd(), SOL_TLS, TLS_TX, info.data(), bytes);
  };
  trial.error = give();
  // Before Linux 6.14 the second time is EBUSY.
  trial.rekeyed = trial.error == 0 && give() == 0;
  return trial;
}

}  // namespace

bool KernelSupport::has(Aead aead) const {
  switch (aead) {
    case Aead::aes128_gcm:
      return aes128_gcm;
    case Aead::aes256_gcm:
      return aes256_gcm;
    case Aead::chacha20_poly1305:
      break;
  }
  return chacha20_poly1305;
}

KernelSupport probe_kernel_tls(net::SysPort& sys) {
  struct Cipher {
    Aead aead;
    const char* name;
    bool KernelSupport::* there;
  };
  constexpr std::array ciphers{
      Cipher{Aead::aes128_gcm, "AES-128-GCM", &KernelSupport::aes128_gcm},
      Cipher{Aead::aes256_gcm, "AES-256-GCM", &KernelSupport::aes256_gcm},
      Cipher{Aead::chacha20_poly1305, "ChaCha20-Poly1305", &KernelSupport::chacha20_poly1305},
  };
  KernelSupport support;
  const auto untried = [&support](int error) {
    support.reason =
        std::string("it could not be tried on a loopback connection: ") + std::strerror(-error);
    return support;
  };
  Listener listener(sys);
  if (listener.error() != 0) return untried(listener.error());
  for (const Cipher& cipher : ciphers) {
    const Trial trial = try_cipher(sys, listener.address(), cipher.aead);
    if (!trial.connected) return untried(trial.error);
    if (!trial.attached) {
      support.reason = why_not_attached(trial.error);
      return support;
    }
    support.*cipher.there = trial.error == 0;
    support.rekey |= trial.rekeyed;
    if (trial.error == 0) continue;
    support.reason += support.reason.empty() ? "the kernel does not take " : ", ";
    support.reason += std::string(cipher.name) + " (" + std::strerror(-trial.error) + ")";
  }
  return support;
}

}  // namespace ringside::tls
