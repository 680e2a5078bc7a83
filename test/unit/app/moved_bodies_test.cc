#include "moved_bodies.h"

#include <gtest/gtest.h>

namespace ringside::app {
namespace {

TEST(MovedBodies, AreSummedOverRingsAndNamed) {
  MovedBodies moved;
  EXPECT_EQ(to_string(moved), "none");
  proxy::WorkerCounters one;
  one.bodies[static_cast<int>(net::Mover::copy)] = 2;
  one.moved_bytes[static_cast<int>(net::Mover::copy)] = 1024;
  proxy::WorkerCounters two;
  two.bodies[static_cast<int>(net::Mover::copy)] = 1;
  two.moved_bytes[static_cast<int>(net::Mover::copy)] = 512;
  two.bodies[static_cast<int>(net::Mover::splice)] = 1;
  two.moved_bytes[static_cast<int>(net::Mover::splice)] = 64 << 20;
  moved.add(one);
  moved.add(two);
  EXPECT_EQ(to_string(moved), "copy=3 (1.50 KiB) splice=1 (64 MiB)");
}

}  // namespace
}  // namespace ringside::app
