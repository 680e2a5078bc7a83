// What all parts of one worker share. Owner: the worker; outlives everything that refers to it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "ringside/base/arena.h"
#include "ringside/base/intrusive_list.h"
#include "ringside/base/logger.h"
#include "ringside/base/slab.h"
#include "ringside/filter/forwarding.h"
#include "ringside/http/h2_connection.h"
#include "ringside/net/frame_output.h"
#include "ringside/net/stream.h"
#include "ringside/proxy/access_record.h"
#include "ringside/proxy/address_table.h"
#include "ringside/proxy/worker.h"
#include "ringside/ring/ring.h"
#include "ringside/tls/layer.h"
#include "ringside/upstream/pools.h"

namespace ringside::proxy {

class Exchange;
class H1Client;
class H2Client;
class H2ClientStream;

// A Runtime on this ring, with its pools. Counted without atomics: exchanges of other rings never
// touch it.
struct RingRuntime {
  RuntimeRef runtime;
  std::unique_ptr<tls::Contexts> tls;  // null: nothing speaks TLS
  std::unique_ptr<upstream::PoolTable> table;
  std::uint32_t exchanges = 0;  // that began with it, and what they left in flight
  bool current = true;
  const config::Snapshot& snapshot() const { return *runtime->snapshot; }
};

// The Date of answers made here, written anew once a second.
class DateCache {
 public:
  std::string_view at(std::uint64_t realtime_ns);

 private:
  std::uint64_t second_ = 0;
  char text_[32];
  std::size_t size_ = 0;
};

struct Context {
  ring::Ring& ring;
  net::SysPort& sys;
  base::Logger& logger;
  AccessSink* access;
  AddressTable* addresses;
  net::StreamContext streams;
  base::ChunkPool& chunks;
  base::Slab<H1Client>& clients;
  base::Slab<Exchange>& exchanges;
  base::Slab<H2Client>& h2_clients;
  base::Slab<H2ClientStream>& h2_streams;
  net::FrameBlocks& h2_blocks;
  http::H2Shared& h2;
  upstream::Pools& pools;
  filter::RequestIds& ids;
  WorkerCounters& counters;
  DateCache date;
  RingRuntime* runtime = nullptr;  // the one that new exchanges begin with
  base::IntrusiveList<H1Client, H1Client>* client_list = nullptr;
  bool draining = false;

  // What may wait for a slow peer: the configured limit, and less when buffers become scarce.
  std::size_t buffered_max(const config::Limits& limits) const {
    const ring::BufferGroup& buffers = streams.buffers;
    std::size_t fair = std::size_t{buffers.share()} * buffers.buffer_bytes();
    return std::min<std::size_t>(limits.buffered_bytes_max, fair);
  }

  void exchange_began(RingRuntime& on) { ++on.exchanges; }
  // May destroy `on` when it is not current any more.
  void exchange_ended(RingRuntime& on);
  base::IntrusiveList<H1Client, H1Client>& all_clients() { return *client_list; }
  base::Millis drain_grace_ms = 0;
  std::vector<std::unique_ptr<RingRuntime>>* retired = nullptr;
};

// A counter with one writer, the ring's thread.
inline void count(std::atomic<std::uint64_t>& counter, std::uint64_t by = 1) {
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

}  // namespace ringside::proxy
