#include "ringside/ring/buffer_group.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "ringside/base/poison.h"
#include "ringside/ring/ring.h"

namespace ringside::ring {

namespace {

constexpr std::uint32_t window_max = 64;  // at first
constexpr std::uint32_t window_bytes = 1024 * 1024;
constexpr std::uint32_t count_max = 32768;
constexpr std::size_t page_bytes = 4096;

std::size_t whole_pages(std::size_t bytes) {
  return (bytes + page_bytes - 1) & ~(page_bytes - 1);
}

void* map_pages(std::size_t bytes) {
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

}  // namespace

Lease Lease::share(std::size_t offset, std::size_t bytes) const {
  assert(group_ != nullptr && offset + bytes <= size_);
  ++group_->references_[id_];
  Lease out(group_, id_, data_ + offset, static_cast<std::uint32_t>(bytes));
  out.mark_ = mark_;
  return out;
}

void Lease::give_back() {
  if (--group_->references_[id_] == 0) group_->release(id_);
  group_ = nullptr;
  data_ = nullptr;
  size_ = 0;
}

int Lease::registered_index() const {
  return group_ == nullptr || id_ >= group_->count_ ? -1 : group_->registered_index();
}

BufferGroup::BufferGroup(Ring& ring, std::uint16_t group_id, std::uint32_t count,
                         std::uint32_t bytes)
    : ring_(ring),
      group_id_(group_id),
      count_(count),
      bytes_(bytes),
      reserve_from_(count - count / reserve_part),
      window_(std::min(count, std::clamp(window_bytes / std::max(bytes, 1U), 2U, window_max))) {}

base::Result<std::unique_ptr<BufferGroup>> BufferGroup::create(Ring& ring, std::uint16_t group_id,
                                                               std::uint32_t count,
                                                               std::uint32_t bytes,
                                                               bool register_memory) {
  if (!std::has_single_bit(count) || count > count_max || bytes == 0)
    return std::unexpected(base::from_errno(EINVAL));
  std::unique_ptr<BufferGroup> group(new BufferGroup(ring, group_id, count, bytes));
  if (auto result = group->set_up(register_memory); !result) return std::unexpected(result.error());
  return group;
}

base::Result<std::unique_ptr<BufferGroup>> BufferGroup::create_private(Ring& ring,
                                                                       std::uint32_t count,
                                                                       std::uint32_t bytes) {
  if (count == 0 || count > count_max || bytes == 0)
    return std::unexpected(base::from_errno(EINVAL));
  std::unique_ptr<BufferGroup> group(new BufferGroup(ring, 0, count, bytes));
  group->private_ = true;
  group->window_ = 0;
  if (auto result = group->map_buffers(); !result) return std::unexpected(result.error());
  ring.add_group(*group);
  return group;
}

base::Result<void> BufferGroup::map_buffers() {
  area_bytes_ = whole_pages(std::size_t{count_} * bytes_);
  area_ = static_cast<char*>(map_pages(area_bytes_));
  if (area_ == nullptr) return std::unexpected(base::from_errno(ENOMEM));
  // Address space only, so that move_out allocates nothing but the bytes.
  references_.reserve(count_ + moved_out_max(count_));
  references_.resize(count_);
  moved_.reserve(moved_out_max(count_));
  moved_free_.reserve(moved_out_max(count_));
  free_ = std::make_unique<std::uint16_t[]>(count_);
  // Downwards, so that the buffer that is used first is the first of the area.
  for (std::uint32_t id = count_; id-- > 0;)
    free_[free_count_++] = static_cast<std::uint16_t>(id);
  return {};
}

base::Result<void> BufferGroup::set_up(bool register_memory) {
  if (auto mapped = map_buffers(); !mapped) return mapped;
  shared_bytes_ = whole_pages(std::size_t{count_} * sizeof(io_uring_buf));
  shared_ = static_cast<io_uring_buf_ring*>(map_pages(shared_bytes_));
  if (shared_ == nullptr) return std::unexpected(base::from_errno(ENOMEM));
  following_ = std::make_unique<std::uint16_t[]>(count_);

  io_uring_buf_reg request{};
  request.ring_addr = reinterpret_cast<std::uint64_t>(shared_);
  request.ring_entries = count_;
  request.bgid = group_id_;
  int result = ring_.kernel_.register_resource(ring_.ring_, IORING_REGISTER_PBUF_RING, &request, 1);
  if (result < 0) return std::unexpected(base::from_errno(-result));
  registered_ = true;
  // Zero-copy sends work without; RLIMIT_MEMLOCK may not allow so much.
  if (register_memory) registered_index_ = ring_.register_area(area_, area_bytes_);
  refill();
  ring_.add_group(*this);
  return {};
}

BufferGroup::~BufferGroup() {
  assert(leased_ == 0 && moved_out_ == 0 && "a lease outlived its buffer group");
  if (private_ && area_ != nullptr) ring_.remove_group(*this);
  if (registered_) {
    ring_.remove_group(*this);
    if (registered_index_ >= 0) ring_.unregister_area(registered_index_);
    io_uring_buf_reg request{};
    request.bgid = group_id_;
    ring_.kernel_.register_resource(ring_.ring_, IORING_UNREGISTER_PBUF_RING, &request, 1);
  }
  if (area_ != nullptr) {
    base::unpoison(area_, area_bytes_);
    ::munmap(area_, area_bytes_);
  }
  if (shared_ != nullptr) ::munmap(shared_, shared_bytes_);
}

Lease BufferGroup::take_one(std::uint16_t id, std::uint32_t bytes) {
  assert(id < count_ && references_[id] == 0 && bytes <= bytes_);
  references_[id] = 1;
  ++leased_;
  --published_;
  return {this, id, buffer(id), bytes};
}

Lease BufferGroup::take(const Completion& completion) {
  if (!completion.has_buffer()) return {};
  Lease lease =
      take_one(completion.buffer_id(), static_cast<std::uint32_t>(std::max(completion.result, 0)));
  refill();
  return lease;
}

Lease BufferGroup::borrow() {
  assert(private_);
  if (free_count_ == 0) return {};
  const std::uint16_t id = free_[--free_count_];
  assert(references_[id] == 0);
  base::unpoison(buffer(id), bytes_);
  references_[id] = 1;
  ++leased_;
  return {this, id, buffer(id), bytes_};
}

// The completion names the first buffer; the kernel took the others from behind it, each filled
// before the next.
Lease Bundle::next() {
  std::uint32_t bytes = std::min(left_, group_.bytes_);
  std::uint16_t id = std::exchange(id_, group_.following_[id_]);
  left_ -= bytes;
  more_ = left_ != 0;
  Lease lease = group_.take_one(id, bytes);
  group_.refill();
  return lease;
}

void BufferGroup::move_out(Lease& lease) {
  if (lease.id_ >= count_ || lease.empty() || moved_out_ == moved_out_max(count_)) return;
  std::unique_ptr<char[]> bytes(new (std::nothrow) char[lease.size()]);
  if (bytes == nullptr) return;
  if (moved_free_.empty()) {
    moved_free_.push_back(static_cast<std::uint16_t>(references_.size()));
    references_.push_back(0);
    moved_.emplace_back();
  }
  std::memcpy(bytes.get(), lease.data(), lease.size());
  std::uint16_t id = moved_free_.back();
  moved_free_.pop_back();
  references_[id] = 1;
  ++moved_out_;
  Lease moved(this, id, bytes.get(), static_cast<std::uint32_t>(lease.size()));
  moved.mark_ = lease.mark_;
  lease = std::move(moved);
  moved_[id - count_] = std::move(bytes);
}

void BufferGroup::release_moved(std::uint16_t id) {
  --moved_out_;
  moved_[id - count_].reset();
  moved_free_.push_back(id);
}

void BufferGroup::release(std::uint16_t id) {
  if (id >= count_) [[unlikely]]
    return release_moved(id);
  --leased_;
  // Between lease and publication nobody may look at it, which finds a use after release.
  base::poison(buffer(id), bytes_);
  free_[free_count_++] = id;
  refill();
}

void BufferGroup::refill() {
  if (published_ >= window_ || free_count_ == 0) return;
  while (published_ < window_ && free_count_ != 0)
    publish(free_[--free_count_]);
  io_uring_smp_store_release(&shared_->tail, tail_);
}

void BufferGroup::publish(std::uint16_t id) {
  // Not through `shared_->bufs`: that is a zero-length array in a union, which sanitizers distrust.
  // The tail lives in the reserved bytes of entry 0, so only the other fields may be written.
  base::unpoison(buffer(id), bytes_);
  io_uring_buf& entry = reinterpret_cast<io_uring_buf*>(shared_)[tail_ & (count_ - 1)];
  entry.addr = reinterpret_cast<std::uint64_t>(buffer(id));
  entry.len = bytes_;
  entry.bid = id;
  following_[last_published_] = id;
  last_published_ = id;
  ++tail_;
  ++published_;
}

// The kernel ran out though we had more: this turn's burst is larger than the window.
void BufferGroup::widen() {
  if (free_count_ == 0 || window_ == count_) return;
  window_ = std::min(window_ * 2, count_);
  refill();
}

void BufferGroup::wait(BufferWaiter& waiter) {
  widen();
  waiters_.push_back(waiter);
}

void BufferGroup::wake_waiters() {
  for (std::uint32_t left = available(); left != 0 && !waiters_.empty(); --left)
    waiters_.pop_front()->on_buffers_available();
}

}  // namespace ringside::ring
