// One end of a simulated TCP-like connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "ringside/net/address.h"

#include "faults.h"
#include "random.h"
#include "sim_clock.h"

namespace ringside::sim {

// Whoever wants to hear that something may have become readable, writable or ended.
class Wakeable {
 public:
  virtual void on_ready() = 0;

 protected:
  ~Wakeable() = default;
};

// What all connections of a world share.
struct Medium {
  Clock& clock;
  Faults& faults;
  Random random;
  std::uint64_t latency_min_ns = 10 * microsecond_ns;
  std::uint64_t latency_max_ns = 200 * microsecond_ns;
  std::size_t buffer_bytes = 64 * 1024;
  // For breaking things on purpose: changes what arrives; delivers nothing any more.
  std::function<void(std::string& bytes)> tamper = {};
  bool frozen = false;
};

// Results are those of non-blocking system calls: a count, 0, or a negative errno. The order in
// which data, end and error are reported is Linux's (net/ipv4/tcp.c): data that has arrived first,
// then the end of the stream, then the error, once.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  // Two connected ends.
  struct Pair {
    std::shared_ptr<Stream> a, b;
  };
  static Pair connect(Medium& medium, const net::Address& a, const net::Address& b);

  explicit Stream(Medium& medium) : medium_(medium) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  int read(char* out, std::size_t room, bool peek = false);
  // Takes what fits. With a `hold` the bytes are not copied now but when they reach the peer; the
  // hold is let go when the last of them has left `data`.
  int write(const char* data, std::size_t bytes, const std::shared_ptr<void>& hold = nullptr);
  // Takes all of it, as a send buffer does that had room for some.
  int write_whole(std::string_view bytes);
  int shutdown(int how);
  // The last descriptor is gone: an orderly end, or a reset when something was left unread.
  void release();
  // An abortive close.
  void reset();
  // The network in between fails: both ends see a reset.
  void cut();
  // poll(2)'s events now.
  unsigned poll_events() const;
  int take_error();

  std::size_t readable_bytes() const { return readable_.size() - read_at_; }
  std::size_t room() const;
  // Bytes written here that the peer has not read.
  std::size_t unread_by_peer() const;
  // Asks to be woken when there is room again; a write that found none has asked already.
  void want_room() { write_blocked_ = true; }
  // The peer can send, and will: not ended, not reset.
  bool open() const { return !dead_ && !released_; }
  bool read_ended() const { return fin_arrived_ || read_shut_ || dead_; }

  void set_waker(Wakeable* waker) { waker_ = waker; }
  const net::Address& local_address() const { return local_; }
  const net::Address& peer_address() const { return remote_; }
  // What this end is told, when that differs from what the other end was told.
  void show_addresses(const net::Address& local, const net::Address& remote) {
    local_ = local;
    remote_ = remote;
  }
  // Delivers nothing to this end before that time.
  void stall_until(std::uint64_t time_ns);

 private:
  struct Segment {
    std::uint64_t due_ns;
    std::string owned;
    const char* borrowed;
    std::size_t bytes;
    bool end;
    std::shared_ptr<void> hold;
  };

  int send(const char* data, std::size_t bytes, const std::shared_ptr<void>& hold);
  void expect(Segment segment);
  void deliver();
  void take(Segment& segment);
  void consumed();
  void send_end();
  void send_reset();
  void reset_arrived();
  void wake() {
    if (waker_ != nullptr) waker_->on_ready();
  }
  std::uint64_t latency();

  Medium& medium_;
  std::weak_ptr<Stream> peer_;
  Wakeable* waker_ = nullptr;
  net::Address local_, remote_;
  std::uint64_t base_latency_ns_ = 0;

  // Towards this end.
  std::size_t capacity_ = 0;
  std::string readable_;
  std::size_t read_at_ = 0;
  std::deque<Segment> incoming_;
  std::size_t incoming_bytes_ = 0;
  std::uint64_t last_due_ns_ = 0;
  std::uint64_t stalled_until_ns_ = 0;
  std::uint64_t received_ = 0;
  unsigned stalls_ = 0;

  int error_ = 0;
  bool fin_arrived_ = false;
  bool read_shut_ = false;
  bool write_shut_ = false;
  bool end_sent_ = false;
  bool dead_ = false;
  bool released_ = false;
  bool write_blocked_ = false;
};

}  // namespace ringside::sim
