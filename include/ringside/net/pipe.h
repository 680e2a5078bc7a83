// Pipes that carry bytes from one socket to another inside the kernel (splice(2)).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "ringside/base/slab.h"
#include "ringside/net/sys_port.h"

namespace ringside::net {

class PipePool;

// Who waits for a pipe to be empty again. Called from wherever the last byte left or was given up,
// a destructor perhaps: it may only take note.
class PipeWaiter {
 public:
  virtual void on_pipe_free() = 0;

 protected:
  ~PipeWaiter() = default;
};

// A pipe in use. Who receives and what waits to be sent share it; the last one gives it back.
struct Pipe {
  Pipe(PipePool& owner, const PipeEnds& with) : pool(owner), ends(with) {}

  PipePool& pool;
  PipeEnds ends;
  std::uint32_t references = 0;
  std::uint32_t bytes = 0;  // in the pipe
  bool spoiled = false;     // it holds bytes that nobody will send
  PipeWaiter* waiter = nullptr;
  Pipe* next = nullptr;  // in the pool
};

class PipeRef {
 public:
  PipeRef() = default;
  explicit PipeRef(Pipe& pipe) : pipe_(&pipe) { ++pipe.references; }
  PipeRef(PipeRef&& other) noexcept : pipe_(std::exchange(other.pipe_, nullptr)) {}
  PipeRef& operator=(PipeRef&& other) noexcept {
    std::swap(pipe_, other.pipe_);
    return *this;
  }
  ~PipeRef() { reset(); }

  explicit operator bool() const { return pipe_ != nullptr; }
  Pipe* operator->() const { return pipe_; }
  Pipe& operator*() const { return *pipe_; }
  void reset();

 private:
  Pipe* pipe_ = nullptr;
};

// The bytes in a pipe. There is one of it for a pipe at a time, since a pipe is filled only when it
// is empty: so an EAGAIN of the receiving socket always means that the socket is empty. When it
// goes before all was sent, the pipe is spoiled.
class PipeBytes {
 public:
  PipeBytes() = default;
  PipeBytes(Pipe& pipe, std::uint32_t bytes) : pipe_(pipe) { pipe.bytes = bytes; }
  PipeBytes(PipeBytes&&) noexcept = default;
  PipeBytes& operator=(PipeBytes&& other) noexcept {
    std::swap(pipe_, other.pipe_);
    return *this;
  }
  ~PipeBytes() { drop(); }

  explicit operator bool() const { return static_cast<bool>(pipe_); }
  std::uint32_t size() const { return pipe_ ? pipe_->bytes : 0; }
  int read_fd() const { return pipe_->ends.read_fd; }
  // So many have left.
  void consume(std::uint32_t bytes);

 private:
  void drop();
  PipeRef pipe_;
};

// Owner: a ring thread. Opens pipes when they are needed and keeps some of those that are free,
// since opening one costs more than moving a small body. All references go before it.
class PipePool {
 public:
  // At most `pipes_max` are open; each is asked to hold `pipe_bytes`, and may hold less: an
  // unprivileged user's share of pipe memory is limited, and beyond it pipes are too small to be of
  // use (pipe(7), /proc/sys/fs/pipe-user-pages-soft).
  PipePool(SysPort& sys, std::uint32_t pipes_max, std::uint32_t pipe_bytes)
      : sys_(sys), pipes_(pipes_max), pipe_bytes_(pipe_bytes) {}
  ~PipePool();
  PipePool(const PipePool&) = delete;
  PipePool& operator=(const PipePool&) = delete;

  // An empty pipe; nothing when there is none to be had: copy then.
  PipeRef take();
  std::uint32_t in_use() const { return in_use_; }
  // Open, empty and waiting for their next use.
  std::uint32_t pooled() const { return free_count_; }

 private:
  friend class PipeRef;
  void give_back(Pipe& pipe);
  void destroy(Pipe& pipe);

  SysPort& sys_;
  base::Slab<Pipe> pipes_;
  std::uint32_t pipe_bytes_;
  std::uint32_t in_use_ = 0;
  std::uint32_t free_count_ = 0;
  Pipe* free_ = nullptr;
};

inline void PipeRef::reset() {
  Pipe* pipe = std::exchange(pipe_, nullptr);
  if (pipe != nullptr && --pipe->references == 0) pipe->pool.give_back(*pipe);
}

}  // namespace ringside::net
