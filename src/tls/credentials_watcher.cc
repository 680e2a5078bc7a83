#include "ringside/tls/credentials_watcher.h"

#include <utility>

namespace ringside::tls {

CredentialsWatcher::CredentialsWatcher(config::Tls config,
                                       std::shared_ptr<const Credentials> loaded)
    : config_(std::move(config)),
      current_(std::move(loaded)),
      watched_(files_of(config_)),
      loaded_once_(current_ != nullptr) {}

CredentialsWatcher::Report CredentialsWatcher::poll(UnixSeconds now) {
  // Looked at before loading, so that a change during it is seen the next time.
  if (!watched_.changed() && loaded_once_) return {};
  loaded_once_ = true;
  LoadedCredentials loaded = load_credentials(config_, now);
  if (!loaded.credentials) {
    return {Outcome::refused, std::move(loaded.errors), std::move(loaded.warnings)};
  }
  current_ = std::move(loaded.credentials);
  return {Outcome::replaced, {}, std::move(loaded.warnings)};
}

}  // namespace ringside::tls
