#include "ringside/proxy/worker.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "ringside/net/frame_output.h"
#include "ringside/tls/channel.h"

#include "acceptor.h"
#include "context.h"
#include "exchange.h"
#include "h1_client.h"
#include "h2_client.h"

namespace ringside::proxy {

namespace {

enum MessageKind : std::uint32_t { message_drain = 1, message_stop, message_swap, message_report };

// Idle clients may have a request under way when a drain begins; they get this long to bring it.
constexpr base::Millis drain_grace_ms = 1'000;

// When a body passes through a pipe unless the configuration says otherwise.
constexpr std::uint64_t auto_splice_bytes_min = 256 * 1024;
// What a peer has sent in bulk before it is given a pipe or large buffers.
constexpr std::uint32_t auto_streak_min = 64 * 1024;

// Where the kernel has bundles they are as good, and need no memory of their own.
bool wants_large(config::BodyMover mover, const ring::Features& features) {
  return may_want_large(mover) && (mover != config::BodyMover::automatic || !features.bundles);
}

// Two connections for each client, some pieces for each connection that is busy.
std::uint32_t sessions_max(std::uint32_t connections_max) {
  return connections_max + 1024;
}
std::uint32_t slices_max(std::uint32_t connections_max) {
  return connections_max * 8 + 65'536;
}
// An HTTP/2 connection may have many at a time, but not all of them will.
std::uint32_t exchanges_max(std::uint32_t connections_max) {
  return connections_max * 4;
}
// Of HTTP/2 connections that have something to send.
std::uint32_t h2_blocks_max(std::uint32_t connections_max) {
  return connections_max * 4 + 1024;
}
// Of a stream, towards servers; RFC 9113 §6.9.2 has the least.
constexpr std::uint32_t h2_window_bytes_min = 65'535;
constexpr std::uint32_t h2_window_bytes_max = 1U << 24;
// What OpenSSL keeps of a connection, and what is ours; its buffers come on top while it is busy.
constexpr std::uint64_t tls_connection_bytes = sizeof(tls::Channel) + 12 * 1024;

std::uint32_t owners_max(std::uint32_t connections_max) {
  return connections_max + sessions_max(connections_max) + 1024;
}

}  // namespace

// Members are destroyed from the last to the first: what refers to something stands behind it.
struct Worker::Parts final : ring::MessageHandler {
  Parts(const WorkerOptions& with, std::unique_ptr<ring::Ring> own_ring,
        std::unique_ptr<ring::BufferGroup> group, std::unique_ptr<ring::BufferGroup> large_group,
        std::unique_ptr<ring::BufferGroup> opened_group, RuntimeRef first)
      : options(with),
        ring(std::move(own_ring)),
        buffers(std::move(group)),
        large(std::move(large_group)),
        opened(std::move(opened_group)),
        slices(slices_max(with.connections_max)),
        pipes(with.sys, pipes_max(with.connections_max),
              large_buffer_bytes(first->snapshot->limits)),
        streams(make_streams(first->snapshot->server)),
        channels(slices, with.connections_max + sessions_max(with.connections_max)),
        blocks(with.connections_max + sessions_max(with.connections_max)),
        pools(streams, with.logger, pools_options(with, *first->snapshot)),
        ids(make_ids(with.sys)),
        clients(with.connections_max),
        exchanges(exchanges_max(with.connections_max)),
        h2_clients(with.connections_max),
        h2_streams(exchanges_max(with.connections_max)),
        h2_blocks(h2_blocks_max(with.connections_max)),
        drain_timer(&Parts::drain_over, this),
        context{.ring = *ring,
                .sys = with.sys,
                .logger = with.logger,
                .access = with.access,
                .addresses = with.addresses,
                .streams = streams,
                .chunks = chunks,
                .clients = clients,
                .exchanges = exchanges,
                .h2_clients = h2_clients,
                .h2_streams = h2_streams,
                .h2_blocks = h2_blocks,
                .h2 = h2,
                .pools = pools,
                .ids = ids,
                .counters = counters,
                .client_list = &client_list,
                .drain_grace_ms = drain_grace_ms,
                .retired = &retired} {
    // What uploads over long paths may bring beyond the usual windows: a quarter of the buffers.
    h2.set_window_bytes(std::size_t{first->snapshot->server.buffers} *
                        first->snapshot->server.buffer_bytes / 4);
    use(std::move(first));
  }

  net::StreamContext make_streams(const config::Server& server) {
    net::StreamContext out{.ring = *ring,
                           .buffers = *buffers,
                           .slices = slices,
                           .sys = options.sys,
                           .pipes = pipes,
                           .large = large.get(),
                           .zero_copy_bytes_min = server.zero_copy_bytes_min,
                           .opened = opened.get(),
                           .blocks = &blocks};
    switch (server.body_mover) {
      case config::BodyMover::automatic:
        out.splice_bytes_min = auto_splice_bytes_min;
        out.splice_streak_min = out.large_streak_min = auto_streak_min;
        // Without reports nobody would notice that it does not pay.
        if (large != nullptr && ring->features().zero_copy_report)
          out.zero_copy = net::StreamContext::ZeroCopy::while_useful;
        break;
      case config::BodyMover::copy:
      case config::BodyMover::large:
        out.bundles = false;
        break;
      case config::BodyMover::zero_copy:
        out.bundles = false;
        out.zero_copy = net::StreamContext::ZeroCopy::always;
        break;
      case config::BodyMover::bundle:
        break;
      case config::BodyMover::splice:
        out.splice_bytes_min = 1;
        break;
    }
    return out;
  }

  static upstream::PoolsOptions pools_options(const WorkerOptions& with,
                                              const config::Snapshot& snapshot) {
    return {.ring_index = with.index,
            .rings = with.rings,
            .peers = with.rings > 1 ? with.peers : nullptr,
            .sessions_max = sessions_max(with.connections_max),
            .streams_max = exchanges_max(with.connections_max),
            .limits = {.line_bytes_max = snapshot.limits.request_line_bytes_max,
                       .head_bytes_max = snapshot.limits.header_bytes_max,
                       .fields_max = snapshot.limits.header_count_max},
            .window_bytes = std::clamp(snapshot.limits.buffered_bytes_max, h2_window_bytes_min,
                                       h2_window_bytes_max)};
  }

  static filter::RequestIds make_ids(net::SysPort& sys) {
    std::uint64_t seeds[2];
    sys.random_bytes(seeds, sizeof seeds);
    // Without the one the ids of a simulated run are others, and so is all of it.
    return filter::RequestIds(seeds[0] | 1, seeds[1]);
  }

  void use(RuntimeRef next_runtime) {
    auto next = std::make_unique<RingRuntime>();
    const config::Snapshot& snapshot = *next_runtime->snapshot;
    if (next_runtime->material != nullptr)
      next->tls = next_runtime->material->contexts(next_runtime->tls[options.index], channels);
    next->table = pools.make_table(snapshot, *next_runtime->directory, next->tls.get());
    next->runtime = std::move(next_runtime);
    if (current != nullptr) {
      current->current = false;
      if (current->exchanges != 0) retired.push_back(std::move(current));
    }
    current = std::move(next);
    context.runtime = current.get();
  }

  void on_message(const ring::Message& message) override {
    switch (message.kind) {
      case message_drain:
        return drain();
      case message_stop:
        return stop();
      case message_swap: {
        std::unique_ptr<RuntimeRef> runtime(static_cast<RuntimeRef*>(message.object));
        return use(std::move(*runtime));
      }
      case message_report:
        return options.logger.log(base::LogLevel::info, "holdings", describe(holdings()));
      default:
        pools.on_message(message);
    }
  }

  void drain() {
    if (context.draining) return;
    context.draining = true;
    for (auto& acceptor : acceptors)
      acceptor->close();
    client_list.for_each([](H1Client& client) { client.drain(drain_grace_ms); });
    pools.close_idle();
    base::Millis limit = current->snapshot().timeouts.drain_ms;
    ring->timers().arm(drain_timer, limit == 0 ? 1 : limit);
  }

  static void drain_over(void* self) { static_cast<Parts*>(self)->stop(); }

  void stop() {
    drain();
    ring->timers().disarm(drain_timer);
    stopping = true;
    client_list.for_each([](H1Client& client) { client.shut_down(); });
  }

  bool all_closed() const {
    bool listening = std::any_of(acceptors.begin(), acceptors.end(),
                                 [](const auto& acceptor) { return !acceptor->closed(); });
    return context.draining && !listening && clients.in_use() == 0 && exchanges.in_use() == 0 &&
           pools.idle();
  }

  // Ends the mailbox too once nothing else is left.
  void advance_end() {
    if (!all_closed() || mailbox_closing) return;
    mailbox_closing = true;
    ring->timers().disarm(drain_timer);
    if (options.peers != nullptr && options.rings > 1) options.peers->leave(options.index);
    mailbox->close();
  }

  static std::uint32_t leased(const std::unique_ptr<ring::BufferGroup>& group) {
    return group == nullptr ? 0 : group->leased() + group->moved_out();
  }

  Holdings holdings() const {
    auto narrow = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
    return {.client_connections = narrow(clients.in_use()),
            .exchanges = narrow(exchanges.in_use()),
            .upstream_connections = narrow(pools.sessions()),
            .leases = leased(buffers) + leased(large) + leased(opened),
            .arena_chunks = narrow(chunks.in_use()),
            .slices = narrow(slices.in_use()),
            .pipes = pipes.in_use(),
            .operations = narrow(ring->in_flight()),
            .owners = ring->attached()};
  }

  std::string describe(const Holdings& held) const {
    const std::pair<std::string_view, std::uint32_t> all[] = {
        {"ring", options.index},         {"clients", held.client_connections},
        {"exchanges", held.exchanges},   {"servers", held.upstream_connections},
        {"leases", held.leases},         {"chunks", held.arena_chunks},
        {"slices", held.slices},         {"pipes", held.pipes},
        {"operations", held.operations},
    };
    std::string text;
    for (const auto& [name, count] : all) {
      if (!text.empty()) text += ' ';
      text.append(name).append("=").append(std::to_string(count));
    }
    return text;
  }

  // The mailbox stays attached until it is destroyed; a wake-up of another ring may be in flight
  // still.
  bool finished() const {
    return mailbox_closing && mailbox->in_flight() == 0 && ring->attached() == 1;
  }

  WorkerOptions options;
  WorkerCounters counters;
  std::unique_ptr<ring::Ring> ring;
  std::unique_ptr<ring::BufferGroup> buffers;
  std::unique_ptr<ring::BufferGroup> large;   // null: the mover does without
  std::unique_ptr<ring::BufferGroup> opened;  // null: nothing speaks TLS
  base::ChunkPool chunks;
  net::SlicePool slices;
  net::PipePool pipes;
  net::StreamContext streams;
  tls::Channels channels;
  net::RecordBlocks blocks;
  upstream::Pools pools;
  filter::RequestIds ids;
  base::Slab<H1Client> clients;
  base::Slab<Exchange> exchanges;
  http::H2Shared h2;
  base::Slab<H2Client> h2_clients;
  base::Slab<H2ClientStream> h2_streams;
  net::FrameBlocks h2_blocks;
  base::IntrusiveList<H1Client, H1Client> client_list;
  base::Timer drain_timer;
  std::vector<std::unique_ptr<RingRuntime>> retired;
  std::unique_ptr<RingRuntime> current;
  Context context;
  std::vector<std::unique_ptr<Acceptor>> acceptors;
  std::unique_ptr<ring::Mailbox> mailbox;
  bool stopping = false;
  bool mailbox_closing = false;
};

void Context::exchange_ended(RingRuntime& on) {
  if (--on.exchanges != 0 || on.current) return;
  std::erase_if(*retired, [&on](const auto& old) { return old.get() == &on; });
}

base::Result<std::unique_ptr<Worker>> Worker::create(
    const WorkerOptions& options, RuntimeRef runtime,
    const std::vector<net::BoundListener>& listeners) {
  const config::Server& server = runtime->snapshot->server;
  auto ring = ring::Ring::open(options.kernel, {.entries = server.ring_entries,
                                                .completion_entries = server.ring_entries * 4,
                                                .owners_max = owners_max(options.connections_max),
                                                .batch_wait = server.batch_wait});
  if (!ring) return std::unexpected(ring.error());
  auto buffers = ring::BufferGroup::create(**ring, 0, server.buffers, server.buffer_bytes, false);
  if (!buffers) return std::unexpected(buffers.error());
  base::Result<std::unique_ptr<ring::BufferGroup>> large;
  if (wants_large(server.body_mover, (*ring)->features())) {
    large = ring::BufferGroup::create(**ring, 1, server.large_buffers,
                                      large_buffer_bytes(runtime->snapshot->limits),
                                      server.body_mover == config::BodyMover::zero_copy);
    if (!large) return std::unexpected(large.error());
    (*large)->keep_no_reserve();
  }
  base::Result<std::unique_ptr<ring::BufferGroup>> opened;
  if (runtime->material != nullptr) {
    opened = ring::BufferGroup::create_private(**ring, server.buffers, server.buffer_bytes);
    if (!opened) return std::unexpected(opened.error());
  }
  auto parts = std::make_unique<Parts>(options, std::move(*ring), std::move(*buffers),
                                       std::move(*large), std::move(*opened), std::move(runtime));
  auto mailbox = ring::Mailbox::create(*parts->ring, *parts);
  if (!mailbox) return std::unexpected(mailbox.error());
  parts->mailbox = std::move(*mailbox);
  if (options.peers != nullptr && options.rings > 1) {
    options.peers->join(options.index, *parts->mailbox);
  }
  for (const net::BoundListener& listener : listeners) {
    parts->acceptors.push_back(std::make_unique<Acceptor>(
        parts->context, listener.listen, listener.descriptors[options.index],
        server.batch_wait ? options.accept_fast : 0));
    parts->acceptors.back()->start();
  }
  return std::unique_ptr<Worker>(new Worker(std::move(parts)));
}

Worker::Worker(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Worker::~Worker() = default;

unsigned Worker::run_once(base::Millis max_wait_ms) {
  unsigned handled = parts_->ring->run_once(max_wait_ms);
  if (parts_->context.draining) parts_->advance_end();
  return handled;
}

void Worker::run() {
  while (!finished())
    run_once();
  parts_->options.logger.log(base::LogLevel::debug, "holdings", parts_->describe(holdings()));
}

namespace {

// A request of the control thread must arrive: a full mailbox empties within a turn of its ring.
void post_surely(ring::Mailbox& mailbox, const ring::Message& message) {
  while (!mailbox.post(nullptr, message)) {
  }
}

}  // namespace

void Worker::request_drain() {
  post_surely(*parts_->mailbox, {.kind = message_drain});
}
void Worker::request_stop() {
  post_surely(*parts_->mailbox, {.kind = message_stop});
}
void Worker::request_swap(RuntimeRef runtime) {
  post_surely(*parts_->mailbox,
              {.kind = message_swap, .object = new RuntimeRef(std::move(runtime))});
}

void Worker::request_report() {
  parts_->mailbox->post(nullptr, {.kind = message_report});
}

bool Worker::finished() const {
  return parts_->finished();
}
ring::Ring& Worker::ring() {
  return *parts_->ring;
}
const WorkerCounters& Worker::counters() const {
  return parts_->counters;
}
const upstream::PoolCounters& Worker::pool_counters() const {
  return parts_->pools.counters();
}
const tls::Counters& Worker::tls_counters() const {
  return parts_->channels.counters();
}

Worker::Holdings Worker::holdings() const {
  return parts_->holdings();
}

bool may_want_large(config::BodyMover mover) {
  using enum config::BodyMover;
  return mover == automatic || mover == large || mover == zero_copy;
}

bool speaks_tls(const config::Snapshot& snapshot) {
  auto secure = [](const config::UpstreamServer& server) { return server.tls; };
  return std::ranges::any_of(snapshot.listens,
                             [](const config::Listen& listen) { return listen.tls.has_value(); }) ||
         std::ranges::any_of(snapshot.upstreams, [&](const config::Upstream& upstream) {
           return std::ranges::any_of(upstream.servers, secure);
         });
}

// Measured, 256 KiB moves bodies as cheaply as 1 MiB does; far less does not.
std::uint32_t large_buffer_bytes(const config::Limits& limits) {
  return std::clamp(limits.buffered_bytes_max, 64U * 1024, 1024U * 1024);
}

// Few clients move large bodies at the same time; beyond this, bodies are copied.
std::uint32_t pipes_max(std::uint32_t connections_max) {
  return std::clamp(connections_max / 8, 1U, 1024U);
}

std::vector<SizingTerm> sizing(const config::Snapshot& snapshot, std::uint32_t connections_max) {
  std::uint64_t sessions = sessions_max(connections_max);
  std::vector<SizingTerm> terms = {
      {"receive buffers", snapshot.server.buffers, snapshot.server.buffer_bytes},
      // Two directions; one buffer's bytes may wait, and one more is on its way by then.
      {"waiting bodies beside the buffers",
       std::min<std::uint64_t>(std::uint64_t{connections_max} * 4,
                               ring::BufferGroup::moved_out_max(snapshot.server.buffers)),
       snapshot.server.buffer_bytes},
      {"submission queue entries", snapshot.server.ring_entries, sizeof(io_uring_sqe)},
      {"completion queue entries", std::uint64_t{snapshot.server.ring_entries} * 4,
       sizeof(io_uring_cqe)},
      {"client connections", connections_max, sizeof(H1Client)},
      {"exchanges in progress", exchanges_max(connections_max),
       sizeof(Exchange) + base::ChunkPool::chunk_bytes},
      {"server connections", sessions, upstream::Pools::session_bytes()},
      {"pieces waiting to be sent", slices_max(connections_max), sizeof(net::Slice)},
  };
  if (std::ranges::any_of(snapshot.upstreams, [](const config::Upstream& upstream) {
        return upstream.protocol != config::UpstreamProtocol::http1;
      })) {
    terms.push_back({"requests to HTTP/2 servers", exchanges_max(connections_max),
                     upstream::Pools::stream_bytes()});
  }
  if (may_want_large(snapshot.server.body_mover)) {
    terms.push_back({"large receive buffers", snapshot.server.large_buffers,
                     large_buffer_bytes(snapshot.limits)});
  }
  if (speaks_tls(snapshot)) {
    terms.push_back(
        {"buffers for what TLS opened", snapshot.server.buffers, snapshot.server.buffer_bytes});
    terms.push_back({"TLS connections", connections_max + sessions, tls_connection_bytes});
    terms.push_back(
        {"TLS records being sent", connections_max + sessions, net::RecordBlock::bytes_max});
  }
  if (snapshot.limits.connections_per_address_max != 0) {
    terms.push_back({"client addresses", connections_max, AddressTable::bytes_each_max});
  }
  return terms;
}

}  // namespace ringside::proxy
