#include "ringside/tls/credentials_watcher.h"

#include <sys/stat.h>

#include <utility>

namespace ringside::tls {

CredentialsWatcher::CredentialsWatcher(config::Tls config,
                                       std::shared_ptr<const Credentials> loaded)
    : config_(std::move(config)), current_(std::move(loaded)) {
  if (current_) seen_ = stamps();
}

std::vector<CredentialsWatcher::Stamp> CredentialsWatcher::stamps() const {
  std::vector<Stamp> out;
  for (const std::string& file : files()) {
    struct stat status{};
    Stamp stamp;
    if (::stat(file.c_str(), &status) == 0) {
      stamp = {status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec,
               status.st_mtim.tv_nsec};
    }
    out.push_back(stamp);
  }
  return out;
}

CredentialsWatcher::Report CredentialsWatcher::poll(UnixSeconds now) {
  // Taken before loading, so that a change during it is seen the next time.
  std::vector<Stamp> fresh = stamps();
  if (fresh == seen_) return {};
  seen_ = std::move(fresh);
  LoadedCredentials loaded = load_credentials(config_, now);
  if (!loaded.credentials) {
    return {Outcome::refused, std::move(loaded.errors), std::move(loaded.warnings)};
  }
  current_ = std::move(loaded.credentials);
  return {Outcome::replaced, {}, std::move(loaded.warnings)};
}

}  // namespace ringside::tls
