#include "peer_connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace ringside::sim {

PeerConnection::~PeerConnection() {
  if (stream_ != nullptr) stream_->reset();
}

void PeerConnection::attach(std::shared_ptr<Stream> stream) {
  stream_ = std::move(stream);
  stream_->set_waker(this);
  if (core_.faults.hit(Fault::one_byte_peer)) {
    pace_ = {.bytes = 1, .pause_ns = core_.random.between(1, 30) * millisecond_ns, .steps = 250};
  }
  wake_after(0);
}

void PeerConnection::wake_after(std::uint64_t delay_ns) {
  if (closed_) return;
  const std::uint64_t at = std::max(core_.clock.now_ns() + delay_ns, pace_until_ns_);
  if (planned_ns_ <= at && planned_ns_ >= core_.clock.now_ns()) return;
  planned_ns_ = at;
  core_.clock.at(at, [this, at] {
    // A later plan, or an earlier one that has run, makes this one moot.
    if (planned_ns_ != at || closed_) return;
    planned_ns_ = never_ns;
    serve();
  });
}

std::size_t PeerConnection::paced(std::size_t bytes) const {
  return pace_.steps != 0 ? std::min(bytes, pace_.bytes) : bytes;
}

void PeerConnection::serve() {
  if (!prepare() || stream_ == nullptr) return;
  // One step of each direction at a time, so that a callback that closes is noticed.
  for (bool moved = true; moved && !closed_;) {
    moved = write_some();
    if (!closed_) moved |= read_some();
    if (moved && pace_.steps != 0) {
      --pace_.steps;
      pace_until_ns_ = core_.clock.now_ns() + pace_.pause_ns;
      return wake_after(pace_.pause_ns);
    }
  }
}

bool PeerConnection::write_some() {
  const std::uint64_t allowed = send_limit_ - std::min(send_limit_, bytes_sent_);
  const std::size_t want =
      paced(static_cast<std::size_t>(std::min<std::uint64_t>(out_.size() - out_at_, allowed)));
  bool moved = false;
  if (want != 0) {
    const int result = stream_->write(out_.data() + out_at_, want);
    if (result > 0) {
      out_at_ += static_cast<std::size_t>(result);
      bytes_sent_ += static_cast<std::uint64_t>(result);
      if (drained()) {
        out_.clear();
        out_at_ = 0;
      }
      moved = true;
      on_sent();
    } else if (result < 0 && result != -EAGAIN) {
      // Told once; what has arrived before it can still be read.
      if (result == -ECONNRESET) reset_seen_ = true;
      out_.clear();
      out_at_ = 0;
      on_sent();
    }
  }
  if (!closed_ && finishing_ && !finished_ && drained()) {
    finished_ = true;
    stream_->shutdown(SHUT_WR);
  }
  return moved;
}

bool PeerConnection::read_some() {
  if (saw_end_) return false;
  char buffer[8192];
  const int result = stream_->read(buffer, paced(sizeof buffer));
  if (result == -EAGAIN) return false;
  if (result <= 0) {
    saw_end_ = true;
    if (result < 0 || reset_seen_) {
      on_error(result < 0 ? -result : ECONNRESET);
    } else {
      on_end();
    }
    return true;
  }
  on_data({buffer, static_cast<std::size_t>(result)});
  return true;
}

void PeerConnection::finish() {
  finishing_ = true;
  wake_after(0);
}

void PeerConnection::close() {
  if (closed_) return;
  closed_ = true;
  if (stream_ != nullptr) std::exchange(stream_, nullptr)->release();
}

void PeerConnection::reset() {
  if (closed_) return;
  closed_ = true;
  if (stream_ != nullptr) std::exchange(stream_, nullptr)->reset();
}

}  // namespace ringside::sim
