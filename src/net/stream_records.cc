// A stream whose bytes pass through a record layer, in user space.
#include <sys/socket.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <utility>

#include "ringside/net/stream.h"

namespace ringside::net {

using Direction = StreamHandler::Direction;

namespace {
constexpr std::size_t pieces_max = 64;
}

void Stream::secure(RecordLayer& layer) {
  assert(state_ == State::fresh && context_.opened != nullptr && context_.blocks != nullptr);
  layer_ = &layer;
}

// Connected: our side of the handshake begins.
void Stream::start_records() {
  layer_->client_ = true;
  layer_->on_socket(context_.sys, fd_);
  parked_ = false;
  if (layer_->own_bytes() == 0) return records_failed();
  queued();
  arm_receive();
}

void Stream::rest() {
  if (layer_ != nullptr && idle()) layer_->rest();
}

// ---- receiving

void Stream::received_record(ring::Lease lease) {
  if (layer_->failed_ || ended_) return;
  if (!layer_->unopened_.push(std::move(lease))) {
    // There is a hole in it now.
    ended_ = true;
    layer_->unopened_.clear();
    layer_->more_ = false;
    return fail(-ENOMEM, Direction::receive);
  }
  open_records();
}

// Hands plaintext on, until all is opened, or there is no buffer for it, or the handler closes.
void Stream::open_records() {
  RecordLayer& layer = *layer_;
  ring::Lease room;
  while (state_ == State::open && !layer.blocked_ && !layer.failed_) {
    const Slice* front = layer.unopened_.front();
    if (front == nullptr && !layer.more_) {
      if (std::exchange(layer.over_, false)) receive_failed(layer.over_result_);
      return;
    }
    if (!room) room = context_.opened->borrow();
    if (!room) return wait_for_room();
    const std::string_view bytes =
        front == nullptr ? std::string_view() : std::string_view(front->data, front->size);
    const RecordLayer::Opened opened = layer.open(bytes, room.room());
    layer.unopened_.consume(opened.consumed);
    layer.more_ = opened.status == RecordLayer::Status::more;
    if (layer.own_bytes() != 0) queued();
    if (opened.secured) secured();
    if (opened.plaintext != 0 && state_ == State::open) {
      room.truncate(opened.plaintext);
      room.set_mark(static_cast<std::uint8_t>(Mover::copy));
      handler_->on_received(std::exchange(room, {}));
    }
    if (opened.confirmed) confirmed();
    if (opened.status == RecordLayer::Status::ended) return records_ended();
    if (opened.status == RecordLayer::Status::failed) return records_failed();
  }
}

void Stream::wait_for_room() {
  layer_->blocked_ = true;
  // It waits for one thing at a time: what it had to receive into is armed again afterwards.
  if (receive_ == Receive::no_buffers) {
    ring::BufferWaiter::unlink();
    receive_ = Receive::off;
  }
  if (receive_ == Receive::armed && !armed_singly_) cancel_receive();
  context_.opened->wait(*this);
}

void Stream::secured() {
  if (state_ != State::open) return;
  if (layer_->client_)
    handler_->on_connected();
  else
    handler_->on_secured();
  if (state_ != State::open) return;
  if (!queue_.empty()) queued();
  if (layer_->moving_ && layer_->own_bytes() == 0 && layer_->block_ == nullptr) hand_over_sending();
}

// What had to wait for it goes on.
void Stream::confirmed() {
  if (state_ != State::open) return;
  handler_->on_confirmed();
  if (state_ != State::open) return;
  if (!queue_.empty() || finish_wanted_) queued();
  if (layer_->moving_ && layer_->own_bytes() == 0 && layer_->block_ == nullptr) hand_over_sending();
}

// The peer's FIN (0), or an error. False: it is an error as of every stream.
bool Stream::records_over(int result) {
  if (ended_) return true;
  RecordLayer& layer = *layer_;
  if (layer.failed_) {
    ended_ = true;
    handler_->on_end_of_stream();
  } else if (!layer.unopened_.empty() || layer.more_) {
    layer.over_ = true;
    layer.over_result_ = result;
  } else if (result != 0) {
    return false;
  } else if (layer.end_of_input() == RecordLayer::Status::failed) {
    ended_ = true;
    records_failed();
  } else {
    records_ended();
  }
  return true;
}

void Stream::records_ended() {
  if (state_ != State::open || ended_) return;
  ended_ = true;
  layer_->unopened_.clear();
  handler_->on_end_of_stream();
}

void Stream::records_failed() {
  if (state_ != State::open || layer_->failed_) return;
  layer_->failed_ = true;
  layer_->unopened_.clear();
  // It never leaves. (Under the kernel's records it does.)
  if (sends_records()) queue_.clear();
  handler_->on_failed({base::ErrorCode::insecure}, Direction::receive);
}

bool Stream::may_receive() const {
  // Records that the kernel opens come as if nothing had happened.
  if (layer_->failed_ && layer_->kernel_opens_) return false;
  return !layer_->blocked_ && !layer_->over_ && !layer_->holds_receiving();
}

// ---- sending

// Records are made when they can be sent, so that what waits is plaintext, and what was queued
// together shares records.
void Stream::submit_records() {
  RecordLayer& layer = *layer_;
  if (finish_sent_) return;  // an alert would come too late
  if (layer.block_ != nullptr) return send_block();
  const bool early = layer.early();
  if (queue_.empty() && finish_wanted_ && !layer.unannounced_ && !early) layer.close();
  const bool sealing = !queue_.empty() && layer.can_seal();
  if (!sealing && layer.own_bytes() == 0) {
    if (queue_.empty() && !early) send_fin();
    return;
  }
  layer.block_ = context_.blocks->create();
  if (layer.block_ == nullptr) return fail(-ENOMEM, Direction::send);
  if (sealing)
    seal_queue();
  else
    layer.sealed_ = static_cast<std::uint32_t>(layer.take_own(layer.block_->bytes));
  layer.sent_ = 0;
  if (layer.sealed_ != 0) return send_block();
  drop_block();
  records_failed();
}

void Stream::seal_queue() {
  RecordLayer& layer = *layer_;
  std::string_view pieces[pieces_max];
  std::size_t count = 0;
  for (const Slice* at = queue_.front(); at != nullptr && count < pieces_max; at = at->next)
    pieces[count++] = {at->data, at->size};
  const RecordLayer::Sealed sealed = layer.seal({pieces, count}, layer.block_->bytes);
  queue_.consume(sealed.taken);
  layer.plaintext_ = static_cast<std::uint32_t>(sealed.taken);
  layer.sealed_ = static_cast<std::uint32_t>(sealed.produced);
}

void Stream::send_block() {
  sending_ = true;
  const RecordLayer& layer = *layer_;
  context_.ring.send(*this, kind_send, fd_, layer.block_->bytes + layer.sent_,
                     layer.sealed_ - layer.sent_, MSG_NOSIGNAL);
}

// Some of the block has left. What is left of its records has at least what is left of their
// plaintext.
void Stream::sent_records(std::uint32_t bytes) {
  RecordLayer& layer = *layer_;
  layer.sent_ += bytes;
  const std::uint32_t left = std::min(layer.plaintext_, layer.sealed_ - layer.sent_);
  bytes_sent_ += layer.plaintext_ - left;
  layer.plaintext_ = left;
  if (layer.sent_ == layer.sealed_) drop_block();
  if (layer.block_ == nullptr && layer.own_bytes() == 0 && layer.moving_) hand_over_sending();
  if (state_ != State::open) return;
  if (layer.block_ != nullptr || !queue_.empty() || layer.own_bytes() != 0 || finish_wanted_)
    queued();
  handler_->on_sent();
}

void Stream::drop_block() {
  RecordLayer& layer = *layer_;
  if (layer.block_ != nullptr) context_.blocks->destroy(std::exchange(layer.block_, nullptr));
  layer.sent_ = layer.sealed_ = layer.plaintext_ = 0;
}

// ---- ending

// The peer is told that this is the end, or why, unless it is to see the connection cut. Nobody
// waits for it: where the socket has no room, it goes without.
void Stream::say_farewell(bool reset) {
  RecordLayer& layer = *layer_;
  layer.unopened_.clear();
  if (reset || sending_ || send_failed_ || finish_sent_) return;
  if (layer.block_ != nullptr) return;  // in the middle of a record
  if (layer.kernel_sends_) {
    notify_end(MSG_DONTWAIT);
    return;
  }
  if (!layer.unannounced_) layer.close();
  if (layer.own_bytes() == 0) return;
  layer.block_ = context_.blocks->create();
  if (layer.block_ == nullptr) return;
  const std::size_t bytes = layer.take_own(layer.block_->bytes);
  sending_ = true;
  context_.ring.send(*this, kind_send, fd_, layer.block_->bytes, static_cast<unsigned>(bytes),
                     MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace ringside::net
