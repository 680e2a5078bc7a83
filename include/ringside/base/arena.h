// Bump allocation for things that live exactly as long as one exchange.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "ringside/base/poison.h"

namespace ringside::base {

// Chunks that arenas give back and take again. One per ring thread; not thread-safe. It must
// outlive its arenas. It grows on demand and never shrinks below what a peak needed, so that steady
// state allocates nothing; `trim` gives memory back.
class ChunkPool {
 public:
  static constexpr std::size_t chunk_bytes = 4096;

  ChunkPool() = default;
  ~ChunkPool();
  ChunkPool(const ChunkPool&) = delete;
  ChunkPool& operator=(const ChunkPool&) = delete;

  // Chunks held by arenas now. Zero when every arena is empty (an end invariant of the simulator).
  std::size_t in_use() const { return in_use_; }
  std::size_t idle() const { return idle_; }
  // Frees idle chunks until at most `keep` are left.
  void trim(std::size_t keep);

 private:
  friend class Arena;
  friend class ArenaPin;
  struct Chunk {
    Chunk* next;
    Chunk* orphans;      // of an arena that was released while this chunk was pinned
    std::uint32_t pins;  // see ArenaPin
    std::size_t bytes;   // usable bytes behind this header
  };
  static constexpr std::size_t usable_bytes = chunk_bytes - sizeof(Chunk);
  // Returns nullptr when memory is exhausted. `bytes` above a chunk gets an allocation of its own.
  Chunk* take(std::size_t bytes);
  void give_back(Chunk* chunk);
  void give_back_all(Chunk* first);

  Chunk* free_ = nullptr;
  std::size_t in_use_ = 0;
  std::size_t idle_ = 0;
};

// Keeps what is in an arena in place past its release: for bytes that an operation in flight still
// points to when their exchange ends. Move-only; not thread-safe; the pool outlives it.
class ArenaPin {
 public:
  ArenaPin() = default;
  ArenaPin(ArenaPin&& other) noexcept { *this = std::move(other); }
  ArenaPin& operator=(ArenaPin&& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(chunk_, other.chunk_);
    return *this;
  }
  ~ArenaPin() { reset(); }
  void reset();

 private:
  friend class Arena;
  ArenaPin(ChunkPool* pool, ChunkPool::Chunk* chunk) : pool_(pool), chunk_(chunk) {}
  ChunkPool* pool_ = nullptr;
  ChunkPool::Chunk* chunk_ = nullptr;
};

// Owner: one exchange. Objects placed in it are never destroyed one by one, so only trivially
// destructible types may live here. `release` empties it whole.
class Arena {
 public:
  explicit Arena(ChunkPool& pool) : pool_(&pool) {}
  ~Arena() { release(); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // nullptr when memory is exhausted (or `bytes` is absurd); callers answer 503 then. The bytes are
  // not initialised. `align` is a power of two.
  void* allocate(std::size_t bytes, std::size_t align = alignof(std::max_align_t)) {
    auto at = (reinterpret_cast<std::uintptr_t>(cursor_) + align - 1) & ~(align - 1);
    auto end = reinterpret_cast<std::uintptr_t>(end_);
    if (cursor_ != nullptr && at <= end && bytes <= end - at) {
      cursor_ = reinterpret_cast<char*>(at + bytes);
      unpoison(reinterpret_cast<void*>(at), bytes);
      return reinterpret_cast<void*>(at);
    }
    return allocate_slow(bytes, align);
  }

  template <typename T>
  T* allocate_array(std::size_t count) {
    static_assert(std::is_trivially_destructible_v<T>);
    if (count > bytes_max / sizeof(T)) return nullptr;
    return static_cast<T*>(allocate(sizeof(T) * count, alignof(T)));
  }

  // Copies text into the arena. A view with data() == nullptr means that memory is exhausted
  // (an empty input gives an empty view with a non-null data()).
  std::string_view copy(std::string_view text) {
    auto* at = static_cast<char*>(allocate(text.size() == 0 ? 1 : text.size(), 1));
    if (at == nullptr) return {};
    if (!text.empty()) std::memcpy(at, text.data(), text.size());
    return {at, text.size()};
  }

  // Where the newest allocation ends at `end` and its chunk has room: that allocation grows by
  // `bytes`, in place. False: nothing has changed.
  bool extend(const char* end, std::size_t bytes) {
    if (end != cursor_ || end == nullptr || bytes > static_cast<std::size_t>(end_ - cursor_))
      return false;
    unpoison(cursor_, bytes);
    cursor_ += bytes;
    return true;
  }
  // The newest allocation, if it ends at `end`, ends at `at` from now on.
  void shrink(char* at, const char* end) {
    if (end != cursor_ || end == nullptr) return;
    poison(at, static_cast<std::size_t>(end - at));
    cursor_ = at;
  }

  // What is in the arena now stays until the pin goes, whatever becomes of the arena.
  ArenaPin pin();
  // Gives every chunk back. Everything that was placed in the arena is gone, unless it is pinned.
  void release();
  bool empty() const { return chunks_ == nullptr; }

 private:
  static constexpr std::size_t bytes_max = std::size_t{1} << 40;
  void* allocate_slow(std::size_t bytes, std::size_t align);

  ChunkPool* pool_;
  ChunkPool::Chunk* chunks_ = nullptr;
  ChunkPool::Chunk* pinned_ = nullptr;  // the one that counts this arena's pins
  char* cursor_ = nullptr;
  char* end_ = nullptr;
};

}  // namespace ringside::base
