// Where events go that an operator should read. Not the access log.
#pragma once

#include <cstdint>
#include <string_view>

namespace ringside::base {

enum class LogLevel : std::uint8_t { debug, info, warn, error };

// Thread-safe; never blocks a ring: when its buffer is full a line is dropped and counted.
// Lines of one `event` are limited in rate; how many were left out is said with the next one.
class Logger {
 public:
  virtual ~Logger() = default;
  // `event` is a short fixed word ("accept", "upstream", "config"); `text` a readable line, in
  // which control bytes are escaped on output.
  virtual void log(LogLevel level, std::string_view event, std::string_view text) = 0;
  bool enabled(LogLevel level) const { return level >= level_; }

 protected:
  LogLevel level_ = LogLevel::info;
};

}  // namespace ringside::base
