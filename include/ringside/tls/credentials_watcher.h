// Loads the files of an entry again when they change.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ringside/tls/credentials.h"
#include "ringside/tls/file_watcher.h"

namespace ringside::tls {

// Owner and thread: the control thread. It may be polled on a timer, or whenever inotify reports
// one of `files`.
class CredentialsWatcher {
 public:
  enum class Outcome : std::uint8_t {
    unchanged,
    replaced,  // `current` is a new set
    refused,   // a file changed and the new set is not good: `current` is still the old one
  };
  struct Report {
    Outcome outcome = Outcome::unchanged;
    std::vector<std::string> errors;  // of `refused`; told once for each change of the files
    std::vector<std::string> warnings;
  };

  // `loaded` was made by load_credentials. A change between its loading and this call is noticed
  // only with the next one, so make the watcher first where that matters: `loaded` may be null, and
  // the first `poll` loads then.
  CredentialsWatcher(config::Tls config, std::shared_ptr<const Credentials> loaded);

  // Loads everything when a file has changed since the last call. Blocks on the file system.
  Report poll(UnixSeconds now);

  // The newest set that was good; null only when there never was one.
  const std::shared_ptr<const Credentials>& current() const { return current_; }
  const std::vector<std::string>& files() const { return watched_.files(); }

 private:
  config::Tls config_;
  std::shared_ptr<const Credentials> current_;
  FileWatcher watched_;
  bool loaded_once_;
};

}  // namespace ringside::tls
