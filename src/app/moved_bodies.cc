#include "moved_bodies.h"

#include "sizing_sheet.h"

namespace ringside::app {

void MovedBodies::add(const proxy::WorkerCounters& counters) {
  for (std::size_t mover = 0; mover < net::movers; ++mover) {
    bodies[mover] += counters.bodies[mover].load(std::memory_order_relaxed);
    bytes[mover] += counters.moved_bytes[mover].load(std::memory_order_relaxed);
  }
}

std::string to_string(const MovedBodies& moved) {
  std::string out;
  for (std::size_t mover = 0; mover < net::movers; ++mover) {
    if (moved.bytes[mover] == 0) continue;
    if (!out.empty()) out += ' ';
    out += std::string(net::mover_names[mover]) + '=' + std::to_string(moved.bodies[mover]) + " (" +
           readable_bytes(moved.bytes[mover]) + ')';
  }
  return out.empty() ? "none" : out;
}

}  // namespace ringside::app
