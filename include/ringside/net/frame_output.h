// Frames on their way to a stream, to whichever end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ringside/base/slab.h"
#include "ringside/net/slice.h"
#include "ringside/net/stream.h"

namespace ringside::net {

// Bytes of frames that were put together here. Slab of the ring.
struct FrameBlock {
  static constexpr std::size_t bytes_max = 4096 - 2 * sizeof(void*);
  FrameBlock() {}  // NOLINT(modernize-use-equals-default): its bytes stay untouched
  FrameBlock* next = nullptr;
  std::uint64_t end = 0;  // position of the output behind it
  char bytes[bytes_max];
};
using FrameBlocks = base::Slab<FrameBlock>;

// Owner: a session of HTTP/2, beside its stream, which it outlives. Small pieces lie one behind the
// other in a block, and leave as one piece; a block is given back once its bytes have left.
// Positions count the bytes that were ever put in, as Stream::bytes_sent() does.
class FrameOutput {
 public:
  FrameOutput(FrameBlocks& blocks, Stream& stream) : blocks_(blocks), stream_(stream) {}
  ~FrameOutput();
  FrameOutput(const FrameOutput&) = delete;
  FrameOutput& operator=(const FrameOutput&) = delete;

  // These are false when memory ran out.
  bool copy(std::string_view bytes);
  // The first `bytes` bytes of `queue`, of which large pieces stay where they are.
  bool move(SliceQueue& queue, std::size_t bytes);
  // Hands to the stream what was copied. To be called when nothing follows in this turn.
  bool flush();
  // The stream has sent something.
  void sent();

  std::uint64_t position() const { return position_; }
  std::uint64_t position_sent() const { return stream_.bytes_sent(); }
  std::size_t waiting() const { return static_cast<std::size_t>(position_ - position_sent()); }

 private:
  bool add_block();

  FrameBlocks& blocks_;
  Stream& stream_;
  FrameBlock* first_ = nullptr;
  FrameBlock* last_ = nullptr;
  std::size_t flushed_ = 0;  // bytes of the last block that the stream has
  std::size_t used_ = 0;     // bytes of it that are taken
  std::uint64_t position_ = 0;
};

}  // namespace ringside::net
