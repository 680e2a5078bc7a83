#include "stream.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ringside::sim {

namespace {

constexpr unsigned stalls_max = 12;  // of one direction of a connection
constexpr std::uint64_t tuned_after_bytes = 4'000;
constexpr std::size_t tuned_bytes = 4096;

std::size_t draw_capacity(Medium& medium) {
  if (!medium.faults.hit(Fault::tiny_socket_buffers)) return medium.buffer_bytes;
  static constexpr std::size_t sizes[] = {1, 3, 16, 64, 128, 512, 1024, 1460, 4096, 16384};
  return medium.random.pick(sizes);
}

std::uint64_t draw_latency(Medium& medium) {
  const std::uint64_t latency = medium.random.between(medium.latency_min_ns, medium.latency_max_ns);
  return medium.faults.hit(Fault::slow_network) ? latency * 200 : latency;
}

}  // namespace

Stream::Pair Stream::connect(Medium& medium, const net::Address& a, const net::Address& b) {
  Pair pair{std::make_shared<Stream>(medium), std::make_shared<Stream>(medium)};
  pair.a->peer_ = pair.b;
  pair.b->peer_ = pair.a;
  pair.a->local_ = pair.b->remote_ = a;
  pair.b->local_ = pair.a->remote_ = b;
  pair.a->capacity_ = draw_capacity(medium);
  pair.b->capacity_ = draw_capacity(medium);
  pair.a->base_latency_ns_ = pair.b->base_latency_ns_ = draw_latency(medium);
  return pair;
}

std::uint64_t Stream::latency() {
  // A little jitter keeps connections of one world from moving in lock step.
  return base_latency_ns_ + medium_.random.below(base_latency_ns_ / 4 + 1);
}

int Stream::read(char* out, std::size_t room, bool peek) {
  const std::size_t have = readable_bytes();
  if (have != 0) {
    const std::size_t bytes = std::min(have, room);
    std::memcpy(out, readable_.data() + read_at_, bytes);
    if (peek) return static_cast<int>(bytes);
    read_at_ += bytes;
    consumed();
    return static_cast<int>(bytes);
  }
  if (fin_arrived_) return 0;
  if (error_ != 0) return -take_error();
  if (read_shut_ || dead_) return 0;
  return -EAGAIN;
}

void Stream::consumed() {
  if (read_at_ == readable_.size()) {
    readable_.clear();
    read_at_ = 0;
  } else if (read_at_ > 64 * 1024) {
    readable_.erase(0, read_at_);
    read_at_ = 0;
  }
  auto peer = peer_.lock();
  if (peer == nullptr || !peer->write_blocked_) return;
  peer->write_blocked_ = false;
  medium_.clock.after(latency(), [peer] { peer->wake(); });
}

std::size_t Stream::room() const {
  auto peer = peer_.lock();
  if (peer == nullptr) return medium_.buffer_bytes;
  const std::size_t used = unread_by_peer();
  return used < peer->capacity_ ? peer->capacity_ - used : 0;
}

std::size_t Stream::unread_by_peer() const {
  auto peer = peer_.lock();
  return peer == nullptr ? 0 : peer->readable_bytes() + peer->incoming_bytes_;
}

int Stream::write(const char* data, std::size_t bytes, const std::shared_ptr<void>& hold) {
  if (error_ != 0) return -take_error();
  if (write_shut_ || dead_) return -EPIPE;
  const std::size_t fits = std::min(bytes, room());
  if (fits == 0 && bytes != 0) {
    write_blocked_ = true;
    return -EAGAIN;
  }
  return send(data, fits, hold);
}

int Stream::write_whole(std::string_view bytes) {
  if (error_ != 0) return -take_error();
  if (write_shut_ || dead_) return -EPIPE;
  return send(bytes.data(), bytes.size(), nullptr);
}

int Stream::send(const char* data, std::size_t bytes, const std::shared_ptr<void>& hold) {
  auto peer = peer_.lock();
  if (peer == nullptr || peer->released_) {
    if (local_.family() == AF_UNIX) return -EPIPE;  // no packets: known at once
    // Nobody is there any more: the answer is a reset.
    auto self = shared_from_this();
    medium_.clock.after(2 * latency(), [self, hold] { self->reset_arrived(); });
    return static_cast<int>(bytes);
  }
  std::size_t at = 0;
  while (at < bytes) {
    std::size_t piece = bytes - at;
    if (piece > 1 && medium_.faults.hit(Fault::split_segments)) {
      piece = medium_.random.between(1, piece - 1);
    }
    Segment segment{.due_ns = medium_.clock.now_ns() + latency(),
                    .owned = {},
                    .borrowed = nullptr,
                    .bytes = piece,
                    .end = false,
                    .hold = hold};
    if (hold == nullptr) {
      segment.owned.assign(data + at, piece);
    } else {
      segment.borrowed = data + at;
    }
    peer->expect(std::move(segment));
    at += piece;
  }
  return static_cast<int>(bytes);
}

void Stream::expect(Segment segment) {
  if (medium_.faults.hit(Fault::stall)) {
    const std::uint64_t pause_ns = medium_.random.between(millisecond_ns, 5 * second_ns);
    if (++stalls_ <= stalls_max) stall_until(medium_.clock.now_ns() + pause_ns);
  }
  segment.due_ns = std::max({segment.due_ns, last_due_ns_, stalled_until_ns_});
  last_due_ns_ = segment.due_ns;
  incoming_bytes_ += segment.bytes;
  auto self = shared_from_this();
  medium_.clock.at(segment.due_ns, [self] { self->deliver(); });
  incoming_.push_back(std::move(segment));
}

void Stream::stall_until(std::uint64_t time_ns) {
  stalled_until_ns_ = std::max(stalled_until_ns_, time_ns);
}

void Stream::deliver() {
  if (medium_.frozen) return;
  bool news = false;
  while (!incoming_.empty() && incoming_.front().due_ns <= medium_.clock.now_ns()) {
    Segment segment = std::move(incoming_.front());
    incoming_.pop_front();
    incoming_bytes_ -= segment.bytes;
    if (dead_) continue;
    take(segment);
    news = true;
  }
  if (news) wake();
}

void Stream::take(Segment& segment) {
  if (segment.end) {
    fin_arrived_ = true;
    return;
  }
  // Data for an end that has closed both directions is answered by a reset (tcp_rcv_state_process).
  if (released_ || (read_shut_ && end_sent_)) {
    dead_ = true;
    send_reset();
    return;
  }
  if (segment.borrowed != nullptr) segment.owned.assign(segment.borrowed, segment.bytes);
  if (medium_.tamper) medium_.tamper(segment.owned);
  readable_ += segment.owned;
  // Kernels enlarge the buffer of a connection that moves much; it keeps runs short, too.
  received_ += segment.bytes;
  if (received_ > tuned_after_bytes) capacity_ = std::max(capacity_, tuned_bytes);
  if (medium_.faults.hit(Fault::connection_reset)) cut();
}

int Stream::shutdown(int how) {
  if (dead_) return -ENOTCONN;
  if (how == SHUT_RD || how == SHUT_RDWR) read_shut_ = true;
  if (how == SHUT_WR || how == SHUT_RDWR) send_end();
  wake();
  return 0;
}

void Stream::send_end() {
  write_shut_ = true;
  if (end_sent_) return;
  end_sent_ = true;
  auto peer = peer_.lock();
  if (peer == nullptr || dead_) return;
  peer->expect({.due_ns = medium_.clock.now_ns() + latency(),
                .owned = {},
                .borrowed = nullptr,
                .bytes = 0,
                .end = true,
                .hold = nullptr});
}

void Stream::release() {
  if (released_) return;
  released_ = true;
  waker_ = nullptr;
  if (dead_) return;
  if (readable_bytes() != 0) {
    dead_ = true;
    send_reset();
    return;
  }
  send_end();
}

void Stream::reset() {
  released_ = true;
  waker_ = nullptr;
  if (dead_) return;
  dead_ = true;
  send_reset();
}

void Stream::send_reset() {
  auto peer = peer_.lock();
  if (peer == nullptr) return;
  medium_.clock.after(latency(), [peer] { peer->reset_arrived(); });
}

void Stream::reset_arrived() {
  if (dead_) return;
  dead_ = true;
  error_ = fin_arrived_ ? EPIPE : ECONNRESET;
  write_shut_ = read_shut_ = true;
  incoming_.clear();
  incoming_bytes_ = 0;
  // What this end still had on its way is dropped from its write queue.
  if (auto peer = peer_.lock()) {
    peer->incoming_.clear();
    peer->incoming_bytes_ = 0;
  }
  wake();
}

void Stream::cut() {
  auto peer = peer_.lock();
  reset_arrived();
  if (peer != nullptr) peer->reset_arrived();
}

int Stream::take_error() {
  return std::exchange(error_, 0);
}

unsigned Stream::poll_events() const {
  unsigned events = 0;
  if (readable_bytes() != 0 || fin_arrived_ || read_shut_ || dead_) events |= POLLIN | POLLRDNORM;
  if (fin_arrived_ || read_shut_ || dead_) events |= POLLRDHUP;
  if (dead_ || ((fin_arrived_ || read_shut_) && write_shut_)) events |= POLLHUP;
  if (error_ != 0) events |= POLLERR;
  if (room() != 0 || write_shut_) events |= POLLOUT | POLLWRNORM;
  return events;
}

}  // namespace ringside::sim
