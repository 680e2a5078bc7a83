// Streams that a client gave a priority before it opened them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace ringside::http::detail {

// nghttp2 keeps what a PRIORITY_UPDATE says of a stream to come (RFC 9218 §7.1), and does not tell
// that it does. Remembers the last of them.
class H2EarlyPriorities {
 public:
  void note(std::int32_t id) { ids_[next_++ % ids_.size()] = id; }
  bool has(std::int32_t id) const { return std::find(ids_.begin(), ids_.end(), id) != ids_.end(); }

 private:
  std::array<std::int32_t, 16> ids_ = {};
  std::size_t next_ = 0;
};

}  // namespace ringside::http::detail
