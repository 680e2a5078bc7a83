#include "ringside/net/frame_output.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ringside::net {

namespace {
// Below it, a piece of its own costs more than a copy.
constexpr std::size_t copy_bytes_max = 512;
}  // namespace

FrameOutput::~FrameOutput() {
  while (first_ != nullptr)
    blocks_.destroy(std::exchange(first_, first_->next));
}

bool FrameOutput::add_block() {
  if (!flush()) return false;
  FrameBlock* block = blocks_.create();
  if (block == nullptr) return false;
  (last_ == nullptr ? first_ : last_->next) = block;
  last_ = block;
  used_ = flushed_ = 0;
  return true;
}

bool FrameOutput::copy(std::string_view bytes) {
  while (!bytes.empty()) {
    if ((last_ == nullptr || used_ == FrameBlock::bytes_max) && !add_block()) return false;
    const std::size_t part = std::min(bytes.size(), FrameBlock::bytes_max - used_);
    std::memcpy(last_->bytes + used_, bytes.data(), part);
    used_ += part;
    position_ += part;
    last_->end = position_;
    bytes.remove_prefix(part);
  }
  return true;
}

bool FrameOutput::flush() {
  if (last_ == nullptr || used_ == flushed_) return true;
  const std::string_view fresh(last_->bytes + flushed_, used_ - flushed_);
  flushed_ = used_;
  return stream_.send_view(fresh);
}

bool FrameOutput::move(SliceQueue& queue, std::size_t bytes) {
  while (bytes != 0) {
    Slice* front = queue.front();
    const std::size_t part = std::min<std::size_t>(bytes, front->size);
    // What is no lease belongs to an exchange, which may be gone before it was sent.
    if (!front->lease || part <= copy_bytes_max) {
      if (!copy({front->data, part})) return false;
    } else {
      const auto offset = static_cast<std::size_t>(front->data - front->lease.data());
      ring::Lease lease = front->lease.share(offset, part);
      if (!flush() || !stream_.send_piece(std::move(lease))) return false;
      position_ += part;
    }
    queue.consume(part);
    bytes -= part;
  }
  return true;
}

// The last block is kept as long as it has room, unless all of it has left.
void FrameOutput::sent() {
  const std::uint64_t sent = position_sent();
  while (first_ != nullptr && first_->end <= sent && first_ != last_)
    blocks_.destroy(std::exchange(first_, first_->next));
  if (first_ == nullptr || first_ != last_ || sent != position_) return;
  blocks_.destroy(first_);
  first_ = last_ = nullptr;
  used_ = flushed_ = 0;
}

}  // namespace ringside::net
