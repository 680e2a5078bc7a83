// What the ring adds to the kernel's own costs, and the choices that were measured: the window of
// published buffers, and how rings wake each other.
#include <arpa/inet.h>
#include <benchmark/benchmark.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "ringside/ring/mailbox.h"
#include "ringside/ring/ring.h"

namespace ringside::ring {
namespace {

std::unique_ptr<Ring> open() {
  return std::move(*Ring::open(real_kernel(), {}));
}

struct Owner final : Completer {
  explicit Owner(Ring& ring) : ring_(ring) { ring.attach(*this); }
  ~Owner() override { ring_.detach(*this); }
  void on_complete(std::uint8_t, const Completion& completion) override { last = completion; }
  Completion last;
  Ring& ring_;
};

void open_ring(benchmark::State& state) {
  for (auto _ : state)
    benchmark::DoNotOptimize(open());
}
BENCHMARK(open_ring);

// A turn with `n` operations that cost the kernel next to nothing.
void nop_turn(benchmark::State& state) {
  auto ring = open();
  auto count = static_cast<std::size_t>(state.range(0));
  std::vector<std::unique_ptr<Owner>> owners;
  for (std::size_t i = 0; i < count; ++i)
    owners.push_back(std::make_unique<Owner>(*ring));
  for (auto _ : state) {
    for (auto& owner : owners)
      ring->nop(*owner, 1);
    ring->run_once(0);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(nop_turn)->Arg(1)->Arg(8)->Arg(64);

struct Pair {
  Pair() {
    int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address));
    ::listen(listener, 1);
    socklen_t length = sizeof(address);
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);
    client = ::socket(AF_INET, SOCK_STREAM, 0);
    if (::connect(client, reinterpret_cast<sockaddr*>(&address), length) != 0) std::abort();
    server = ::accept(listener, nullptr, nullptr);
    ::close(listener);
    int one = 1;
    ::setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    ::setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  }
  ~Pair() {
    ::close(client);
    ::close(server);
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  int client = -1;
  int server = -1;
};

// Answers each request of 150 bytes with 1 KiB, after reading all of it.
class Server final : public Completer {
 public:
  Server(Ring& ring, BufferGroup& group) : ring_(ring), group_(group) {
    ring.attach(*this);
    ring.receive_multishot(*this, 1, pair.server, group);
  }
  ~Server() override { ring_.detach(*this); }
  void stop() { ring_.cancel(*this, 1, 3); }
  void on_complete(std::uint8_t kind, const Completion& completion) override {
    if (kind != 1 || completion.result <= 0) return;
    Lease lease = group_.take(completion);
    std::uint64_t sum = 0;
    for (char byte : lease.bytes())
      sum += static_cast<unsigned char>(byte);
    benchmark::DoNotOptimize(sum);
    ring_.send(*this, 2, pair.server, answer_, sizeof(answer_), MSG_NOSIGNAL);
  }
  Pair pair;

 private:
  Ring& ring_;
  BufferGroup& group_;
  char answer_[1024] = {};
};

struct Widener final : BufferWaiter {
  void on_buffers_available() override {}
};

// 50 connections with one request each a turn. Argument: how many of the 1024 buffers of 16 KiB are
// published.
void serve_turn(benchmark::State& state) {
  auto ring = open();
  auto group = std::move(*BufferGroup::create(*ring, 0, 1024, 16384, false));
  Widener widener;
  while (group->published() < static_cast<std::uint32_t>(state.range(0)))
    group->wait(widener);
  widener.unlink();
  std::vector<std::unique_ptr<Server>> servers;
  for (int i = 0; i < 50; ++i)
    servers.push_back(std::make_unique<Server>(*ring, *group));
  char request[150];
  std::memset(request, 'x', sizeof(request));
  char answer[1024];
  for (auto _ : state) {
    for (auto& server : servers) {
      if (::send(server->pair.client, request, sizeof(request), 0) < 0) std::abort();
    }
    ring->run_once();
    while (ring->run_once(0) != 0) {
    }
    for (auto& server : servers) {
      if (::recv(server->pair.client, answer, sizeof(answer), MSG_WAITALL) < 0) std::abort();
    }
  }
  state.SetItemsProcessed(state.iterations() * 50);
  for (auto& server : servers)
    server->stop();
  for (auto& server : servers) {
    while (server->in_flight() != 0)
      ring->run_once();
  }
}
BENCHMARK(serve_turn)->Arg(64)->Arg(256)->Arg(1024);

// Two rings on two threads throw a message to and fro; `by_ring` by MSG_RING, else by the event.
class Player final : public MessageHandler {
 public:
  void on_message(const Message& message) override {
    if (message.kind != 0) {
      stopped = true;
      return;
    }
    ++received;
    if (answers) peer->post(from, message);
  }
  bool answers = false;
  bool stopped = false;
  std::uint64_t received = 0;
  Ring* from = nullptr;
  Mailbox* peer = nullptr;
};

void mailbox_round_trip(benchmark::State& state) {
  bool by_ring = state.range(0) != 0;
  auto ring = open();
  Player here;
  auto box = std::move(*Mailbox::create(*ring, here));
  std::atomic<Mailbox*> there_box = nullptr;
  std::thread thread([&] {
    auto own = open();
    Player there;
    auto own_box = std::move(*Mailbox::create(*own, there));
    there.answers = true;
    there.peer = box.get();
    there.from = by_ring ? own.get() : nullptr;
    there_box = own_box.get();
    there_box.notify_one();
    while (!there.stopped)
      own->run_once();
    while (own->attached() > 1)
      own->run_once();
    own_box->close();
    while (own_box->in_flight() != 0)
      own->run_once();
  });
  there_box.wait(nullptr);
  Mailbox* peer = there_box;
  for (auto _ : state) {
    std::uint64_t before = here.received;
    peer->post(by_ring ? ring.get() : nullptr, {});
    while (here.received == before)
      ring->run_once();
  }
  peer->post(nullptr, {.kind = 1});
  thread.join();
  while (ring->attached() > 1)
    ring->run_once();
  box->close();
  while (box->in_flight() != 0)
    ring->run_once();
}
BENCHMARK(mailbox_round_trip)->Arg(0)->Arg(1)->UseRealTime();

}  // namespace
}  // namespace ringside::ring
