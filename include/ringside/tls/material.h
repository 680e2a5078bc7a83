// What all rings share of a configuration's TLS.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ringside/config/snapshot.h"
#include "ringside/tls/client_context.h"
#include "ringside/tls/credentials.h"
#include "ringside/tls/kernel_support.h"
#include "ringside/tls/layer.h"
#include "ringside/tls/server_context.h"
#include "ringside/tls/ticket_keys.h"

namespace ringside::tls {

class Channels;

// A pointer is null where OpenSSL failed for lack of memory (the rest was tried before), where a
// listener is in clear text, or where no server of an upstream has https://.
using ServerContexts = std::vector<std::shared_ptr<ServerContext>>;  // as Snapshot::listens
using ClientContexts = std::vector<std::shared_ptr<ClientContext>>;  // as Snapshot::upstreams

// Of one ring; used by no other.
struct ContextSet {
  ServerContexts servers;
  ClientContexts clients;
};

// From it contexts are made for each ring. Immutable but for the ticket keys, which change
// themselves. Owner: std::shared_ptr<const Material>.
struct Material {
  struct Entry {
    std::shared_ptr<const Credentials> credentials;
    std::shared_ptr<TicketKeys> tickets;   // null: sessions are not resumed
    std::shared_ptr<ReplayGuard> replays;  // null: no early data
  };
  KernelSupport kernel;
  std::vector<Entry> entries;                            // as Snapshot::tls
  std::vector<std::shared_ptr<const TrustStore>> trust;  // as Snapshot::upstreams; null: unused

  Material() = default;
  virtual ~Material() = default;
  Material(const Material&) = default;
  Material& operator=(const Material&) = default;
  Material(Material&&) = default;
  Material& operator=(Material&&) = default;
  // What one ring speaks TLS with. Takes milliseconds and reads the files of upstreams: never on a
  // ring. Whatever `before` (may be null; of the same ring, with the `same` configuration or
  // another) has that is still good goes on being used.
  virtual ContextSet make(const config::Snapshot& snapshot, const ContextSet* before,
                          bool same) const;
  // The same as sessions see it, on the ring's thread. `channels` outlives what is made. The
  // simulator makes others.
  virtual std::unique_ptr<Contexts> contexts(const ContextSet& set, Channels& channels) const;
};

struct LoadedMaterial {
  std::shared_ptr<const Material> material;  // null when there are errors
  std::vector<std::string> errors;           // each names its section and file
  std::vector<std::string> warnings;
};

// Reads and tries everything, contexts included, so that a ring does not fail with it. Blocks on
// the file system. `now_ms` is of the clock that TicketKeys::rotate gets.
// `kernel`: as probe_kernel_tls() found it. An error where ktls = "require" asks for more.
LoadedMaterial load_material(const config::Snapshot& snapshot, UnixSeconds now,
                             std::uint64_t now_ms, const KernelSupport& kernel);

// The same with other credentials for one entry: `entry` is an index into Snapshot::tls. Its
// tickets stay valid unless the rules about client certificates changed.
std::shared_ptr<const Material> with_credentials(const Material& material, std::size_t entry,
                                                 std::shared_ptr<const Credentials> credentials);

// One for each listener that speaks TLS; those of the same entry and protocols share theirs, with
// `before` too: what the same ring has had until now.
ServerContexts server_contexts(const Material& material, const std::vector<config::Listen>& listens,
                               const ServerContexts& before = {});
ClientContexts client_contexts(const Material& material, const config::Snapshot& snapshot);

}  // namespace ringside::tls
