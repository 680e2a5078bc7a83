// Tells when files have changed.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ringside::tls {

// Owner and thread: the control thread. It compares what stat says of each file, so a file that is
// replaced, written to, removed or comes back has changed.
class FileWatcher {
 public:
  // `files` as they are now are not a change.
  explicit FileWatcher(std::vector<std::string> files)
      : files_(std::move(files)), seen_(stamps()) {}

  // Whether any has changed since the last call. Ask before reading them, so that a change during
  // that is seen the next time. Blocks on the file system.
  bool changed();

  const std::vector<std::string>& files() const { return files_; }

 private:
  // All zero for a file that is not there.
  struct Stamp {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::int64_t size = 0;
    std::int64_t modified_s = 0;
    std::int64_t modified_ns = 0;
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  std::vector<Stamp> stamps() const;

  std::vector<std::string> files_;
  std::vector<Stamp> seen_;
};

}  // namespace ringside::tls
