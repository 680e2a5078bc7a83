// The short life of a stream: one receive, and an end that leaves with the last bytes
// (src/decisions/0010-the-end-in-the-last-packet.md).
#include <sys/socket.h>

#include <cassert>
#include <cstdint>
#include <utility>

#include "ringside/net/stream.h"

namespace ringside::net {

namespace {
// What may leave together with the end: as much as a socket takes at once as a rule.
constexpr std::size_t last_bytes_max = 16 * 1024;
}  // namespace

void Stream::receive_once() {
  assert(state_ == State::open && parked_ && receive_ == Receive::off);
  receive_ = Receive::armed;
  armed_singly_ = once_ = true;
  context_.ring.receive(*this, kind_receive, fd_, context_.buffers);
}

bool Stream::may_end_with_queue() const {
  return last_queued_ && layer_ == nullptr && queue_.bytes() <= last_bytes_max;
}

// The receive goes first, as it holds the socket open.
void Stream::submit_last(const msghdr* message) {
  close_submitted_ = close_follows_ = true;
  if (receive_ == Receive::armed) cancel_receive();
  context_.ring.send_message_and_close(*this, kind_send, kind_close, fd_, message, MSG_NOSIGNAL);
}

// The close behind the last send has run; or it has not, as the send did not take all, and all is
// as before: the rest leaves by sends that wait.
void Stream::close_followed(int result) {
  close_follows_ = false;
  if (result < 0) {
    close_submitted_ = last_queued_ = false;
    if (reset_wanted_) context_.sys.reset_on_close(fd_);
  } else {
    fd_ = -1;
  }
  if (std::exchange(failure_kept_, false)) sent({.result = kept_result_, .flags = 0});
  if (state_ != State::open) return advance_closing();
  if (receive_ == Receive::off) arm_receive();
}

}  // namespace ringside::net
