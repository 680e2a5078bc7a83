// A piece of a body on its way from one session to another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "ringside/net/pipe.h"
#include "ringside/ring/buffer_group.h"

namespace ringside::net {

// How bytes of a body get from one socket to the other. The first three are ways of receiving, told
// by the mark of a lease; a pipe serves both ends; zero copy is a way of sending.
enum class Mover : std::uint8_t { copy, large, bundle, splice, zero_copy };
inline constexpr std::size_t movers = 5;
inline constexpr std::string_view mover_names[movers] = {"copy", "large", "bundle", "splice",
                                                         "zero_copy"};

// Bytes in a received buffer, or bytes that stay in the kernel, in a pipe. Move-only.
class Piece {
 public:
  Piece() = default;
  Piece(ring::Lease lease) : lease_(std::move(lease)) {}
  Piece(PipeBytes piped) : piped_(std::move(piped)) {}

  bool piped() const { return static_cast<bool>(piped_); }
  std::size_t size() const { return piped_ ? piped_.size() : lease_.size(); }
  bool empty() const { return size() == 0; }
  // How it was received.
  Mover mover() const { return piped_ ? Mover::splice : static_cast<Mover>(lease_.mark()); }
  // Empty in a pipe.
  std::string_view bytes() const { return lease_.bytes(); }
  // See Lease::hold; a pipe takes no buffers.
  void hold() { lease_.hold(); }
  // The same bytes once more; not of a pipe.
  ring::Lease share() const { return lease_.share(0, lease_.size()); }
  ring::Lease take_lease() { return std::move(lease_); }
  PipeBytes take_piped() { return std::move(piped_); }

 private:
  ring::Lease lease_;
  PipeBytes piped_;
};

}  // namespace ringside::net
