#include "ringside/proxy/worker.h"

namespace ringside::proxy {

Runtime::Runtime(config::SnapshotRef snapshot_ref, unsigned rings, const Runtime* previous,
                 std::shared_ptr<const tls::Material> with)
    : snapshot(std::move(snapshot_ref)),
      router(snapshot),
      trusted(snapshot->forwarding.trusted_proxies),
      directory(std::make_shared<upstream::Directory>(
          *snapshot, rings, previous == nullptr ? nullptr : previous->directory.get())),
      material(std::move(with)) {}

}  // namespace ringside::proxy
