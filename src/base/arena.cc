#include "ringside/base/arena.h"

#include <cstdlib>

namespace ringside::base {

ChunkPool::~ChunkPool() {
  trim(0);
}

void ChunkPool::trim(std::size_t keep) {
  while (idle_ > keep) {
    Chunk* chunk = free_;
    free_ = chunk->next;
    --idle_;
    std::free(chunk);
  }
}

ChunkPool::Chunk* ChunkPool::take(std::size_t bytes) {
  Chunk* chunk = nullptr;
  if (bytes <= usable_bytes && free_ != nullptr) {
    chunk = free_;
    free_ = chunk->next;
    --idle_;
  } else {
    std::size_t size = bytes <= usable_bytes ? usable_bytes : bytes;
    chunk = static_cast<Chunk*>(std::malloc(sizeof(Chunk) + size));
    if (chunk == nullptr) return nullptr;
    chunk->bytes = size;
    poison(chunk + 1, size);
  }
  chunk->orphans = nullptr;
  chunk->pins = 0;
  ++in_use_;
  return chunk;
}

void ChunkPool::give_back(Chunk* chunk) {
  --in_use_;
  if (chunk->bytes != usable_bytes) {
    std::free(chunk);
    return;
  }
  poison(chunk + 1, chunk->bytes);
  chunk->next = free_;
  free_ = chunk;
  ++idle_;
}

void* Arena::allocate_slow(std::size_t bytes, std::size_t align) {
  if (bytes > bytes_max) return nullptr;
  ChunkPool::Chunk* chunk = pool_->take(bytes + align);
  if (chunk == nullptr) return nullptr;
  chunk->next = chunks_;
  chunks_ = chunk;
  auto* begin = reinterpret_cast<char*>(chunk + 1);
  if (chunk->bytes == ChunkPool::usable_bytes) {
    cursor_ = begin;
    end_ = begin + chunk->bytes;
    return allocate(bytes, align);
  }
  // A chunk of its own: small things go on filling the chunk that was begun.
  auto at = (reinterpret_cast<std::uintptr_t>(begin) + align - 1) & ~(align - 1);
  unpoison(reinterpret_cast<void*>(at), bytes);
  return reinterpret_cast<void*>(at);
}

void ChunkPool::give_back_all(Chunk* first) {
  while (first != nullptr) {
    Chunk* next = first->next;
    give_back(first);
    first = next;
  }
}

ArenaPin Arena::pin() {
  if (chunks_ == nullptr) return {};
  if (pinned_ == nullptr) pinned_ = chunks_;
  ++pinned_->pins;
  return {pool_, pinned_};
}

void ArenaPin::reset() {
  if (chunk_ == nullptr) return;
  ChunkPool::Chunk* chunk = std::exchange(chunk_, nullptr);
  if (--chunk->pins == 0 && chunk->orphans != nullptr) pool_->give_back_all(chunk->orphans);
}

void Arena::release() {
  if (pinned_ != nullptr && pinned_->pins != 0) {
    pinned_->orphans = chunks_;
  } else {
    pool_->give_back_all(chunks_);
  }
  chunks_ = pinned_ = nullptr;
  cursor_ = end_ = nullptr;
}

}  // namespace ringside::base
