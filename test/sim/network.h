// Addresses, listeners and the making of connections.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "stream.h"

namespace ringside::sim {

// A listening socket. Its owner keeps it; when it goes, connections that wait in it are reset.
class Listener {
 public:
  Listener(std::string key, int family, unsigned backlog)
      : key_(std::move(key)), family_(family), backlog_(backlog) {}
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // The oldest waiting connection, or null.
  std::shared_ptr<Stream> accept();
  bool waiting() const { return !queue_.empty(); }
  bool full() const { return queue_.size() >= backlog_; }
  void offer(std::shared_ptr<Stream> stream);
  void set_waker(Wakeable* waker) { waker_ = waker; }
  const std::string& key() const { return key_; }
  int family() const { return family_; }

 private:
  std::string key_;
  int family_;
  std::size_t backlog_;
  std::deque<std::shared_ptr<Stream>> queue_;
  Wakeable* waker_ = nullptr;
};

// A connection being made. Dropping it gives up.
struct Dial {
  ~Dial() {
    if (stream != nullptr) stream->reset();
  }
  bool done = false;
  int result = 0;                  // 0 or a negative errno, once done
  std::shared_ptr<Stream> stream;  // taken by whoever dialled
  Wakeable* waker = nullptr;
};

class Network {
 public:
  explicit Network(Medium medium) : medium_(std::move(medium)) {}
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  struct BindOptions {
    bool reuse_port = false;
    bool v6_only = false;
  };
  // 0 or a negative errno. A port 0 is replaced in `address`.
  int bind(net::Address& address, const BindOptions& options);
  void unbind(const net::Address& address);
  // `address` is bound.
  std::shared_ptr<Listener> listen(const net::Address& address, unsigned backlog);
  // Takes it out of service; its waiting connections are reset.
  void stop(const std::shared_ptr<Listener>& listener);
  // Removes the file of a unix socket nobody listens on.
  int unlink(const net::Address& address);

  std::shared_ptr<Dial> dial(const net::Address& from, const net::Address& to);
  // An address that an outgoing connection of that family may have.
  net::Address ephemeral(int family);

  // Servers that cannot be reached: nothing answers them.
  void set_black_hole(const net::Address& address, bool on);

  Medium& medium() { return medium_; }
  // A connected pair without a listener.
  Stream::Pair pair();

 private:
  struct Bound {
    unsigned users = 0;
    BindOptions options;
  };
  struct Attempt {
    std::weak_ptr<Dial> dial;
    net::Address from, to;
    unsigned tries = 0;
  };
  using Group = std::vector<std::shared_ptr<Listener>>;

  void knock(Attempt attempt);
  void establish(const Attempt& attempt, Dial& dial, Listener& listener);
  void finish_later(const Attempt& attempt, std::uint64_t delay_ns, int result);
  int missing(const net::Address& to) const;
  Group* find(const net::Address& to);
  std::uint64_t latency();

  Medium medium_;
  std::map<std::string, Bound> bound_;
  std::map<std::string, Group> listening_;
  std::map<std::string, bool> black_holes_;
  std::uint16_t next_port_ = 32768;
};

// Makes addresses without the product's own code, so that a mistake there is not mirrored here.
net::Address make_ipv4(std::uint32_t host, std::uint16_t port);
net::Address make_ipv6_loopback(std::uint16_t port);
net::Address make_unix(const std::string& path);

}  // namespace ringside::sim
