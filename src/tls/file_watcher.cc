#include "ringside/tls/file_watcher.h"

#include <sys/stat.h>

#include <utility>

namespace ringside::tls {

std::vector<FileWatcher::Stamp> FileWatcher::stamps() const {
  std::vector<Stamp> out;
  for (const std::string& file : files_) {
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

bool FileWatcher::changed() {
  std::vector<Stamp> fresh = stamps();
  if (fresh == seen_) return false;
  seen_ = std::move(fresh);
  return true;
}

}  // namespace ringside::tls
