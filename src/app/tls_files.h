// The TLS files that a configuration names: loaded at the start, and again when they change.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ringside/base/logger.h"
#include "ringside/config/snapshot.h"
#include "ringside/tls/credentials_watcher.h"
#include "ringside/tls/file_watcher.h"
#include "ringside/tls/material.h"

namespace ringside::app {

// Loads the certificates, keys and ticket keys of every [tls.NAME] and [upstream.NAME.tls], and
// says on stderr what is wrong with them. Null when some cannot be used.
std::shared_ptr<const tls::Material> load_tls_or_complain(const config::Snapshot& snapshot,
                                                          const tls::KernelSupport& kernel);

// "ktls: yes: AES-128-GCM ..." or "ktls: no: " and the reason.
std::string describe(const tls::KernelSupport& kernel);

// Owner and thread: the control thread.
class TlsFiles {
 public:
  // How often look() should be called.
  static constexpr unsigned interval_ms = 1'000;

  // `publish` is called with what the rings are to use from then on.
  TlsFiles(config::SnapshotRef snapshot, std::shared_ptr<const tls::Material> material,
           base::Logger& logger, std::function<void(std::shared_ptr<const tls::Material>)> publish);

  // Loads what has changed, ticket keys too, changes those whose time is over, and logs all that. A
  // file that is not good is complained about once, and what was loaded before stays in use.
  void look();

 private:
  void look_at_certificates(std::size_t entry);
  void look_at_tickets(std::size_t entry);
  void log(base::LogLevel level, std::size_t entry, std::string_view what);

  config::SnapshotRef snapshot_;
  std::shared_ptr<const tls::Material> material_;
  base::Logger& logger_;
  std::function<void(std::shared_ptr<const tls::Material>)> publish_;
  // As Snapshot::tls.
  std::vector<tls::CredentialsWatcher> watchers_;
  std::vector<tls::FileWatcher> ticket_files_;  // one that watches nothing: keys are made here
};

}  // namespace ringside::app
