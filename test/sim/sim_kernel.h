// The simulated kernel behind ring::KernelPort.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ringside/ring/kernel_port.h"

#include "core.h"
#include "sim_ring.h"

namespace ringside::sim {

// What this kernel can do beyond ringside's floor (6.1). All of them are legal machines.
struct KernelAbilities {
  bool single_issuer = true;
  bool defer_taskrun = true;
  bool zero_copy_report = true;
  bool message_ring = true;
  bool bundles = true;
};

// Several rings in one thread. `enter` never blocks: when nothing is ready and every ring of the
// world waits, virtual time moves to the next event or the earliest deadline; as long as another
// ring has not been entered since, it returns -EINTR so that the driver can enter that one. So with
// one ring, a turn of the loop that waits always makes time pass.
class SimKernel final : public ring::KernelPort {
 public:
  SimKernel(Core& core, const KernelAbilities& abilities) : core_(core), abilities_(abilities) {}

  int setup(unsigned entries, io_uring_params& params, io_uring& ring) override;
  int enter(io_uring& ring, unsigned to_submit, unsigned min_complete, unsigned flags,
            const __kernel_timespec* timeout) override;
  int register_resource(io_uring& ring, unsigned opcode, void* arg, unsigned count) override;
  void teardown(io_uring& ring) override;
  void try_features(unsigned setup_flags, ring::Features& features) override;
  int open_event() override;
  void signal_event(int fd) override;
  void close_event(int fd) override;
  std::uint64_t monotonic_ns() override { return core_.clock.now_ns(); }
  std::uint64_t realtime_ns() override { return core_.clock.realtime_ns(); }
  std::uint64_t thread_cpu_ns() override { return core_.clock.now_ns(); }

  // The enter that is waiting now, or the next one that would, returns -EINTR: how an event gives
  // control back to the driver.
  void interrupt() { interrupted_ = true; }
  // Nothing can ever happen again: no event is planned and no ring has a deadline.
  bool stuck() const { return stuck_; }
  // Whether a program runs that enters this ring again and again: no other ring's wait lets time
  // pass before that one waits too.
  void attend(int ring_descriptor, bool attended);
  std::size_t operations_in_flight() const;
  std::size_t rings() const { return rings_.size(); }
  SimRing& ring(std::size_t index) { return *rings_[index]; }

 private:
  SimRing* find(const io_uring& ring);
  int refuse(SimRing& ring, unsigned to_submit, unsigned* allowed);
  int wait(SimRing& ring, unsigned min_complete, const __kernel_timespec* timeout);
  bool let_time_pass(SimRing& ring);
  void spend_processor_time();

  Core& core_;
  KernelAbilities abilities_;
  std::vector<std::shared_ptr<SimRing>> rings_;
  bool interrupted_ = false;
  bool stuck_ = false;
};

}  // namespace ringside::sim
