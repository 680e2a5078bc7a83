// Where log lines go: a file, or standard error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace ringside::control {

// Collects whole lines and writes them in batches, one write(2) each. Never waits: what the other
// end does not take now (a full pipe, a full disk) stays for the next flush. Not thread-safe; the
// control thread owns it.
class LogOutput {
 public:
  // While this many bytes wait, has_room() is false and lines should stay in their queues.
  static constexpr std::size_t pending_bytes_soft_max = 1 << 20;

  // An empty `path` is standard error. A file is created with mode 0640 and appended to. The error
  // is an errno.
  static std::expected<std::unique_ptr<LogOutput>, int> open(std::string path);
  ~LogOutput();
  LogOutput(const LogOutput&) = delete;
  LogOutput& operator=(const LogOutput&) = delete;

  // Append whole lines here, each with its '\n'.
  std::string& lines() { return pending_; }
  bool has_room() const { return pending_.size() - written_ < pending_bytes_soft_max; }
  bool empty() const { return pending_.size() == written_; }

  // 0; EAGAIN: the other end takes no more at the moment; or the errno of a failed write, after
  // which the lines are kept and tried again with the next flush, except when the other end is gone
  // for good (EPIPE, EBADF): then they are thrown away.
  int flush();

  // A file: opens its path again (after a rotation moved it away). On an error, which is returned,
  // the old one stays in use.
  int reopen();

  // For poll(2), to wait until flush() can go on.
  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }
  std::string name() const { return path_.empty() ? "standard error" : path_; }

 private:
  enum class Kind : std::uint8_t { plain, socket, in_pieces };

  explicit LogOutput(std::string path) : path_(std::move(path)) {}
  int attach_standard_error();
  long write_some(std::string_view bytes) const;
  void drop_torn_line();
  void compact();

  std::string path_;
  int descriptor_ = -1;
  Kind kind_ = Kind::plain;
  std::string pending_;
  std::size_t written_ = 0;  // of pending_
};

}  // namespace ringside::control
