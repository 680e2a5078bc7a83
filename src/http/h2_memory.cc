#include "ringside/http/h2_memory.h"

#include <bit>
#include <cassert>
#include <cstdlib>
#include <cstring>

#include "ringside/base/poison.h"

namespace ringside::http {

// Before each block; as large as the strictest alignment.
struct alignas(16) H2Memory::Header {
  Header* next;
  std::uint32_t bytes;  // behind it
  std::uint32_t kind;   // index into `free_`; `sizes`: a larger one
};

namespace {

constexpr unsigned least_log2 = 6;

// Of the whole block, its header included.
constexpr std::size_t class_bytes(unsigned index) {
  const std::size_t power = std::size_t{1} << (least_log2 + index / 2);
  return index % 2 == 0 ? power : power + power / 2;
}

}  // namespace

// The smallest that has room; `sizes` or more when none has.
unsigned H2Memory::size_class(std::size_t bytes) {
  if (bytes <= class_bytes(0)) return 0;
  const auto power = static_cast<unsigned>(std::bit_width(bytes - 1) - 1);
  const bool below_half = bytes <= (std::size_t{3} << (power - 1));
  return (power - least_log2) * 2 + (below_half ? 1 : 2);
}

H2Memory::~H2Memory() {
  assert(in_use_ == 0 && "an HTTP/2 session outlived its memory");
  for (Header*& first : free_) {
    while (first != nullptr) {
      Header* block = first;
      base::unpoison(block + 1, block->bytes);
      first = block->next;
      std::free(block);
    }
  }
}

void* H2Memory::allocate(std::size_t bytes) {
  if (bytes > (std::size_t{1} << 30)) return nullptr;
  const std::size_t whole = bytes + sizeof(Header);
  const unsigned index = size_class(whole);
  const bool pooled = index < sizes;
  Header* block = pooled ? free_[index] : nullptr;
  if (block != nullptr) {
    free_[index] = block->next;
    base::unpoison(block + 1, block->bytes);
  } else {
    const std::size_t room = pooled ? class_bytes(index) : whole;
    block = static_cast<Header*>(std::malloc(room));
    if (block == nullptr) return nullptr;
    block->bytes = static_cast<std::uint32_t>(room - sizeof(Header));
    block->kind = pooled ? index : sizes;
  }
  ++in_use_;
  return block + 1;
}

void H2Memory::release(void* bytes) {
  if (bytes == nullptr) return;
  Header* block = static_cast<Header*>(bytes) - 1;
  --in_use_;
  if (block->kind == sizes) return std::free(block);
  block->next = free_[block->kind];
  free_[block->kind] = block;
  base::poison(block + 1, block->bytes);
}

void* H2Memory::reallocate(void* bytes, std::size_t wanted) {
  if (bytes == nullptr) return allocate(wanted);
  const std::size_t had = (static_cast<Header*>(bytes) - 1)->bytes;
  if (wanted <= had) return bytes;
  void* larger = allocate(wanted);
  if (larger == nullptr) return nullptr;
  std::memcpy(larger, bytes, had);
  release(bytes);
  return larger;
}

}  // namespace ringside::http
