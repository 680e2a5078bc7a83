#include "log_output.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace ringside::control {
namespace {

constexpr std::size_t keep_bytes_max = 256 * 1024;  // of buffer, when nothing waits

int open_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0640);
  return fd >= 0 ? fd : -errno;
}

bool takes_bytes_now(int fd) {
  pollfd entry{.fd = fd, .events = POLLOUT, .revents = 0};
  return ::poll(&entry, 1, 0) == 1;
}

}  // namespace

std::expected<std::unique_ptr<LogOutput>, int> LogOutput::open(std::string path) {
  std::unique_ptr<LogOutput> output(new LogOutput(std::move(path)));
  if (output->path_.empty()) {
    if (const int error = output->attach_standard_error()) return std::unexpected(error);
    return output;
  }
  const int fd = open_file(output->path_);
  if (fd < 0) return std::unexpected(-fd);
  output->descriptor_ = fd;
  return output;
}

// Standard error is shared with other processes, so its own flags must not be touched: a pipe or a
// terminal is opened a second time, which gives an independent non-blocking view of it. Where that
// is forbidden (the other end belongs to another user), it is written in pieces that poll(2) has
// promised room for. A socket can be told per call.
int LogOutput::attach_standard_error() {
  struct stat status;
  if (::fstat(STDERR_FILENO, &status) != 0) return errno;
  if (S_ISSOCK(status.st_mode)) kind_ = Kind::socket;
  if (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode)) {
    descriptor_ =
        ::open("/proc/self/fd/2", O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor_ >= 0) return 0;
    kind_ = Kind::in_pieces;
  }
  descriptor_ = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  return descriptor_ >= 0 ? 0 : errno;
}

LogOutput::~LogOutput() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

long LogOutput::write_some(std::string_view bytes) const {
  if (kind_ == Kind::socket) {
    return ::send(descriptor_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  if (kind_ == Kind::in_pieces) {
    if (!takes_bytes_now(descriptor_)) {
      errno = EAGAIN;
      return -1;
    }
    bytes = bytes.substr(0, PIPE_BUF);
  }
  return ::write(descriptor_, bytes.data(), bytes.size());
}

int LogOutput::flush() {
  int error = 0;
  while (!empty()) {
    const long count = write_some(std::string_view(pending_).substr(written_));
    if (count > 0) {
      written_ += static_cast<std::size_t>(count);
      continue;
    }
    // Nothing written and no error: as good as a full pipe.
    error = count < 0 ? errno : EAGAIN;
    if (error == EINTR) {
      error = 0;
      continue;
    }
    if (error == EPIPE || error == EBADF || error == ECONNRESET) written_ = pending_.size();
    break;
  }
  compact();
  return error;
}

void LogOutput::compact() {
  if (empty()) {
    pending_.clear();
    written_ = 0;
    if (pending_.capacity() > keep_bytes_max) pending_.shrink_to_fit();
  } else if (written_ > pending_.size() / 2) {
    // The byte before is kept: drop_torn_line looks at it.
    pending_.erase(0, written_ - 1);
    written_ = 1;
  }
}

int LogOutput::reopen() {
  if (path_.empty()) return 0;
  const int fd = open_file(path_);
  if (fd < 0) return -fd;
  flush();
  drop_torn_line();
  ::close(std::exchange(descriptor_, fd));
  return 0;
}

// The first half of a line is in the old file; its second half must not begin the new one.
void LogOutput::drop_torn_line() {
  if (empty() || written_ == 0 || pending_[written_ - 1] == '\n') return;
  written_ = std::min(pending_.find('\n', written_), pending_.size() - 1) + 1;
  compact();
}

}  // namespace ringside::control
