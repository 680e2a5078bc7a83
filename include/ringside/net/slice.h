// What waits to be sent on a stream: a queue of pieces, each knowing who owns its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "ringside/base/arena.h"
#include "ringside/base/slab.h"
#include "ringside/net/piece.h"
#include "ringside/ring/buffer_group.h"

namespace ringside::net {

// One piece. Its bytes are a lease's, or the caller's (an arena's, static), or its own few (chunk
// framing), or in a pipe (`data` is null then).
struct Slice {
  static constexpr std::size_t own_bytes_max = 24;

  Slice* next = nullptr;
  const char* data = nullptr;
  std::uint32_t size = 0;
  ring::Lease lease;
  PipeBytes piped;
  char own[own_bytes_max];
};

// Per ring thread. Sized at start; when it runs dry the connection that needed a piece is ended
// (no_memory).
using SlicePool = base::Slab<Slice>;

// A first-in, first-out queue of pieces from one pool. Not thread-safe.
class SliceQueue {
 public:
  explicit SliceQueue(SlicePool& pool) : pool_(&pool) {}
  ~SliceQueue() { clear(); }
  SliceQueue(const SliceQueue&) = delete;
  SliceQueue& operator=(const SliceQueue&) = delete;

  // False when the pool is dry; nothing was queued then.
  bool push(ring::Lease lease) {
    Slice* slice = append();
    if (slice == nullptr) return false;
    slice->data = lease.data();
    slice->size = static_cast<std::uint32_t>(lease.size());
    slice->lease = std::move(lease);
    bytes_ += slice->size;
    return true;
  }
  bool push(PipeBytes piped) {
    Slice* slice = append();
    if (slice == nullptr) return false;
    slice->size = piped.size();
    slice->piped = std::move(piped);
    bytes_ += slice->size;
    return true;
  }
  // A piece that waits until a peer takes it, however slow that is.
  bool push(Piece&& piece) {
    if (piece.piped()) return push(piece.take_piped());
    piece.hold();
    return push(piece.take_lease());
  }
  // The bytes must stay in place until they were taken.
  bool push_view(std::string_view bytes) {
    Slice* slice = append();
    if (slice == nullptr) return false;
    slice->data = bytes.data();
    slice->size = static_cast<std::uint32_t>(bytes.size());
    bytes_ += slice->size;
    return true;
  }
  // Copies at most Slice::own_bytes_max bytes.
  bool push_copy(std::string_view bytes) {
    Slice* slice = append();
    if (slice == nullptr) return false;
    std::memcpy(slice->own, bytes.data(), bytes.size());
    slice->data = slice->own;
    slice->size = static_cast<std::uint32_t>(bytes.size());
    bytes_ += slice->size;
    return true;
  }

  // Copies the bytes right behind the last piece, which grows by them, where that is what was
  // placed in `arena` last and there is room. False: they are not queued. Operations under way know
  // how far they go. (A lease never ends there: chunks have a header.)
  bool append(std::string_view bytes, base::Arena& arena) {
    if (tail_ == nullptr || tail_->piped) return false;
    const char* end = tail_->data + tail_->size;
    if (!arena.extend(end, bytes.size())) return false;
    std::memcpy(const_cast<char*>(end), bytes.data(), bytes.size());
    tail_->size += static_cast<std::uint32_t>(bytes.size());
    bytes_ += bytes.size();
    return true;
  }

  bool empty() const { return head_ == nullptr; }
  std::size_t bytes() const { return bytes_; }
  // What it takes, for limits on what may wait: of tiny pieces the bytes are the least. Zero when
  // empty, and only then.
  std::size_t cost() const { return bytes_ + pieces_ * sizeof(Slice); }
  Slice* front() { return head_; }
  // Removes the first `bytes` bytes of the queue.
  void consume(std::size_t bytes) {
    bytes_ -= bytes;
    while (head_ != nullptr && bytes >= head_->size) {
      bytes -= head_->size;
      if (head_->piped) head_->piped.consume(head_->size);
      pop();
    }
    if (bytes > 0 && head_ != nullptr) take_from_front(static_cast<std::uint32_t>(bytes));
  }
  // The last piece was not taken at once, so it may wait for long (Lease::hold). Not while an
  // operation or a view points into it.
  void hold_last() {
    if (tail_ == nullptr || !tail_->lease) return;
    std::size_t offset = static_cast<std::size_t>(tail_->data - tail_->lease.data());
    tail_->lease.remove_prefix(offset);
    tail_->lease.hold();
    tail_->data = tail_->lease.data();
  }

  template <typename Fn>
  void for_each(Fn&& fn) const {
    for (const Slice* slice = head_; slice != nullptr; slice = slice->next)
      fn(*slice);
  }

  // Unlinks the first piece; the caller destroys it in the pool.
  Slice* take_front() {
    Slice* slice = head_;
    bytes_ -= slice->size;
    unlink();
    return slice;
  }
  void clear() {
    while (head_ != nullptr)
      pop();
    bytes_ = 0;
  }
  SlicePool& pool() { return *pool_; }

 private:
  void take_from_front(std::uint32_t bytes) {
    if (head_->piped) {
      head_->piped.consume(bytes);
    } else {
      head_->data += bytes;
    }
    head_->size -= bytes;
  }
  Slice* append() {
    Slice* slice = pool_->create();
    if (slice == nullptr) return nullptr;
    (tail_ == nullptr ? head_ : tail_->next) = slice;
    tail_ = slice;
    ++pieces_;
    return slice;
  }
  void unlink() {
    head_ = head_->next;
    --pieces_;
    if (head_ == nullptr) tail_ = nullptr;
  }
  void pop() {
    Slice* slice = head_;
    unlink();
    pool_->destroy(slice);
  }

  SlicePool* pool_;
  Slice* head_ = nullptr;
  Slice* tail_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t pieces_ = 0;
};

}  // namespace ringside::net
