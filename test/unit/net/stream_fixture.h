// A stream on a machine, with a handler that keeps what it is told.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ringside/net/stream.h"

#include "machine.h"

namespace ringside::net::test {

class Recorder final : public StreamHandler {
 public:
  void on_connected() override { tell("connected"); }
  void on_secured() override { tell("secured"); }
  void on_confirmed() override { tell("confirmed"); }
  void on_received(ring::Lease lease) override {
    std::string text(lease.bytes());
    marks.push_back(Piece(lease.share(0, lease.size())).mover());
    if (keep) kept.push_back(std::move(lease));
    tell("received " + text);
  }
  std::uint64_t opaque_bytes() override { return opaque; }
  void on_piped(PipeBytes bytes) override {
    const std::size_t size = bytes.size();
    piped.push_back(std::move(bytes));
    tell("piped " + std::to_string(size));
  }
  void on_end_of_stream() override { tell("end"); }
  void on_sent() override { tell("sent"); }
  void on_failed(const base::Error& error, Direction direction) override {
    std::string where = direction == Direction::send ? "send " : "receive ";
    tell("failed " + where + std::string(base::describe(error.code)));
  }
  void on_closed() override { tell("closed"); }
  void on_released(int fd) override { tell("released " + std::to_string(fd)); }

  // What came since the last call.
  std::vector<std::string> news() { return std::exchange(events_, {}); }

  bool keep = false;  // leases
  std::vector<ring::Lease> kept;
  std::vector<Mover> marks;  // how each piece came
  std::uint64_t opaque = 0;  // what opaque_bytes() says
  std::vector<PipeBytes> piped;
  std::function<void(const std::string&)> action;

 private:
  void tell(const std::string& event) {
    events_.push_back(event);
    if (action) action(event);
  }
  std::vector<std::string> events_;
};

using News = std::vector<std::string>;

class StreamTest : public testing::Test {
 protected:
  explicit StreamTest(const MachineOptions& options = {}) : machine_(sys_, options) {
    stream_ = std::make_unique<Stream>(machine_.context, handler_);
    fd_ = *sys_.open_stream_socket(AF_INET);
  }
  ~StreamTest() override {
    handler_.action = nullptr;
    if (!stream_->closing()) stream_->close();
    handler_.kept.clear();
    handler_.piped.clear();
    machine_.tidy();
    EXPECT_EQ(machine_.ring->attached(), 0U) << "it was not closed";
    EXPECT_TRUE(machine_.kernel.submitted.empty()) << "something is in flight";
    EXPECT_EQ(machine_.slices.in_use(), 0U);
    EXPECT_EQ(machine_.buffers->leased(), 0U);
    EXPECT_EQ(machine_.large == nullptr ? 0U : machine_.large->leased(), 0U);
    EXPECT_EQ(machine_.opened == nullptr ? 0U : machine_.opened->leased(), 0U);
    EXPECT_EQ(machine_.blocks.in_use(), 0U);
    EXPECT_EQ(sys_.open.size(), std::size_t{2} * machine_.pipes.pooled()) << "a descriptor is open";
  }

  void adopt() { ASSERT_TRUE(stream_->adopt(fd_)); }
  // Ends a stream that only receives, leaving every other operation alone.
  void close_now(int fd) {
    machine_.settle();
    if (machine_.receiving(fd)) {
      Machine::Operation receive = machine_.look(IORING_OP_RECV, fd);
      Machine::Operation cancel = machine_.cancel_of(receive);
      machine_.complete(receive, -ECANCELED);
      machine_.finish(cancel, 0);
    }
    machine_.finish_close(fd);
  }

  FakeSys sys_;
  Machine machine_;
  Recorder handler_;
  std::unique_ptr<Stream> stream_;
  int fd_ = -1;
};

}  // namespace ringside::net::test
