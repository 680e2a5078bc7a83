#include "ringside/proxy/worker.h"

namespace ringside::proxy {
namespace {

Runtime::Tls make_tls(const tls::Material& material, const config::SnapshotRef& snapshot,
                      unsigned ring, const Runtime* previous) {
  if (previous == nullptr || ring >= previous->tls.size())
    return {tls::server_contexts(material), tls::client_contexts(material, *snapshot)};
  const Runtime::Tls& before = previous->tls[ring];
  return {
      tls::server_contexts(material, before.servers),
      snapshot == previous->snapshot ? before.clients : tls::client_contexts(material, *snapshot)};
}

}  // namespace

Runtime::Runtime(config::SnapshotRef snapshot_ref, unsigned rings, const Runtime* previous,
                 std::shared_ptr<const tls::Material> with)
    : snapshot(std::move(snapshot_ref)),
      router(snapshot),
      trusted(snapshot->forwarding.trusted_proxies),
      directory(std::make_shared<upstream::Directory>(
          *snapshot, rings, previous == nullptr ? nullptr : previous->directory.get())),
      material(std::move(with)) {
  for (unsigned ring = 0; material != nullptr && ring < rings; ++ring)
    tls.push_back(make_tls(*material, snapshot, ring, previous));
}

}  // namespace ringside::proxy
