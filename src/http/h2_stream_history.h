// What became of a client's streams that are closed.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace ringside::http::detail {

// Remembers the last `ids` stream numbers that a client can have used. nghttp2 forgets a stream
// once it is closed, but what a frame for it means depends on who closed it (RFC 9113 §5.1).
class H2StreamHistory {
 public:
  enum class Fate : std::uint8_t {
    unknown,  // too long ago, or not yet
    skipped,  // never used, and too late for it now
    open,
    ended,  // by the client: nothing may follow
    reset,  // by us: what was under way may follow
  };

  void opened(std::int32_t id) {
    if (id <= last_) return;
    const std::int32_t first = std::max(last_ + 2, id - 2 * (ids - 1));
    for (std::int32_t skipped = first; skipped < id; skipped += 2)
      place(skipped) = Fate::skipped;
    place(id) = Fate::open;
    last_ = id;
  }
  // By us.
  void reset(std::int32_t id) {
    if (of(id) == Fate::open) note(id, Fate::reset);
  }
  // By the client's RST_STREAM, whatever was before.
  void ended(std::int32_t id) {
    if (of(id) != Fate::skipped) note(id, Fate::ended);
  }
  // A stream of which nothing follows in either direction.
  void closed(std::int32_t id) {
    if (of(id) == Fate::open) note(id, Fate::ended);
  }
  Fate of(std::int32_t id) const {
    return known(id) ? fates_[static_cast<std::size_t>(id / 2) % ids] : Fate::unknown;
  }

 private:
  static constexpr std::int32_t ids = 256;
  bool known(std::int32_t id) const { return id % 2 == 1 && id <= last_ && last_ - id < 2 * ids; }
  Fate& place(std::int32_t id) { return fates_[static_cast<std::size_t>(id / 2) % ids]; }
  void note(std::int32_t id, Fate fate) {
    if (known(id)) place(id) = fate;
  }

  std::array<Fate, ids> fates_{};
  std::int32_t last_ = -1;
};

}  // namespace ringside::http::detail
