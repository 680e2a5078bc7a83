// What received buffers cost: leases taken from completions, shared, given back, and buffers
// published again. The ring is that of the unit tests' kernel, which is not called meanwhile.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "ringside/ring/buffer_group.h"
#include "ringside/ring/ring.h"

#include "bench.h"
#include "ring/fake_kernel.h"

namespace ringside::ring {
namespace {

constexpr std::uint16_t group_id = 3;
constexpr std::uint32_t buffer_bytes = 16384;
constexpr std::uint32_t request_bytes = 150;

// A group, and the kernel's part: it takes the buffers in the order in which they were published.
class Buffers {
 public:
  explicit Buffers(std::uint32_t count)
      : ring_(std::move(*Ring::open(kernel_, {.entries = 8}))),
        group_(std::move(*BufferGroup::create(*ring_, group_id, count, buffer_bytes, false))),
        entries_(
            reinterpret_cast<const io_uring_buf*>(kernel_.buffer_rings.at(group_id).ring_addr)),
        mask_(count - 1),
        window_(group_->published()) {}

  BufferGroup& group() { return *group_; }
  // A receive that filled so many buffers, the last one with `last_bytes`.
  Completion received(std::uint32_t buffers = 1, std::uint32_t last_bytes = request_bytes) {
    if (group_->published() < buffers) std::abort();
    std::uint32_t id = entries_[head_ & mask_].bid;
    head_ += buffers;
    return {.result = static_cast<std::int32_t>((buffers - 1) * buffer_bytes + last_bytes),
            .flags = IORING_CQE_F_BUFFER | id << IORING_CQE_BUFFER_SHIFT};
  }
  // At the end: every buffer is back, and as many are published as in the beginning.
  void check(benchmark::State& state) const {
    if (group_->leased() != 0 || group_->published() != window_)
      bench::fail(state, "a buffer was not given back");
  }

 private:
  test::FakeKernel kernel_;
  std::unique_ptr<Ring> ring_;
  std::unique_ptr<BufferGroup> group_;
  const io_uring_buf* entries_;
  std::uint32_t mask_;
  std::uint32_t window_;
  std::uint32_t head_ = 0;
};

// A request that is read at once.
void take_and_give_back(benchmark::State& state) {
  Buffers buffers(1024);
  for (auto _ : state) {
    Lease lease = buffers.group().take(buffers.received());
    benchmark::DoNotOptimize(lease.data());
  }
  buffers.check(state);
}
BENCHMARK(take_and_give_back);

// The same while others are kept: the oldest lease goes when the new one comes. With 1,000 of 1,024
// leased the kernel has but the rest.
void take_and_give_back_oldest(benchmark::State& state) {
  Buffers buffers(1024);
  std::vector<Lease> kept(static_cast<std::size_t>(state.range(0)));
  for (Lease& lease : kept)
    lease = buffers.group().take(buffers.received());
  std::size_t oldest = 0;
  for (auto _ : state) {
    kept[oldest] = buffers.group().take(buffers.received());
    oldest = oldest + 1 == kept.size() ? 0 : oldest + 1;
  }
  if (buffers.group().leased() != kept.size()) bench::fail(state, "a lease was lost");
  kept.clear();
  buffers.check(state);
}
BENCHMARK(take_and_give_back_oldest)->ArgName("leased")->Arg(1)->Arg(64)->Arg(1000);

// A buffer with a head and so many pieces of a body, which go one after the other.
void share(benchmark::State& state) {
  Buffers buffers(1024);
  std::vector<Lease> pieces(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    Lease whole = buffers.group().take(buffers.received());
    for (Lease& piece : pieces)
      piece = whole.share(50, 100);
    whole.reset();
    for (Lease& piece : pieces)
      piece.reset();
  }
  buffers.check(state);
}
BENCHMARK(share)->ArgName("pieces")->Arg(1)->Arg(4)->Arg(16);

// One completion with several buffers.
void take_bundle(benchmark::State& state) {
  Buffers buffers(1024);
  auto count = static_cast<std::uint32_t>(state.range(0));
  for (auto _ : state) {
    Bundle bundle(buffers.group(), buffers.received(count, buffer_bytes));
    while (!bundle.empty()) {
      Lease lease = bundle.next();
      benchmark::DoNotOptimize(lease.data());
    }
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  buffers.check(state);
}
BENCHMARK(take_bundle)->ArgName("buffers")->Arg(1)->Arg(8)->Arg(32);

// A burst takes this many of 64 buffers, which are all that there is: each that comes back is
// published at once.
void replenish(benchmark::State& state) {
  Buffers buffers(64);
  std::vector<Lease> burst(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    for (Lease& lease : burst)
      lease = buffers.group().take(buffers.received());
    for (Lease& lease : burst)
      lease.reset();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  buffers.check(state);
}
BENCHMARK(replenish)->ArgName("buffers")->Arg(16)->Arg(64);

}  // namespace
}  // namespace ringside::ring
