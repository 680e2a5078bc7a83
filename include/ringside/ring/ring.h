// One io_uring and its loop.
#pragma once

#include <liburing.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ringside/base/error.h"
#include "ringside/base/intrusive_list.h"
#include "ringside/base/timer_wheel.h"
#include "ringside/ring/buffer_group.h"
#include "ringside/ring/completion.h"
#include "ringside/ring/features.h"
#include "ringside/ring/kernel_port.h"

namespace ringside::ring {

struct RingOptions {
  unsigned entries = 1024;              // submission queue; a power of two
  unsigned completion_entries = 4096;   // completion queue
  std::uint32_t owners_max = 1U << 20;  // slots
  // A ring that had several completions in a turn waits a moment for as many again (microseconds,
  // in proportion to their number) if it has found that this saves CPU time. Off, it never waits
  // for a second one.
  bool batch_wait = true;
};

class BatchWait;
class WakerPool;

// What must be done at the end of a loop turn, after all completions were handled and before the
// kernel is entered: so that everything that one turn wants to send on a connection leaves in one
// operation. It runs once for each `defer`; it may defer itself or others again, which run in the
// same turn, up to a limit, and else in the next.
class Deferred : public base::ListHook<Deferred> {
 public:
  virtual void run_deferred() = 0;

 protected:
  ~Deferred() = default;
};

// What is done once in each turn, after its completions: instead of a completion for each thing
// that happens, where things happen so often that being woken by each costs more. While a ring has
// such work, no turn waits for longer than turn_work_ns, so what it looks for is found that late at
// most.
class TurnWork : public base::ListHook<TurnWork> {
 public:
  static constexpr std::uint64_t turn_work_ns = 250'000;
  // May take itself off, and no other.
  virtual void run_turn() = 0;

 protected:
  ~TurnWork() = default;
};

struct RingCounters {
  std::uint64_t enters = 0;
  std::uint64_t submissions = 0;
  std::uint64_t completions = 0;
  std::uint64_t stale_completions = 0;
  std::uint64_t overflows = 0;  // times that the completion queue was full
  std::uint64_t refused = 0;    // operations that could not be submitted
};

// Owner and thread: created, used and destroyed by one thread. Every operation is submitted for a
// Completer and ends in its on_complete; when an operation cannot even be submitted, the completion
// (-EBUSY) is made here, so callers have one path for errors.
class Ring {
 public:
  // `kernel` must outlive the ring. An error tells why io_uring cannot be had: code unsupported
  // with sys_errno ENOSYS or EPERM (switched off), no_memory with ENOMEM (RLIMIT_MEMLOCK),
  // invalid_argument (kernel below the floor, 6.1).
  static base::Result<std::unique_ptr<Ring>> open(KernelPort& kernel, const RingOptions& options);
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // A readable sentence: what is wrong and what to change (kernel.io_uring_disabled, the
  // container's profile, the memlock limit).
  static std::string explain(const base::Error& error);
  // What a ring counts against RLIMIT_MEMLOCK, for an unprivileged user: its queues and the rings
  // of its buffer groups (`buffers` in all).
  static std::size_t locked_bytes(const RingOptions& options, std::size_t buffers);

  const Features& features() const { return features_; }
  const RingCounters& counters() const { return counters_; }
  int descriptor() const { return ring_.ring_fd; }
  KernelPort& kernel() { return kernel_; }

  // False when all slots are taken.
  bool attach(Completer& owner);
  // Only when owner.in_flight() == 0. The slot's generation changes, so that nothing late can reach
  // a new owner.
  void detach(Completer& owner);
  std::uint32_t attached() const { return attached_; }
  // Operations of all owners that still owe a completion. Looks at every slot that was ever used,
  // so it is for reports, not for every turn.
  std::uint64_t in_flight() const;

  // Operations. `owner` is attached. Memory that a send points to must stay until its completion
  // (for zero-copy: until the notification); msghdr, iovec and sockaddr only until the call of
  // run_once that submits them.
  void accept_multishot(Completer& owner, std::uint8_t kind, int fd);
  void receive_multishot(Completer& owner, std::uint8_t kind, int fd, BufferGroup& group);
  void receive(Completer& owner, std::uint8_t kind, int fd, BufferGroup& group);
  // Fills up to `buffers_max` buffers, which a Bundle gives, where Features::bundles is there (6.10
  // and later); one buffer elsewhere. With `poll_first` the kernel does not look at the socket
  // before it waits: cheaper when nothing is there yet, and nothing is lost when there is.
  void receive_bundle(Completer& owner, std::uint8_t kind, int fd, BufferGroup& group,
                      std::uint32_t buffers_max, bool poll_first);
  // At most `bytes` bytes, into one buffer.
  void receive_exactly(Completer& owner, std::uint8_t kind, int fd, BufferGroup& group,
                       std::uint32_t bytes);
  // `message` and all it points to must stay until the completion.
  void receive_message(Completer& owner, std::uint8_t kind, int fd, msghdr* message);
  void send(Completer& owner, std::uint8_t kind, int fd, const void* data, std::size_t bytes,
            int flags);
  void send_message(Completer& owner, std::uint8_t kind, int fd, const msghdr* message, int flags);
  // Sends all of the message and closes the descriptor, without waiting. The close runs if the send
  // has taken every byte, and else (the send is short, or -EAGAIN) ends with an error; the send
  // completes first as a rule. The last bytes leave with the end of the stream, so nothing else may
  // hold the socket open. On sockets without kernel TLS only.
  void send_message_and_close(Completer& owner, std::uint8_t send_kind, std::uint8_t close_kind,
                              int fd, const msghdr* message, int flags);
  // `registered_index` as of BufferGroup, or -1.
  void send_zero_copy(Completer& owner, std::uint8_t kind, int fd, const void* data,
                      std::size_t bytes, int flags, int registered_index);
  void connect(Completer& owner, std::uint8_t kind, int fd, const sockaddr* address,
               socklen_t length);
  void close(Completer& owner, std::uint8_t kind, int fd);
  void nop(Completer& owner, std::uint8_t kind);
  void poll(Completer& owner, std::uint8_t kind, int fd, unsigned events);
  void read(Completer& owner, std::uint8_t kind, int fd, void* data, std::size_t bytes);
  void write(Completer& owner, std::uint8_t kind, int fd, const void* data, std::size_t bytes,
             std::uint64_t offset);
  // Asks for the end of `owner`'s operation of kind `target`. The cancelled operation completes by
  // itself (-ECANCELED, or its true result when it was quicker); the cancel completes as `kind` (0,
  // -ENOENT, -EALREADY).
  void cancel(Completer& owner, std::uint8_t target, std::uint8_t kind);
  // Posts an unsolicited completion with `value` as the result to another ring; the target is that
  // ring's user_data(owner, kind) of who shall get it. -EOVERFLOW, -EBADF, ... when it cannot.
  void message(Completer& owner, std::uint8_t kind, int ring_descriptor,
               std::uint64_t target_user_data, std::uint32_t value);

  // A msghdr with room for `count` (at most 64) iovecs, its message already pointing at `pieces`
  // (the caller sets msg_iovlen). Valid until the next submission; hand it to send_message at once.
  struct Gather {
    msghdr message;
    iovec pieces[64];
  };
  Gather& gather();

  std::uint64_t user_data(const Completer& owner, std::uint8_t kind) const;

  void defer(Deferred& work) { deferred_.push_back(work); }
  // From the next turn on, until `work` is unlinked.
  void each_turn(TurnWork& work) { turn_work_.push_back(work); }
  base::TimerWheel& timers() { return *timers_; }
  base::Millis now_ms() const { return now_ns_ / 1'000'000; }
  std::uint64_t now_ns() const { return now_ns_; }  // monotonic, of the start of this turn
  std::uint64_t realtime_ns() const { return realtime_ns_; }

  // One turn: deferred work, one enter (waits until something completes, or a few things if the
  // last turn had a few, a timer is due, or `max_wait_ms` is over), all completions taken off the
  // queue, then handlers, then the work of each turn, timers, deferred work. Returns the number of
  // completions handled.
  static constexpr base::Millis no_limit = ~base::Millis{0};
  unsigned run_once(base::Millis max_wait_ms = no_limit);

 private:
  friend class BufferGroup;
  friend class Mailbox;
  struct SlotEntry {
    Completer* owner;
    std::uint32_t generation;
    std::uint32_t next_free;
    BufferGroup* group;  // that the owner last received from
  };
  struct Pending {
    std::uint64_t user_data;
    Completion completion;
  };

  explicit Ring(KernelPort& kernel);
  base::Result<void> set_up(const RingOptions& options);
  base::Result<void> find_features();
  io_uring_sqe* take_sqe(Completer& owner, std::uint8_t kind);
  unsigned unsubmitted() const;
  // Enters once with all that is queued; then keeps entering until everything was submitted or
  // refused.
  void enter(unsigned min_complete, unsigned flags, const __kernel_timespec* timeout);
  void enter_once(unsigned min_complete, unsigned flags, const __kernel_timespec* timeout);
  void refuse_unsubmitted();
  void stop_cut_off_close();
  void drain();
  void flush_overflow();
  void wait(base::Millis max_wait_ms);
  bool must_not_wait() const;
  unsigned dispatch_all();
  void dispatch(const Pending& pending);
  void drop_stale(const SlotEntry* entry, const Completion& completion);
  void run_deferred();
  void wake_waiters();
  void update_clock();
  void add_group(BufferGroup& group);
  void remove_group(BufferGroup& group);
  // A place in the table of fixed buffers for `area`, or -1.
  int register_area(void* area, std::size_t bytes);
  void unregister_area(int index);

  KernelPort& kernel_;
  io_uring ring_{};
  bool open_ = false;
  Features features_;
  RingCounters counters_;
  // Address space for all slots; a page is touched when a slot on it is first used.
  SlotEntry* slots_ = nullptr;
  std::uint32_t slots_max_ = 0;
  std::uint32_t slots_touched_ = 0;
  std::uint32_t free_slot_;
  std::uint32_t attached_ = 0;
  std::vector<Pending> batch_;    // taken off the queue, not handled yet
  std::vector<Pending> handled_;  // being handled
  std::vector<Gather> gathers_;
  std::size_t gathers_used_ = 0;
  base::IntrusiveList<Deferred, Deferred> deferred_;
  base::IntrusiveList<TurnWork, TurnWork> turn_work_;
  std::unique_ptr<base::TimerWheel> timers_;
  std::unique_ptr<BatchWait> batch_wait_;
  std::vector<BufferGroup*> groups_;
  std::uint32_t fixed_buffers_ = 0;  // bit set of places in use
  bool fixed_table_ = false;
  std::unique_ptr<WakerPool> wakers_;
  std::uint64_t now_ns_ = 0;
  std::uint64_t realtime_ns_ = 0;
  std::uint64_t realtime_read_ns_ = 0;  // when the real clock was last read, monotonic
};

}  // namespace ringside::ring
