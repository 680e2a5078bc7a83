// What a pool of server connections costs an exchange: an idle one taken and given back, and one
// that another ring lends. The kernel is that of the unit tests and its costs are nobody's, so only
// the calls of the pool are timed (the column Time); an exchange is served between them, as a
// connection goes back only after one.
#include <chrono>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "bench.h"
#include "upstream/pools_fixture.h"
#include "upstream/two_rings.h"

namespace ringside::upstream::test {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point started) {
  return std::chrono::duration<double>(Clock::now() - started).count();
}

// Whether the fixtures, which look after themselves with EXPECT, found nothing wrong.
bool good(benchmark::State& state) {
  if (!testing::UnitTest::GetInstance()->Failed()) return true;
  bench::fail(state, "the pool did something else");
  return false;
}

// Somebody who has one exchange after the other, and spends no time on what it is told.
class User final : public Waiter, public ResponseHandler {
 public:
  explicit User(base::ChunkPool& chunks) : arena_(chunks) {}
  void on_session(Session& session) override { session_ = &session; }
  void on_no_session(const base::Error&, SharedServer*) override { ADD_FAILURE(); }
  void on_response_head(http::ResponseHead&) override {}
  void on_response_body(net::Piece) override { ADD_FAILURE(); }
  void on_response_end(const http::FieldList*) override { ended_ = true; }
  void on_request_progress() override {}
  void on_upstream_failed(const base::Error&) override { ADD_FAILURE(); }

  // False after a failure; nobody waits then.
  bool has_session(Pools& pools) {
    if (session_ != nullptr) return true;
    ADD_FAILURE() << "there is no idle connection";
    pools.abandon(*this);
    return false;
  }
  // All of an exchange but its end.
  void serve(Machine& machine, int fd) {
    ended_ = false;
    session_->begin(*this, arena_, http::Method::get);
    http::HeadWriter head = session_->start_head({.method = "GET", .target = "/", .host = "a"});
    EXPECT_TRUE(session_->send_head(head, {}));
    EXPECT_NE(machine.leave_all(fd), "");
    machine.arrive(fd, "HTTP/1.1 204 No Content\r\n\r\n");
    EXPECT_TRUE(ended_);
    machine.kernel.entered.clear();
  }
  void finish() { std::exchange(session_, nullptr)->finish(); }
  void release() { arena_.release(); }

 private:
  base::Arena arena_;
  Session* session_ = nullptr;
  bool ended_ = false;
};

class OneRing final : public PoolsTest {
 public:
  explicit OneRing(std::size_t idle) : user_(chunks_) {
    std::vector<std::unique_ptr<Request>> requests;
    std::vector<int> descriptors;
    for (std::size_t i = 0; i < idle; ++i) {
      requests.push_back(std::make_unique<Request>(chunks_));
      descriptors.push_back(connect(*requests.back()));
    }
    for (std::size_t i = 0; i < idle; ++i)
      serve(*requests[i], descriptors[i]);
    recent_ = descriptors.back();
    EXPECT_EQ(server().idle(0), idle);
  }
  void TestBody() override {}

  // Returns the seconds of the two calls.
  double exchange() {
    Clock::time_point started = Clock::now();
    pools_.acquire(user_, *table_, 0, nullptr);
    double seconds = seconds_since(started);
    if (!user_.has_session(pools_)) return seconds;
    user_.serve(machine_, recent_);
    started = Clock::now();
    user_.finish();
    seconds += seconds_since(started);
    user_.release();
    machine_.settle();
    return seconds;
  }
  const PoolCounters& counters() const { return pools_.counters(); }

 private:
  User user_;
  int recent_ = -1;  // of the connection that was used last, which is the first to be used again
};

// In each of the times below.
void clock_alone(benchmark::State& state) {
  for (auto _ : state) {
    Clock::time_point started = Clock::now();
    double seconds = seconds_since(started);
    started = Clock::now();
    state.SetIterationTime(seconds + seconds_since(started));
  }
}
BENCHMARK(clock_alone)->UseManualTime()->Iterations(20'000);

void acquire_and_finish(benchmark::State& state) {
  auto idle = static_cast<std::size_t>(state.range(0));
  {
    OneRing ring(idle);
    for (auto _ : state) {
      state.SetIterationTime(ring.exchange());
      if (!good(state)) break;
    }
    EXPECT_EQ(ring.counters().connects, idle);
  }
  good(state);
}
BENCHMARK(acquire_and_finish)
    ->ArgName("idle")
    ->Arg(1)
    ->Arg(16)
    ->Arg(256)
    ->UseManualTime()
    ->Iterations(20'000);

class TwoRings final : public LendingTest {
 public:
  TwoRings() : user_(chunks_), fd_(leave_idle(one_)) {}
  void TestBody() override {}

  // One ring after the other needs the only connection. Returns the seconds until it has it.
  double exchange() {
    std::swap(here_, there_);
    return exchange_on(*here_);
  }
  std::uint64_t borrowed() const {
    return one_.pools.counters().borrowed + two_.pools.counters().borrowed;
  }

 private:
  double exchange_on(Side& side) {
    Clock::time_point started = Clock::now();
    side.pools.acquire(user_, *side.table, 0, nullptr);
    mail();
    double seconds = seconds_since(started);
    if (!user_.has_session(side.pools)) return seconds;
    user_.serve(side.machine, fd_);
    user_.finish();
    user_.release();
    side.machine.settle();
    for (Side* each : {&one_, &two_})
      each->machine.kernel.entered.clear();
    return seconds;
  }

  User user_;
  int fd_;
  Side* here_ = &one_;
  Side* there_ = &two_;
};

// With the turns of both rings and what their kernels do, a cancelled receive and the messages:
// compare it with itself only.
void borrow(benchmark::State& state) {
  {
    TwoRings rings;
    for (auto _ : state) {
      state.SetIterationTime(rings.exchange());
      if (!good(state)) break;
    }
    EXPECT_EQ(rings.borrowed(), static_cast<std::uint64_t>(state.iterations()));
  }
  good(state);
}
BENCHMARK(borrow)->UseManualTime()->Iterations(20'000);

}  // namespace
}  // namespace ringside::upstream::test
