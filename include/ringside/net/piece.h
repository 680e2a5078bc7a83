// A piece of a body on its way from one session to another.
#pragma once

#include <cstddef>
#include <utility>

#include "ringside/net/pipe.h"
#include "ringside/ring/buffer_group.h"

namespace ringside::net {

// Bytes in a received buffer, or bytes that stay in the kernel, in a pipe. Move-only.
class Piece {
 public:
  Piece() = default;
  Piece(ring::Lease lease) : lease_(std::move(lease)) {}
  Piece(PipeBytes piped) : piped_(std::move(piped)) {}

  bool piped() const { return static_cast<bool>(piped_); }
  std::size_t size() const { return piped_ ? piped_.size() : lease_.size(); }
  bool empty() const { return size() == 0; }
  ring::Lease take_lease() { return std::move(lease_); }
  PipeBytes take_piped() { return std::move(piped_); }

 private:
  ring::Lease lease_;
  PipeBytes piped_;
};

}  // namespace ringside::net
