// Receive buffers that the kernel picks from (a provided-buffer ring, kernel 5.19), and leases on
// them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "ringside/base/error.h"
#include "ringside/base/intrusive_list.h"
#include "ringside/ring/completion.h"

namespace ringside::ring {

class Ring;
class BufferGroup;

// A piece of a received buffer. Move-only; the buffer goes back to its group, and so to the kernel,
// when the last lease on it is gone. Thread: the ring's.
class Lease {
 public:
  Lease() = default;
  Lease(Lease&& other) noexcept { take(other); }
  Lease& operator=(Lease&& other) noexcept {
    if (this == &other) return *this;
    reset();
    take(other);
    return *this;
  }
  ~Lease() { reset(); }

  explicit operator bool() const { return group_ != nullptr; }
  std::string_view bytes() const { return {data_, size_}; }
  const char* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  void remove_prefix(std::size_t bytes) {
    data_ += bytes;
    size_ -= static_cast<std::uint32_t>(bytes);
  }
  // Another lease on part of the same buffer.
  Lease share(std::size_t offset, std::size_t bytes) const;
  // For whoever keeps the lease until a peer takes its bytes. When only the group's reserve is
  // left, the bytes move to memory of their own (data() changes) and the buffer is free again: so
  // those who wait for slow peers never hold the last buffers. Without memory all stays as it is.
  void hold();
  void reset() {
    if (group_ != nullptr) give_back();
  }
  // Index among the ring's registered buffers, or -1: for SEND_ZC with a fixed buffer.
  int registered_index() const;
  // Of a lease from BufferGroup::borrow(), before it is shared: its bytes, to be written, and how
  // many of them are to stay.
  std::span<char> room() { return {const_cast<char*>(data_), size_}; }
  void truncate(std::size_t bytes) { size_ = static_cast<std::uint32_t>(bytes); }
  // A number of the receiver's own, 0 at first, that leases on the same bytes share.
  std::uint8_t mark() const { return mark_; }
  void set_mark(std::uint8_t mark) { mark_ = mark; }

 private:
  friend class BufferGroup;
  Lease(BufferGroup* group, std::uint16_t id, const char* data, std::uint32_t size)
      : group_(group), data_(data), size_(size), id_(id) {}
  void give_back();
  void take(Lease& other) {
    group_ = std::exchange(other.group_, nullptr);
    data_ = other.data_;
    size_ = std::exchange(other.size_, 0U);
    id_ = other.id_;
    mark_ = other.mark_;
  }
  BufferGroup* group_ = nullptr;
  const char* data_ = nullptr;
  std::uint32_t size_ = 0;
  std::uint16_t id_ = 0;
  std::uint8_t mark_ = 0;
};

// Somebody whose receive ended with -ENOBUFS. Called once, on the ring's thread, from the loop
// (never from inside a lease's destructor), when buffers are there again.
class BufferWaiter : public base::ListHook<BufferWaiter> {
 public:
  virtual void on_buffers_available() = 0;

 protected:
  ~BufferWaiter() = default;
};

// Owner: a ring thread; lives as long as its ring. All leases must be gone before it is destroyed.
class BufferGroup {
 public:
  // `count` is a power of two up to 32768. With `register_memory` the whole area is also registered
  // as a fixed buffer (for SEND_ZC); when RLIMIT_MEMLOCK forbids that, the group works without, and
  // registered_index() is -1.
  static base::Result<std::unique_ptr<BufferGroup>> create(Ring& ring, std::uint16_t group_id,
                                                           std::uint32_t count, std::uint32_t bytes,
                                                           bool register_memory);
  // Buffers that the kernel knows nothing of, for bytes that are made here. They are had from
  // borrow() alone.
  static base::Result<std::unique_ptr<BufferGroup>> create_private(Ring& ring, std::uint32_t count,
                                                                   std::uint32_t bytes);
  ~BufferGroup();
  BufferGroup(const BufferGroup&) = delete;
  BufferGroup& operator=(const BufferGroup&) = delete;

  // For a group that nobody waits for, since its users have another one: Lease::hold moves nothing.
  void keep_no_reserve() { reserve_from_ = count_ + 1; }
  // The lease of a completion that has one buffer. Every completion with a buffer must come here,
  // or into a Bundle where it may have several; failed ones included.
  Lease take(const Completion& completion);
  // A whole free buffer of a private group; an empty lease when there is none: wait() then.
  Lease borrow();
  // To be called when a receive ended with -ENOBUFS.
  void wait(BufferWaiter& waiter);
  // The same for who goes on without this group: more of what is free is published.
  void widen();

  std::uint16_t id() const { return group_id_; }
  std::uint32_t buffer_bytes() const { return bytes_; }
  std::uint32_t count() const { return count_; }
  // Buffers under lease: zero at the end of every run.
  std::uint32_t leased() const { return leased_; }
  // Leases' bytes that have moved to memory of their own (Lease::hold): likewise.
  std::uint32_t moved_out() const { return moved_out_; }
  // The most of them that there can be beside `count` buffers: ids have 16 bits.
  static constexpr std::uint32_t moved_out_max(std::uint32_t count) { return 65'536 - count; }
  // No buffer but those of the reserve is left: a quarter of the group, for whatever comes next.
  bool in_reserve() const { return leased_ >= reserve_from_; }
  // How many buffers' worth of bytes one peer may take, or let wait: a part of what is free, and
  // one when only the reserve is left.
  std::uint32_t share() const {
    return in_reserve() ? 1 : std::max((count_ - leased_) / share_part, 1U);
  }
  // Buffers that the kernel may pick from now.
  std::uint32_t published() const { return published_; }
  int registered_index() const { return registered_index_; }

 private:
  friend class Bundle;
  friend class Lease;
  friend class Ring;
  BufferGroup(Ring& ring, std::uint16_t group_id, std::uint32_t count, std::uint32_t bytes);
  base::Result<void> map_buffers();
  base::Result<void> set_up(bool register_memory);
  char* buffer(std::uint16_t id) const { return area_ + std::size_t{id} * bytes_; }
  Lease take_one(std::uint16_t id, std::uint32_t bytes);
  void move_out(Lease& lease);
  void release(std::uint16_t id);
  void release_moved(std::uint16_t id);
  void publish(std::uint16_t id);
  void refill();
  std::uint32_t available() const { return private_ ? free_count_ : published_; }
  bool can_wake() const { return available() != 0 && !waiters_.empty(); }
  // Called by the loop: wakes waiters when there is something to wake them for, at most as many as
  // there are buffers.
  void wake_waiters();

  static constexpr std::uint32_t reserve_part = 4;
  static constexpr std::uint32_t share_part = 16;

  Ring& ring_;
  std::uint16_t group_id_;
  std::uint32_t count_;
  std::uint32_t bytes_;
  std::uint32_t leased_ = 0;
  std::uint32_t reserve_from_;  // with so many leased
  std::uint32_t moved_out_ = 0;
  // The kernel takes buffers first in, first out, so with all of them published every receive would
  // touch the coldest one, and soon all of them would be resident. Only `window_` are published;
  // the rest wait in `free_`, last in, first out. Every -ENOBUFS that meets free buffers doubles
  // the window. At 64 of 1024 buffers the gain was 2% of CPU (serve_turn in
  // perf/micro/ring_bench.cc) and 1 MiB resident instead of 16.
  // It is the bytes that count: of larger buffers fewer are published.
  std::uint32_t window_;
  std::uint32_t published_ = 0;
  std::uint32_t free_count_ = 0;
  int registered_index_ = -1;
  bool registered_ = false;
  bool private_ = false;
  char* area_ = nullptr;
  std::size_t area_bytes_ = 0;
  io_uring_buf_ring* shared_ = nullptr;
  std::size_t shared_bytes_ = 0;
  std::uint16_t tail_ = 0;
  // By id: first the buffers, then what was moved out, so that a lease need not know which it is.
  std::vector<std::uint16_t> references_;
  std::vector<std::unique_ptr<char[]>> moved_;  // by id - count_
  std::vector<std::uint16_t> moved_free_;       // ids
  std::unique_ptr<std::uint16_t[]> free_;
  // The buffer that was published next after each one, as long as that one is not taken: so the
  // buffers of a bundle are found from its first one.
  std::unique_ptr<std::uint16_t[]> following_;
  std::uint16_t last_published_ = 0;
  base::IntrusiveList<BufferWaiter, BufferWaiter> waiters_;
};

inline void Lease::hold() {
  if (group_ != nullptr && group_->in_reserve()) [[unlikely]]
    group_->move_out(*this);
}

// The leases of one completion of a receive that may have filled several buffers, in order. Those
// that nobody takes go back to the group with it.
class Bundle {
 public:
  Bundle(BufferGroup& group, const Completion& completion)
      : group_(group),
        left_(completion.result > 0 ? static_cast<std::uint32_t>(completion.result) : 0),
        id_(completion.buffer_id()),
        more_(completion.has_buffer()) {}
  ~Bundle() {
    while (more_)
      next().reset();
  }
  Bundle(const Bundle&) = delete;
  Bundle& operator=(const Bundle&) = delete;

  bool empty() const { return !more_; }
  // Not when empty.
  Lease next();

 private:
  BufferGroup& group_;
  std::uint32_t left_;
  std::uint16_t id_;
  bool more_;
};

}  // namespace ringside::ring
