// The parity script's tools. Every test in this folder runs once for each column (kernel and socket
// family), and expects the same results and flags in all of them; what a kernel is free to choose
// is left out of the comparison and said so where it is.
//
// To add a kernel: write an Environment, and in that file
//   INSTANTIATE_TEST_SUITE_P(Name, Parity, testing::Values(Column{...}, ...), column_name);
// and the same for ParityInet (Family::inet columns only), what only TCP has.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ringside/ring/buffer_group.h"
#include "ringside/ring/ring.h"

#include "environment.h"

namespace ringside::parity {

// One completion, with what may be compared: F_MORE, F_BUFFER and F_NOTIF, not the buffer's number
// nor F_SOCK_NONEMPTY, which are hints.
struct Event {
  std::uint8_t kind = 0;
  std::int32_t result = 0;
  bool more = false;
  bool buffer = false;
  bool notification = false;
  std::string data;

  friend bool operator==(const Event&, const Event&) = default;
};
std::ostream& operator<<(std::ostream& out, const Event& event);

// Submits operations and keeps their completions.
class Recorder final : public ring::Completer {
 public:
  explicit Recorder(ring::Ring& ring, ring::BufferGroup* group = nullptr);
  ~Recorder() override;

  void on_complete(std::uint8_t kind, const ring::Completion& completion) override;

  // Of this kind, not looked at yet.
  std::size_t pending(std::uint8_t kind) const;
  std::vector<Event> take_all(std::uint8_t kind);

  // Leases stay held, so that the group runs dry.
  bool hold_leases = false;
  std::vector<ring::Lease> leases;

 private:
  friend class ParityBase;
  ring::Ring& ring_;
  ring::BufferGroup* group_;
  std::vector<Event> events_;
};

enum Kind : std::uint8_t {
  kind_accept,
  kind_connect,
  kind_receive,
  kind_send,
  kind_cancel,
  kind_close,
  kind_poll,
  kind_nop,
  kind_message,
  kind_read,
};

class ParityBase : public testing::TestWithParam<Column> {
 protected:
  static constexpr std::uint32_t buffer_bytes = 4096;
  static constexpr std::uint32_t buffer_count = 16;

  void SetUp() override;
  void TearDown() override;

  ring::Ring& ring() { return *ring_; }
  net::SysPort& sys() { return environment_->sys(); }
  Environment& environment() { return *environment_; }
  bool inet() const { return GetParam().family == Family::inet; }

  // Runs the loop until a completion of this kind is there, and takes it. Fails the test (and
  // returns result INT32_MIN) when the loop goes idle before.
  Event await(Recorder& recorder, std::uint8_t kind);
  // Runs the loop until nothing has happened for a while: what is not complete now is waiting.
  void settle();
  // Until `recorder` has nothing in flight.
  void await_end(Recorder& recorder);

  int open_socket();
  net::Address free_address();
  struct Listener {
    int fd = -1;
    net::Address address;
  };
  Listener listen(int backlog = 16);
  // A connected pair.
  struct Pair {
    int client = -1;
    int server = -1;
  };
  Pair connect_pair();
  std::int32_t connect(int fd, const net::Address& address);

  // By operations of the ring. Each fails the test unless all goes well.
  void send_all(int fd, std::string_view data);
  // What submits one plain send of all that it is given.
  std::function<void(std::string_view)> sender(Recorder& recorder, int fd);
  void shutdown(int fd, int how);
  void close(int fd);
  // Receives until the peer ends the stream or at least `bytes` are there.
  std::string receive_some(int fd, std::size_t bytes);
  // A connection from the queue, which may be a little late.
  int accept_one(int listener_fd, net::Address* peer = nullptr);
  // Waits until `fd` has heard of its peer's end or reset.
  void await_hang_up(int fd);
  // True when the peer of `fd` has ended the stream; fails the test when it sends something.
  bool sees_end(int fd);

  std::unique_ptr<Environment> environment_;
  std::unique_ptr<ring::Ring> ring_;
  std::unique_ptr<ring::BufferGroup> group_;
  std::unique_ptr<Recorder> helper_;
  unsigned addresses_ = 0;
};

class Parity : public ParityBase {};
class ParityInet : public ParityBase {};

std::string column_name(const testing::TestParamInfo<Column>& info);

inline Event event(std::uint8_t kind, std::int32_t result) {
  return {.kind = kind, .result = result, .data = {}};
}
inline Event received(std::string_view data, bool more) {
  return {.kind = kind_receive,
          .result = static_cast<std::int32_t>(data.size()),
          .more = more,
          .buffer = true,
          .data = std::string(data)};
}
inline Event accepted(std::int32_t fd) {
  return {.kind = kind_accept, .result = fd, .more = true, .data = {}};
}

// Text that shows where it was cut or mixed up.
std::string pattern(std::size_t bytes);

}  // namespace ringside::parity
