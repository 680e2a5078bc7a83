// What a simulated descriptor stands for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernel_tls.h"
#include "network.h"

namespace ringside::sim {

class SimRing;
struct Op;

// Held by its descriptor and by every operation in flight on it; it ends with the last of them, as
// in Linux.
class File : public Wakeable {
 public:
  enum class Kind : std::uint8_t { socket, event, ring, pipe };
  explicit File(Kind kind) : kind_(kind) {}
  virtual ~File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  Kind kind() const { return kind_; }
  virtual unsigned poll_events() = 0;
  // For messages.
  virtual std::string describe() const = 0;
  // Lets every operation that waits here try again.
  void on_ready() override;

  void add_waiter(Op& op);
  void remove_waiter(Op& op);

 private:
  Kind kind_;
  std::vector<Op*> waiters_;
};

class EventFile final : public File {
 public:
  EventFile() : File(Kind::event) {}
  unsigned poll_events() override;
  std::string describe() const override { return "an event"; }
  void signal() {
    ++count_;
    on_ready();
  }
  // 8, or -EAGAIN.
  int take(std::uint64_t* count);

 private:
  std::uint64_t count_ = 0;
};

// One end of a pipe. Only moved by SimSys::splice_in and splice_out.
class PipeFile final : public File {
 public:
  struct Store {
    std::string bytes;
    std::size_t capacity = 0;
    std::size_t room() const { return capacity - std::min(bytes.size(), capacity); }
  };
  explicit PipeFile(std::shared_ptr<Store> store) : File(Kind::pipe), store_(std::move(store)) {}
  unsigned poll_events() override { return 0; }
  std::string describe() const override { return "a pipe"; }
  Store& store() { return *store_; }

 private:
  std::shared_ptr<Store> store_;
};

class RingFile final : public File {
 public:
  explicit RingFile(std::weak_ptr<SimRing> ring) : File(Kind::ring), ring_(std::move(ring)) {}
  unsigned poll_events() override { return 0; }
  std::string describe() const override { return "a ring"; }
  std::shared_ptr<SimRing> ring() const { return ring_.lock(); }

 private:
  std::weak_ptr<SimRing> ring_;
};

// A stream socket in any of its states. Results as of non-blocking system calls.
class SocketFile final : public File {
 public:
  SocketFile(Network& network, int family)
      : File(Kind::socket), network_(network), family_(family) {}
  SocketFile(Network& network, std::shared_ptr<Stream> stream);
  ~SocketFile() override;

  int set_option(int level, int name, int value);
  void reset_on_close() { abortive_ = true; }
  void set_nonblocking(bool on) { nonblocking_ = on; }
  bool nonblocking() const { return nonblocking_; }
  int bind(const net::Address& address);
  int listen(int backlog);
  // -EINPROGRESS until it is known; ask again then.
  int connect(const net::Address& address);
  // Null with -EAGAIN, -EINVAL, ... in `error`.
  std::shared_ptr<SocketFile> accept(int* error);
  int read(char* out, std::size_t room, bool peek);
  int write(const char* data, std::size_t bytes, const std::shared_ptr<void>& hold);
  int shutdown(int how);
  unsigned poll_events() override;
  std::string describe() const override;

  // Kernel TLS: the protocol, then the keys.
  int attach_tls();
  int install_keys(bool tx, const RecordKeys& keys);
  KernelTls* tls() { return tls_.get(); }
  // A read would give bytes right now.
  bool has_bytes();

  int family() const { return family_; }
  bool listening() const { return listener_ != nullptr; }
  Stream* stream() { return stream_.get(); }
  const net::Address& local_address() const { return stream_ ? stream_->local_address() : local_; }
  // -ENOTCONN when there is none.
  int peer_address(net::Address* out) const;

 private:
  void stop_listening();
  // The two families disagree about what a socket without a peer says.
  int not_connected(int inet, int unix_stream) const {
    return family_ == AF_UNIX ? unix_stream : inet;
  }

  Network& network_;
  int family_;
  bool accepted_ = false;
  bool bound_ = false;
  Network::BindOptions options_;
  bool abortive_ = false;
  bool nonblocking_ = false;
  net::Address local_;
  std::shared_ptr<Listener> listener_;
  std::shared_ptr<Dial> dial_;
  std::shared_ptr<Stream> stream_;
  std::unique_ptr<KernelTls> tls_;
};

// Descriptor numbers. The lowest free one is taken, as POSIX says: a stale number soon means
// another socket, which is what the checks are to catch.
class FileTable {
 public:
  static constexpr int first = 3;
  int open(std::shared_ptr<File> file);
  std::shared_ptr<File> get(int fd) const;
  std::shared_ptr<SocketFile> socket(int fd) const;
  bool close(int fd);
  // Descriptors in use, for the end of a run.
  std::vector<int> in_use() const;

 private:
  std::vector<std::shared_ptr<File>> files_;
};

}  // namespace ringside::sim
