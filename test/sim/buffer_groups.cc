#include "buffer_groups.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#define RINGSIDE_SIM_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RINGSIDE_SIM_ASAN 1
#endif
#endif
#ifdef RINGSIDE_SIM_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace ringside::sim {

namespace {

void poison([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes) {
#ifdef RINGSIDE_SIM_ASAN
  ASAN_POISON_MEMORY_REGION(data, bytes);
#endif
}

char* address_of(const io_uring_buf& buffer) {
  return reinterpret_cast<char*>(static_cast<std::uintptr_t>(buffer.addr));
}

}  // namespace

void BufferGroups::unpoison([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes) {
#ifdef RINGSIDE_SIM_ASAN
  ASAN_UNPOISON_MEMORY_REGION(data, bytes);
#endif
}

BufferGroups::~BufferGroups() {
  for (auto& [id, group] : groups_)
    forget(group);
}

const io_uring_buf& BufferGroups::entry(const Group& group, std::uint16_t at) {
  // Not through `bufs`: its declared size is 0.
  return reinterpret_cast<const io_uring_buf*>(group.shared)[at & (group.entries - 1)];
}

int BufferGroups::add(const io_uring_buf_reg& request) {
  const unsigned entries = request.ring_entries;
  if (request.pad != 0 || request.ring_addr == 0) return -EINVAL;
  if (entries == 0 || entries > 32768 || (entries & (entries - 1)) != 0) return -EINVAL;
  if (groups_.contains(request.bgid)) return -EEXIST;
  Group group;
  group.shared = reinterpret_cast<io_uring_buf_ring*>(request.ring_addr);
  group.entries = entries;
  groups_.emplace(request.bgid, std::move(group));
  return 0;
}

void BufferGroups::forget(Group& group) {
  for (std::uint16_t at = group.head; at != group.seen; ++at) {
    const io_uring_buf& buffer = entry(group, at);
    unpoison(address_of(buffer), buffer.len);
  }
}

int BufferGroups::remove(unsigned group_id) {
  auto at = groups_.find(group_id);
  if (at == groups_.end()) return -ENOENT;
  forget(at->second);
  groups_.erase(at);
  return 0;
}

void BufferGroups::watch() {
  for (auto& [id, group] : groups_) {
    const std::uint16_t tail = __atomic_load_n(&group.shared->tail, __ATOMIC_ACQUIRE);
    for (; group.seen != tail; ++group.seen)
      publish(group, entry(group, group.seen));
  }
}

void BufferGroups::publish(Group& group, const io_uring_buf& buffer) {
  unpoison(address_of(buffer), buffer.len);
  // Filling what was used is enough: the rest still has the pattern, or never had data.
  auto& written = group.written[buffer.bid];
  std::memset(address_of(buffer), poison_byte, std::min<std::size_t>(written, buffer.len));
  written = 0;
  poison(address_of(buffer), buffer.len);
}

bool BufferGroups::peek(unsigned group_id, Buffer* out) {
  auto at = groups_.find(group_id);
  if (at == groups_.end() || at->second.head == at->second.seen) return false;
  const io_uring_buf& buffer = entry(at->second, at->second.head);
  *out = {address_of(buffer), buffer.len, buffer.bid};
  return true;
}

void BufferGroups::take(unsigned group_id, std::size_t bytes) {
  Group& group = groups_[group_id];
  group.written[entry(group, group.head).bid] = static_cast<std::uint32_t>(bytes);
  if (std::exchange(twice_, false)) return;
  ++group.head;
}

int BufferGroups::register_table(const iovec* buffers, unsigned count) {
  if (!table_.empty()) return -EBUSY;
  table_.assign(buffers, buffers + count);
  return 0;
}

int BufferGroups::register_sparse(unsigned count) {
  if (!table_.empty()) return -EBUSY;
  if (count == 0) return -EINVAL;
  table_.assign(count, iovec{nullptr, 0});
  return 0;
}

int BufferGroups::update_table(unsigned offset, const iovec* buffers, unsigned count) {
  if (table_.empty()) return -ENXIO;
  if (offset + count > table_.size()) return -EINVAL;
  std::copy(buffers, buffers + count, table_.begin() + offset);
  return static_cast<int>(count);
}

bool BufferGroups::covers(unsigned index, const void* data, std::size_t bytes) const {
  if (index >= table_.size()) return false;
  const auto start = reinterpret_cast<std::uintptr_t>(table_[index].iov_base);
  const auto at = reinterpret_cast<std::uintptr_t>(data);
  return at >= start && at + bytes <= start + table_[index].iov_len;
}

}  // namespace ringside::sim
