// What the house-keeping of one request costs: timers, places, chunks.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "ringside/base/arena.h"
#include "ringside/base/slab.h"
#include "ringside/base/timer_wheel.h"

namespace ringside::base {
namespace {

void ignore(void*) {}

std::vector<std::unique_ptr<Timer>> idle_timers(TimerWheel& wheel, std::size_t count) {
  std::vector<std::unique_ptr<Timer>> timers;
  for (std::size_t i = 0; i < count; ++i) {
    timers.push_back(std::make_unique<Timer>(ignore, nullptr));
    wheel.arm(*timers.back(), 60'000 + i % 7000);
  }
  return timers;
}

// A deadline that is pushed back with every request.
void timer_push_back(benchmark::State& state) {
  TimerWheel wheel(0);
  auto timers = idle_timers(wheel, 10'000);
  Millis now = 0;
  std::size_t next = 0;
  for (auto _ : state) {
    wheel.observe(++now / 1000);
    wheel.arm(*timers[next], 75'000);
    next = next + 1 == timers.size() ? 0 : next + 1;
  }
}
BENCHMARK(timer_push_back);

void timer_arm_and_disarm(benchmark::State& state) {
  TimerWheel wheel(0);
  auto timers = idle_timers(wheel, 10'000);
  Timer timer(ignore, nullptr);
  for (auto _ : state) {
    wheel.arm(timer, 5000);
    wheel.disarm(timer);
  }
}
BENCHMARK(timer_arm_and_disarm);

// One turn of a loop with 10,000 idle connections and one deadline pushed back.
void timer_turn(benchmark::State& state) {
  TimerWheel wheel(0);
  auto timers = idle_timers(wheel, 10'000);
  Millis now = 0;
  std::uint64_t turns = 0;
  std::size_t next = 0;
  for (auto _ : state) {
    if (++turns % 50 == 0) ++now;
    wheel.arm(*timers[next], 75'000);
    next = next + 1 == timers.size() ? 0 : next + 1;
    wheel.advance(now);
    benchmark::DoNotOptimize(wheel.until_next());
  }
}
BENCHMARK(timer_turn);

struct Object {
  std::uint64_t words[64];
};

void slab_create_and_destroy(benchmark::State& state) {
  Slab<Object> slab(1024);
  for (auto _ : state) {
    Object* object = slab.create();
    benchmark::DoNotOptimize(object->words[0] = 1);
    slab.destroy(object);
  }
}
BENCHMARK(slab_create_and_destroy);

// The arena of an exchange: forty small pieces, then all released.
void arena_exchange(benchmark::State& state) {
  ChunkPool pool;
  Arena arena(pool);
  for (auto _ : state) {
    for (int i = 0; i < 40; ++i)
      benchmark::DoNotOptimize(arena.copy("accept-encoding: gzip"));
    arena.release();
  }
}
BENCHMARK(arena_exchange);

}  // namespace
}  // namespace ringside::base
