#include "ringside/net/pipe.h"

#include <cassert>

namespace ringside::net {

namespace {
// Enough for the bodies that move at once on a ring; more would be descriptors that nobody uses.
constexpr std::uint32_t free_max = 32;

// A pipe that got less than this part of what was asked for moves too little at a time: copies are
// cheaper.
constexpr std::uint32_t useful_part = 8;

void tell_waiter(Pipe& pipe) {
  if (PipeWaiter* waiter = std::exchange(pipe.waiter, nullptr)) waiter->on_pipe_free();
}

}  // namespace

void PipeBytes::consume(std::uint32_t bytes) {
  assert(bytes <= pipe_->bytes);
  pipe_->bytes -= bytes;
  if (pipe_->bytes != 0) return;
  tell_waiter(*pipe_);
  pipe_.reset();
}

void PipeBytes::drop() {
  if (!pipe_) return;
  pipe_->spoiled = true;
  tell_waiter(*pipe_);
}

PipePool::~PipePool() {
  assert(in_use_ == 0 && "a pipe outlived its pool");
  while (free_ != nullptr) {
    Pipe* pipe = std::exchange(free_, free_->next);
    destroy(*pipe);
  }
}

PipeRef PipePool::take() {
  Pipe* pipe = free_;
  if (pipe != nullptr) {
    free_ = pipe->next;
    --free_count_;
  } else {
    base::Result<PipeEnds> ends = sys_.open_pipe(pipe_bytes_);
    if (!ends) return {};
    bool useful = ends->capacity >= pipe_bytes_ / useful_part;
    pipe = useful ? pipes_.create(*this, *ends) : nullptr;
    if (pipe == nullptr) {
      sys_.close(ends->read_fd);
      sys_.close(ends->write_fd);
      return {};
    }
  }
  ++in_use_;
  return PipeRef(*pipe);
}

void PipePool::give_back(Pipe& pipe) {
  --in_use_;
  pipe.waiter = nullptr;
  if (pipe.spoiled || pipe.bytes != 0 || free_count_ == free_max) return destroy(pipe);
  pipe.next = free_;
  free_ = &pipe;
  ++free_count_;
}

void PipePool::destroy(Pipe& pipe) {
  sys_.close(pipe.ends.read_fd);
  sys_.close(pipe.ends.write_fd);
  pipes_.destroy(&pipe);
}

}  // namespace ringside::net
