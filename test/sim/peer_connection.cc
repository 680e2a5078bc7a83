#include "peer_connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace ringside::sim {

PeerConnection::~PeerConnection() {
  if (stream_ != nullptr) stream_->reset();
}

void PeerConnection::attach(std::shared_ptr<Stream> stream, std::unique_ptr<TlsPeer> tls) {
  stream_ = std::move(stream);
  tls_ = std::move(tls);
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

std::size_t PeerConnection::may_send() const {
  const std::uint64_t allowed = send_limit_ - std::min(send_limit_, bytes_sent_ + sealed_);
  return static_cast<std::size_t>(std::min<std::uint64_t>(out_.size() - out_at_, allowed));
}

// So many bytes of `out_` are not needed any more.
void PeerConnection::took(std::size_t bytes) {
  out_at_ += bytes;
  if (out_at_ != out_.size()) return;
  out_.clear();
  out_at_ = 0;
}

// Told once; what has arrived before it can still be read.
void PeerConnection::lose_sending(int error) {
  if (error == ECONNRESET) reset_seen_ = true;
  out_.clear();
  out_at_ = 0;
  on_sent();
}

bool PeerConnection::write_some() {
  if (tls_ != nullptr) return write_records();
  const std::size_t want = paced(may_send());
  bool moved = false;
  if (want != 0) {
    const int result = stream_->write(out_.data() + out_at_, want);
    if (result > 0) {
      took(static_cast<std::size_t>(result));
      bytes_sent_ += static_cast<std::uint64_t>(result);
      moved = true;
      on_sent();
    } else if (result < 0 && result != -EAGAIN) {
      lose_sending(-result);
    }
  }
  end_sending();
  return moved;
}

// True: there is more to be sent first.
bool PeerConnection::end_sending() {
  if (closed_ || !finishing_ || finished_ || !drained()) return false;
  if (tls_ != nullptr && !tls_->may_finish()) return false;
  if (tls_ != nullptr && !tls_->finished()) {
    tls_->finish();
    return true;
  }
  finished_ = true;
  stream_->shutdown(SHUT_WR);
  return false;
}

bool PeerConnection::read_some() {
  if (saw_end_) return false;
  char buffer[8192];
  const int result = stream_->read(buffer, paced(sizeof buffer));
  if (result == -EAGAIN) return false;
  if (result <= 0) {
    saw_end_ = true;
    if (result == 0 && !reset_seen_ && tls_ != nullptr) {
      records_ended();
    } else if (result < 0 || reset_seen_) {
      on_error(result < 0 ? -result : ECONNRESET);
    } else {
      on_end();
    }
    return true;
  }
  const std::string_view bytes(buffer, static_cast<std::size_t>(result));
  if (tls_ != nullptr)
    read_records(bytes);
  else
    on_data(bytes);
  return true;
}

// ---- with TLS

// Of a client that has sent early data.
void PeerConnection::end_handshake() {
  const std::uint64_t at_ns = tls_->confirms_at_ns();
  if (at_ns > core_.clock.now_ns()) {
    if (at_ns != never_ns) wake_after(at_ns - core_.clock.now_ns());
    return;
  }
  tls_->confirm();
  on_confirmed();
}

bool PeerConnection::write_records() {
  if (tls_->must_confirm()) end_handshake();
  std::string_view wire = tls_->wire();
  if (wire.empty() && tls_->stalled_until_ns() != 0) {
    wake_after(tls_->stalled_until_ns() - core_.clock.now_ns());
    return false;
  }
  if (wire.empty() && tls_->ready() && may_send() != 0) {
    const std::size_t bytes = tls_->seal(std::string_view(out_).substr(out_at_, may_send()));
    took(bytes);
    sealed_ += bytes;
    wire = tls_->wire();
  }
  if (wire.empty() && tls_->cut()) {
    if (tls_->cut_by_reset())
      reset();
    else
      close();
    on_error(ECONNABORTED);
    return false;
  }
  if (wire.empty()) return end_sending();
  const int result = stream_->write(wire.data(), paced(wire.size()));
  if (result == -EAGAIN) return false;
  if (result < 0) {
    tls_->drop();
    sealed_ = 0;
    lose_sending(-result);
    return false;
  }
  const std::size_t plaintext = tls_->left(static_cast<std::size_t>(result));
  sealed_ -= plaintext;
  bytes_sent_ += plaintext;
  if (tls_->established() || tls_->early()) on_sent();
  end_sending();
  return true;
}

void PeerConnection::read_records(std::string_view bytes) {
  while (!bytes.empty() && !closed_ && !saw_end_) {
    std::size_t taken = 0;
    const TlsPeer::Event event = tls_->hear(bytes, &taken);
    bytes.remove_prefix(taken);
    if (event == TlsPeer::Event::data) {
      on_data(tls_->data());
    } else if (event == TlsPeer::Event::ended) {
      saw_end_ = true;
      on_end();
    } else if (event == TlsPeer::Event::failed) {
      saw_end_ = true;
      on_error(tls_->heard_nonsense() ? EPROTO : ECONNABORTED);
    } else if (event == TlsPeer::Event::none) {
      return;
    }
  }
}

// The FIN. What nobody announced may be a cut.
void PeerConnection::records_ended() {
  if (tls_->peer_ended())
    on_end();
  else
    on_error(ECONNABORTED);
}

// The last words of who closes.
void PeerConnection::farewell() {
  if (!tls_->drained() || sealed_ != 0) return;
  if (!tls_->finished()) tls_->finish();
  const std::string_view wire = tls_->wire();
  if (!wire.empty()) stream_->write_whole(wire);
}

void PeerConnection::finish() {
  finishing_ = true;
  wake_after(0);
}

void PeerConnection::close() {
  if (closed_) return;
  closed_ = true;
  if (stream_ == nullptr) return;
  if (tls_ != nullptr) farewell();
  std::exchange(stream_, nullptr)->release();
}

void PeerConnection::reset() {
  if (closed_) return;
  closed_ = true;
  if (stream_ != nullptr) std::exchange(stream_, nullptr)->reset();
}

}  // namespace ringside::sim
