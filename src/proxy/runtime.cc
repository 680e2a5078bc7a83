#include "ringside/proxy/worker.h"

namespace ringside::proxy {
Runtime::Runtime(config::SnapshotRef snapshot_ref, unsigned rings, const Runtime* previous,
                 std::shared_ptr<const tls::Material> with)
    : snapshot(std::move(snapshot_ref)),
      router(snapshot),
      trusted(snapshot->forwarding.trusted_proxies),
      directory(std::make_shared<upstream::Directory>(
          *snapshot, rings, previous == nullptr ? nullptr : previous->directory.get())),
      material(std::move(with)) {
  for (unsigned ring = 0; material != nullptr && ring < rings; ++ring) {
    const bool had = previous != nullptr && ring < previous->tls.size();
    tls.push_back(material->make(*snapshot, had ? &previous->tls[ring] : nullptr,
                                 had && previous->snapshot == snapshot));
  }
}

}  // namespace ringside::proxy
