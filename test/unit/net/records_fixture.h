// A stream with a scripted record layer.
#pragma once

#include <sys/socket.h>

#include <string>
#include <string_view>

#include "scripted_layer.h"
#include "stream_fixture.h"

namespace ringside::net::test {

inline MachineOptions with_records(MachineOptions options = {}) {
  if (options.opened_buffers == 0) options.opened_buffers = 16;
  return options;
}

// What the handler is told of a failure of the receiving direction.
inline std::string failure(base::ErrorCode code) {
  return "failed receive " + std::string(base::describe(code));
}
inline const std::string insecure = failure(base::ErrorCode::insecure);

enum class Side : std::uint8_t { server, client };

class RecordsTest : public StreamTest {
 protected:
  explicit RecordsTest(const MachineOptions& options = {}, Side side = Side::server)
      : StreamTest(with_records(options)), layer_(machine_.slices, side == Side::client) {
    stream_->secure(layer_);
  }
  // Before the layer goes, which the stream needs to the last.
  ~RecordsTest() override {
    handler_.action = nullptr;
    if (!stream_->closing()) stream_->close();
    machine_.tidy();
  }

  // An accepted connection that receives.
  void accept() {
    adopt();
    stream_->resume();
    machine_.settle();
  }
  // And has completed its handshake.
  void establish() {
    accept();
    machine_.arrive(fd_, "hi");
    ASSERT_EQ(machine_.leave(fd_), "yo");
    machine_.arrive(fd_, "ok");
    ASSERT_EQ(handler_.news(), (News{"sent", "secured"}));
  }
  bool multishot() {
    return (machine_.look(IORING_OP_RECV, fd_).ioprio & IORING_RECV_MULTISHOT) != 0;
  }
  void send(std::string_view bytes) { ASSERT_TRUE(stream_->send_view(bytes)); }
  // Answers the cancel of the receive that is armed.
  void end_cancelled_receive() {
    machine_.settle();
    const Machine::Operation receive = machine_.look(IORING_OP_RECV, fd_);
    const Machine::Operation cancel = machine_.cancel_of(receive);
    machine_.complete(receive, -ECANCELED);
    machine_.finish(cancel, 0);
  }

  ScriptedLayer layer_;
};

}  // namespace ringside::net::test
