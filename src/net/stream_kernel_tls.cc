// A stream whose records the kernel makes and opens, once the handshake is over.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "ringside/net/stream.h"

namespace ringside::net {

using Direction = StreamHandler::Direction;

// All that we sealed has left.
void Stream::hand_over_sending() {
  const bool held = layer_->holds_receiving();
  layer_->kernel_sends_ = layer_->hand_over_sending(context_.sys, fd_);
  // SEND_ZC fails on such a socket.
  if (layer_->kernel_sends_) zero_copy_off_ = true;
  if (layer_->refused()) return records_failed();
  if (held && receive_ == Receive::off) arm_receive();
}

// Between two records, with no receive in flight. True: a receive was armed that ends at the next
// boundary at the latest.
bool Stream::hand_over_receiving() {
  RecordLayer& layer = *layer_;
  if (layer.kernel_opens_ || !layer.wants_to_hand_over()) return false;
  if (!layer.unopened_.empty() || layer.more_) return false;
  const std::size_t before = layer.bytes_to_hand_over();
  if (before == 0) {
    layer.kernel_opens_ = layer.hand_over_receiving(context_.sys, fd_);
    if (!layer.refused()) return false;
    records_failed();
    return true;
  }
  receive_ = Receive::armed;
  armed_singly_ = true;
  armed_large_ = false;
  context_.ring.receive_exactly(*this, kind_receive, fd_, context_.buffers,
                                static_cast<std::uint32_t>(before));
  return true;
}

// A plain receive does not get past a record that is no data, and leaves it where it is.
void Stream::arm_control() {
  msghdr* message = layer_->control_message();
  if (message == nullptr) return control_lost(-ENOMEM);
  receive_ = Receive::armed;
  armed_singly_ = true;
  layer_->controlling_ = true;
  context_.ring.receive_message(*this, kind_receive, fd_, message);
}

void Stream::control_received(const ring::Completion& completion) {
  layer_->controlling_ = false;
  receive_ = Receive::off;
  if (state_ != State::open) return advance_closing();
  if (completion.result <= 0) return receive_failed(completion.result);
  const RecordLayer::Control control =
      layer_->on_control(context_.sys, fd_, static_cast<std::size_t>(completion.result));
  switch (control.status) {
    case RecordLayer::Status::need_input:
      queued();  // it may have something to say of it
      return arm_receive();
    case RecordLayer::Status::ended:
      return records_ended();
    case RecordLayer::Status::failed:
      return records_failed();
    case RecordLayer::Status::unreadable:
      ended_ = true;
      queued();
      return handler_->on_failed({base::ErrorCode::unsupported}, Direction::receive);
    case RecordLayer::Status::more:
      break;
  }
  for (std::string_view data = control.data; !data.empty() && state_ == State::open;) {
    ring::Lease lease = context_.opened->borrow();
    if (!lease) return control_lost(-ENOBUFS);
    const std::size_t bytes = std::min(data.size(), lease.size());
    std::copy_n(data.data(), bytes, lease.room().data());
    data.remove_prefix(bytes);
    lease.truncate(bytes);
    handler_->on_received(std::move(lease));
  }
  if (receive_ == Receive::off) arm_receive();
}

// What follows it is of no use.
void Stream::control_lost(int negative_errno) {
  ended_ = true;
  fail(negative_errno, Direction::receive);
}

// Says what the layer has to say. False: nothing.
bool Stream::send_notice() {
  if (!layer_->kernel_sends_) return false;
  if (layer_->notice_ == nullptr) layer_->notice_ = layer_->own_message();
  if (layer_->notice_ == nullptr) return false;
  submit_notice(0);
  return true;
}

// Says that nothing more comes. False: that was said, or is not to be.
bool Stream::notify_end(int flags) {
  if (!layer_->kernel_sends_ || layer_->unannounced_) return false;
  msghdr*& notice = layer_->notice_;  // still there when it is to be sent again
  if (notice == nullptr) notice = layer_->closing_message();
  if (notice == nullptr) return false;
  submit_notice(flags);
  return true;
}

void Stream::submit_notice(int flags) {
  sending_ = true;
  context_.ring.send_message(*this, kind_send, fd_, layer_->notice_, MSG_NOSIGNAL | flags);
}

void Stream::notice_sent() {
  layer_->notice_ = nullptr;
  const int result = layer_->said(context_.sys, fd_);
  if (result != 0) return fail(result, Direction::send);
  queued();
}

}  // namespace ringside::net
