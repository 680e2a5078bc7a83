// Memory for HTTP/2 sessions that is used again, so that steady state allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ringside::http {

// Owner: a ring thread; not thread-safe. Outlives the connections that use it. Blocks come in sizes
// that are powers of two and one and a half of them; what is given back is kept for its size. It
// grows on demand and never shrinks: what nghttp2 takes of a connection is bounded by its limits.
class H2Memory {
 public:
  H2Memory() = default;
  ~H2Memory();
  H2Memory(const H2Memory&) = delete;
  H2Memory& operator=(const H2Memory&) = delete;

  // As malloc, free and realloc; null when memory is exhausted.
  void* allocate(std::size_t bytes);
  void release(void* block);
  void* reallocate(void* block, std::size_t bytes);

  // Blocks that are not given back: zero when there is no connection.
  std::size_t in_use() const { return in_use_; }

 private:
  struct Header;
  static constexpr unsigned sizes = 19;  // from 64 bytes to 32 KiB
  static unsigned size_class(std::size_t bytes);

  Header* free_[sizes] = {};
  std::size_t in_use_ = 0;
};

}  // namespace ringside::http
