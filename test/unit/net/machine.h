// A ring on a kernel that does only what the test says, and what streams need beside it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "ringside/net/slice.h"
#include "ringside/net/stream.h"
#include "ringside/net/sys_port.h"
#include "ringside/ring/buffer_group.h"
#include "ringside/ring/ring.h"

#include "../ring/fake_kernel.h"

namespace ringside::net::test {

// Hands out descriptors and knows which are open. Nothing listens here.
class FakeSys : public SysPort {
 public:
  base::Result<int> open_stream_socket(int family) override;
  int set_option(int fd, int level, int name, int value) override;
  int set_option_bytes(int fd, int level, int name, const void* value, std::size_t bytes) override;
  int reset_on_close(int fd) override;
  int bind(int, const Address&) override { return -EOPNOTSUPP; }
  int listen(int, int) override { return -EOPNOTSUPP; }
  int connect_now(int fd, const Address& address) override;
  int shutdown(int fd, int how) override;
  int unacknowledged(int) override { return -EOPNOTSUPP; }
  int set_nonblocking(int, bool) override { return -EOPNOTSUPP; }
  int accept_now(int, Address&) override { return -EOPNOTSUPP; }
  base::Result<int> duplicate(int) override { return unsupported(); }
  base::Result<Address> local_address(int) override { return unsupported(); }
  base::Result<Address> peer_address(int) override { return unsupported(); }
  void close(int fd) override;
  base::Result<PipeEnds> open_pipe(std::uint32_t bytes) override;
  int splice_in(int socket, int pipe_write_fd, std::uint32_t bytes) override;
  int splice_out(int pipe_read_fd, int socket, std::uint32_t bytes) override;
  int remove_stale_unix_socket(const Address&) override { return -EOPNOTSUPP; }
  void random_bytes(void*, std::size_t) override {}

  int open_errno = 0;           // what the next open_stream_socket fails with
  std::set<int> open;           // descriptors
  std::set<int> without_delay;  // that TCP_NODELAY was set on
  // What was set by set_option_bytes, by descriptor, level and name; and the errno it fails with
  // for a level and name.
  std::map<std::tuple<int, int, int>, std::string> option_bytes;
  std::map<std::pair<int, int>, int> option_errno;
  std::pair<int, int> once_only;  // a level and name that a descriptor takes once, then EBUSY
  int connect_errno = 0;          // what connect_now fails with
  std::set<int> to_be_reset;      // that reset_on_close was called for
  std::map<int, int> ends;        // how often SHUT_WR was asked for

  // Sockets as splice sees them: what there is to read, how much fits, and what was written. An
  // errno of `splice_errno` is answered first, once.
  std::map<int, std::string> readable;
  std::map<int, std::size_t> room;
  std::map<int, std::string> written;
  std::map<int, int> splice_errno;
  int pipe_errno = 0;
  std::uint32_t pipe_capacity = 16;
  unsigned pipes_opened = 0;

 private:
  static std::unexpected<base::Error> unsupported() {
    return std::unexpected(base::from_errno(EOPNOTSUPP));
  }
  int next_ = 10;
  std::map<int, std::string> pipes_;  // by either end: the read end is one below the write end
};

struct MachineOptions {
  std::uint32_t buffers = 64;
  std::uint32_t buffer_bytes = 64;
  std::uint32_t slices = 256;
  std::uint32_t owners_max = 1024;
  std::uint32_t pipes = 8;
  bool bundles = false;
  std::uint32_t large_buffers = 0;
  std::uint32_t large_buffer_bytes = 128;
  // For streams with a record layer.
  std::uint32_t opened_buffers = 0;
  std::uint32_t opened_buffer_bytes = 64;
  std::uint32_t blocks = 4;
};

class Machine {
 public:
  using Operation = ring::test::FakeKernel::Submitted;

  explicit Machine(FakeSys& system, const MachineOptions& options = {});

  // Turns the loop until nothing moves any more.
  void settle();
  // Lets time pass, then settles.
  void pass_ms(std::uint64_t ms);

  // Whether an operation of that code is in flight on `fd`.
  bool waits(std::uint8_t opcode, int fd) const;
  bool receiving(int fd) const { return waits(IORING_OP_RECV, fd); }
  bool sending(int fd) const { return waits(IORING_OP_SEND, fd) || waits(IORING_OP_SENDMSG, fd); }
  bool closing(int fd) const { return waits(IORING_OP_CLOSE, fd); }
  // Looks at it; the test fails when there is none.
  Operation look(std::uint8_t opcode, int fd) const;
  // The cancel of that operation.
  bool cancelled(const Operation& target) const;
  Operation cancel_of(const Operation& target) const;

  // Completes an operation that is in flight, without turning the loop: several can complete in one
  // turn.
  void complete(const Operation& operation, int result, unsigned flags = 0);
  // Completes, and settles.
  void finish(const Operation& operation, int result, unsigned flags = 0) {
    complete(operation, result, flags);
    settle();
  }
  void finish(std::uint8_t opcode, int fd, int result) { finish(look(opcode, fd), result); }

  // Received bytes that no stream got.
  ring::Lease lease(std::string_view bytes);
  // Bytes for the receive in flight on `fd`. A multishot one stays armed unless `last`.
  void put(int fd, std::string_view bytes, bool last = false);
  // And the socket has more behind them.
  void put_of_more(int fd, std::string_view bytes);
  void arrive(int fd, std::string_view bytes, bool last = false) {
    put(fd, bytes, last);
    settle();
  }
  // The receive in flight ends with this result: 0 is the peer's FIN.
  void end_receive(int fd, int result) { finish(IORING_OP_RECV, fd, result); }

  // What the send in flight points to, now.
  std::string text(const Operation& send) const;
  Operation look_send(int fd) const;
  // Up to `most` bytes of the send in flight leave. Returns them.
  std::string take_send(int fd, std::size_t most = ~std::size_t{0});
  std::string leave(int fd, std::size_t most = ~std::size_t{0}) {
    std::string out = take_send(fd, most);
    settle();
    return out;
  }
  // One send after the other, to the last.
  std::string leave_all(int fd);

  void finish_close(int fd);
  // Answers every cancel, every close and every send that does not wait as a kernel does, until
  // none is left.
  void tidy();

  FakeSys& sys;
  ring::test::FakeKernel kernel;
  std::unique_ptr<ring::Ring> ring;
  std::unique_ptr<ring::BufferGroup> buffers;
  std::unique_ptr<ring::BufferGroup> large;   // null: none were asked for
  std::unique_ptr<ring::BufferGroup> opened;  // likewise
  RecordBlocks blocks;
  SlicePool slices;
  PipePool pipes;
  StreamContext context;

 private:
  void put_with(int fd, std::string_view bytes, unsigned flags);
  static constexpr std::uint16_t group_id = 3;
  static constexpr std::uint16_t large_group_id = 4;

  std::unique_ptr<ring::Ring> open(const MachineOptions& options);
  std::unique_ptr<ring::BufferGroup> make_buffers(const MachineOptions& options);
  std::unique_ptr<ring::BufferGroup> make_large(const MachineOptions& options);
  std::unique_ptr<ring::BufferGroup> make_opened(const MachineOptions& options);
  int submit(unsigned count, const ring::test::FakeKernel::Take& take);
  bool tidy_one();
  bool forget(const Operation& operation);

  std::map<std::uint64_t, std::vector<iovec>> gathers_;  // by user_data
};

}  // namespace ringside::net::test
