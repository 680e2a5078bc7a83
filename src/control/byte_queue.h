// Records of any size from one thread to another, without locks and without waiting.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

namespace ringside::control {

// One producer thread, one consumer thread. A record lies in one piece in the ring, 8-byte aligned,
// so both sides work in place: reserve → fill → commit, and front → read → pop.
//
// Layout: an 8-byte header (the record's length, or `wrap`) before each record. When the piece up
// to the end of the ring is too short, a `wrap` header sends the reader to the start.
class ByteQueue {
 public:
  // `capacity` is rounded up to a power of two. A record may take at most half of it.
  explicit ByteQueue(std::size_t capacity)
      : capacity_(std::bit_ceil(capacity < 64 ? 64 : capacity)),
        bytes_(std::make_unique_for_overwrite<std::uint64_t[]>(capacity_ / word)) {}
  ByteQueue(const ByteQueue&) = delete;
  ByteQueue& operator=(const ByteQueue&) = delete;

  std::size_t capacity() const { return capacity_; }
  std::size_t record_bytes_max() const { return capacity_ / 2 - word; }

  // Producer. Room for `length` bytes, or nullptr when the queue is full or the record too large.
  // Nothing is visible to the reader before commit(); a second reserve() forgets the first.
  std::byte* reserve(std::size_t length) {
    if (length > record_bytes_max()) return nullptr;
    const std::size_t needed = word + round_up(length);
    const std::size_t offset = tail_local_ & (capacity_ - 1);
    const std::size_t to_end = capacity_ - offset;
    const std::size_t skipped = needed > to_end ? to_end : 0;
    if (!has_room(skipped + needed)) return nullptr;
    if (skipped != 0) store_header(offset, wrap);
    store_header(skipped != 0 ? 0 : offset, length);
    reserved_ = skipped + needed;
    return at(skipped != 0 ? word : offset + word);
  }

  // Producer. Hands the reserved record over.
  void commit() {
    tail_local_ += reserved_;
    reserved_ = 0;
    tail_.store(tail_local_, std::memory_order_release);
  }

  // Producer. Whether more than half of the queue waits to be read.
  bool over_half() {
    if (tail_local_ - head_seen_ <= capacity_ / 2) return false;
    head_seen_ = head_.load(std::memory_order_acquire);
    return tail_local_ - head_seen_ > capacity_ / 2;
  }

  // Consumer. The oldest record, empty span with a null pointer when there is none. It stays valid
  // and unchanged until pop().
  std::span<const std::byte> front() {
    if (head_local_ == tail_seen_) {
      tail_seen_ = tail_.load(std::memory_order_acquire);
      if (head_local_ == tail_seen_) return {};
    }
    std::size_t offset = head_local_ & (capacity_ - 1);
    if (header(offset) == wrap) {
      head_local_ += capacity_ - offset;
      offset = 0;
    }
    return {at(offset + word), static_cast<std::size_t>(header(offset))};
  }

  // Consumer. Gives the place of front()'s record back.
  void pop() {
    const std::size_t offset = head_local_ & (capacity_ - 1);
    head_local_ += word + round_up(static_cast<std::size_t>(header(offset)));
    head_.store(head_local_, std::memory_order_release);
  }

 private:
  static constexpr std::size_t word = sizeof(std::uint64_t);
  static constexpr std::uint64_t wrap = ~std::uint64_t{0};
  static constexpr std::size_t cache_line = 64;

  static std::size_t round_up(std::size_t length) { return (length + word - 1) & ~(word - 1); }
  std::byte* at(std::size_t offset) { return reinterpret_cast<std::byte*>(bytes_.get()) + offset; }
  std::uint64_t header(std::size_t offset) const { return bytes_[offset / word]; }
  void store_header(std::size_t offset, std::uint64_t value) { bytes_[offset / word] = value; }

  bool has_room(std::size_t needed) {
    if (tail_local_ + needed - head_seen_ <= capacity_) return true;
    head_seen_ = head_.load(std::memory_order_acquire);
    return tail_local_ + needed - head_seen_ <= capacity_;
  }

  const std::size_t capacity_;
  const std::unique_ptr<std::uint64_t[]> bytes_;

  // Positions grow for ever and are masked on use. Each side keeps its own line, with its last look
  // at the other side's position, so that the lines travel only when a side seems to be stuck.
  alignas(cache_line) std::size_t tail_local_ = 0;
  std::size_t head_seen_ = 0;
  std::size_t reserved_ = 0;
  std::atomic<std::size_t> tail_{0};
  alignas(cache_line) std::size_t head_local_ = 0;
  std::size_t tail_seen_ = 0;
  std::atomic<std::size_t> head_{0};
};

}  // namespace ringside::control
