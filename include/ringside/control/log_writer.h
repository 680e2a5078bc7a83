// The error log and the access log of a process, and the thread that writes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>

#include "ringside/base/logger.h"
#include "ringside/config/snapshot.h"
#include "ringside/proxy/access_record.h"

namespace ringside::control {

struct LogWriterOptions {
  config::Log log;
  unsigned rings = 1;
  std::size_t access_queue_bytes = 8 << 20;  // per ring; touched only as far as it fills
  std::size_t event_queue_places = 256;      // of 1 KiB
};

// Rings never write: they copy records and events into bounded lock-free queues. One thread, the
// owner, empties the queues with flush().
//
// Owner: the thread that called open(). It alone may call flush, reopen, finish, idle_for and
// destroy it, after all other users have ended. log() from the owner's thread writes at once, after
// everything that waited before it; from any other thread it goes by the queue.
class LogWriter final : public base::Logger {
 public:
  // Opens the files. The error is a sentence that names the file.
  static std::expected<std::unique_ptr<LogWriter>, std::string> open(
      const LogWriterOptions& options);
  ~LogWriter() override;

  // Any thread. "<time> <level> <event> <text>"; at most 960 bytes of text when it goes by the
  // queue.
  void log(base::LogLevel level, std::string_view event, std::string_view text) override;

  // The sink of one ring, for that ring's thread only; null when the access log is off.
  proxy::AccessSink* access(unsigned ring);

  // Formats and writes what is in the queues; never waits for the other end.
  void flush();

  // Poll this together with a timeout of wait_ms(); call flush() after either.
  int wake_descriptor() const;
  // How long the owner may wait for the wake descriptor: short while there is traffic, so that
  // lines go out in batches; long when the last flush found nothing, for then the first record
  // wakes it.
  int wait_ms() const;

  // Opens the files again, after a rotation.
  void reopen();

  // Flushes everything, for at most `timeout_ms` if the other end is slow. False: lines were lost.
  bool finish(unsigned timeout_ms);

 private:
  struct Parts;
  explicit LogWriter(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace ringside::control
