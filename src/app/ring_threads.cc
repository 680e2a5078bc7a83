#include "ring_threads.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

#include "ringside/net/sys_port.h"
#include "ringside/ring/kernel_port.h"
#include "ringside/ring/ring.h"
#include "ringside/upstream/peers.h"

namespace ringside::app {

struct RingThreads::Parts {
  explicit Parts(RingThreadsOptions given)
      : options(std::move(given)),
        peers(options.rings),
        addresses(seed()),
        workers(options.rings, nullptr),
        done_descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~Parts() {
    if (done_descriptor >= 0) ::close(done_descriptor);
  }

  const RingThreadsOptions options;
  upstream::Peers peers;
  proxy::AddressTable addresses;
  std::vector<std::thread> threads;

  mutable std::mutex mutex;  // guards everything below
  std::condition_variable changed;
  std::vector<proxy::Worker*> workers;  // null before it is made and once it may be destroyed
  unsigned arrived = 0;                 // rings that have a worker, or failed to make one
  unsigned left = 0;                    // rings whose worker has finished
  bool decided = false;                 // whether to serve; set by the owner
  bool serve = false;
  MovedBodies moved;
  TlsCounts tls;        // once all have left
  std::string failure;  // the first one
  std::string features;
  int done_descriptor;

  static std::uint64_t seed() {
    std::uint64_t out = 0;
    net::real_sys().random_bytes(&out, sizeof out);
    return out;
  }
  void thread_main(unsigned index);
  bool arrive(unsigned index, proxy::Worker* worker, std::string problem);
  void leave(const proxy::Worker* worker);
  void decide(bool go);
  TlsCounts tls_counts() const;  // with the mutex
  template <typename Request>
  void for_each_worker(Request request);
};

// A worker that was never to serve is wound up in the usual way too: it has armed operations.
void RingThreads::Parts::thread_main(unsigned index) {
  std::string problem;
  std::unique_ptr<proxy::Worker> worker;
  const proxy::WorkerOptions worker_options{
      .kernel = ring::real_kernel(),
      .sys = net::real_sys(),
      .logger = options.logger,
      .access = options.access[index],
      .peers = options.rings > 1 ? &peers : nullptr,
      .addresses = &addresses,
      .index = index,
      .rings = options.rings,
      .connections_max = options.connections_max,
  };
  auto made = proxy::Worker::create(worker_options, options.runtime, options.listeners);
  if (made) {
    worker = std::move(*made);
  } else {
    problem = ring::Ring::explain(made.error());
  }
  const bool go = arrive(index, worker.get(), std::move(problem));
  if (worker != nullptr) {
    if (!go) worker->request_stop();
    worker->run();
  }
  leave(worker.get());
}

// Returns the common decision.
bool RingThreads::Parts::arrive(unsigned index, proxy::Worker* worker, std::string problem) {
  std::unique_lock lock(mutex);
  workers[index] = worker;
  if (worker == nullptr && failure.empty()) failure = std::move(problem);
  if (worker != nullptr && features.empty()) {
    features = ring::describe(worker->ring().features());
  }
  ++arrived;
  changed.notify_all();
  changed.wait(lock, [this] { return decided; });
  return serve;
}

// Waits for all the others, so that no worker is destroyed while another may speak to it.
void RingThreads::Parts::leave(const proxy::Worker* worker) {
  std::unique_lock lock(mutex);
  if (worker != nullptr) moved.add(worker->counters());
  ++left;
  changed.notify_all();
  if (left == threads.size()) {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(done_descriptor, &one, sizeof one);
    tls = tls_counts();
    // From here on requests would reach workers that are being destroyed.
    workers.assign(workers.size(), nullptr);
  }
  changed.wait(lock, [this] { return left == threads.size(); });
}

TlsCounts RingThreads::Parts::tls_counts() const {
  TlsCounts out = tls;
  for (const proxy::Worker* worker : workers) {
    if (worker != nullptr) out.add(worker->tls_counters());
  }
  return out;
}

void RingThreads::Parts::decide(bool go) {
  const std::lock_guard lock(mutex);
  serve = go;
  decided = true;
  changed.notify_all();
}

template <typename Request>
void RingThreads::Parts::for_each_worker(Request request) {
  const std::lock_guard lock(mutex);
  for (proxy::Worker* worker : workers) {
    if (worker != nullptr) request(*worker);
  }
}

RingThreads::RingThreads(RingThreadsOptions options)
    : parts_(std::make_unique<Parts>(std::move(options))) {}

RingThreads::~RingThreads() {
  for (std::thread& thread : parts_->threads) {
    if (thread.joinable()) thread.join();
  }
}

RingThreads::Started RingThreads::start() {
  Parts& parts = *parts_;
  std::string failure;
  {
    // The threads look at `threads` under the mutex only.
    const std::lock_guard lock(parts.mutex);
    try {
      for (unsigned index = 0; index < parts.options.rings; ++index) {
        parts.threads.emplace_back([&parts, index] { parts.thread_main(index); });
        const std::string name = "ring-" + std::to_string(index);
        ::pthread_setname_np(parts.threads.back().native_handle(), name.c_str());
      }
    } catch (const std::system_error& error) {
      failure = std::string("a ring thread could not be started: ") + error.what();
    }
  }
  {
    std::unique_lock lock(parts.mutex);
    parts.changed.wait(lock, [&parts] { return parts.arrived == parts.threads.size(); });
    if (failure.empty()) failure = parts.failure;
  }
  parts.decide(failure.empty());
  if (!failure.empty()) return {failure, {}};
  return {{}, parts.features};
}

void RingThreads::request_drain() {
  parts_->for_each_worker([](proxy::Worker& worker) { worker.request_drain(); });
}

void RingThreads::request_stop() {
  parts_->for_each_worker([](proxy::Worker& worker) { worker.request_stop(); });
}

void RingThreads::request_swap(const proxy::RuntimeRef& runtime) {
  parts_->for_each_worker([&runtime](proxy::Worker& worker) { worker.request_swap(runtime); });
}

void RingThreads::request_report() {
  parts_->for_each_worker([](proxy::Worker& worker) { worker.request_report(); });
}

bool RingThreads::finished() const {
  const std::lock_guard lock(parts_->mutex);
  return parts_->left == parts_->threads.size();
}

MovedBodies RingThreads::moved() const {
  const std::lock_guard lock(parts_->mutex);
  return parts_->moved;
}

TlsCounts RingThreads::tls_counts() const {
  const std::lock_guard lock(parts_->mutex);
  return parts_->tls_counts();
}

int RingThreads::done_descriptor() const {
  return parts_->done_descriptor;
}

}  // namespace ringside::app
