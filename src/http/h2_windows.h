// How far the windows of uploads are to be open.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace ringside::http::detail {

// A window holds an upload up that brings it all in one round trip (RFC 9113 §5.2.1): what comes
// between a PING and its answer says so. Then it is doubled, so that it comes to between two and
// four times what the path holds. Pure: who has it sends the PINGs.
class H2Windows {
 public:
  // Bytes: of one stream's window at first, and at most.
  H2Windows(std::uint32_t first, std::uint32_t most)
      : first_(first), most_(std::max(first, most)), window_(first) {}

  std::uint32_t window() const { return window_; }

  // So much of bodies came. True: a PING is to be sent.
  bool received(std::size_t bytes) {
    received_ += bytes;
    if (measuring_ || window_ == most_ || received_ < patience_) return false;
    received_ = 0;
    measuring_ = true;
    return true;
  }

  // The answer came. The window that is wanted: as it was, or wider.
  std::uint32_t answered() {
    if (!measuring_) return window_;
    measuring_ = false;
    const bool held_up = received_ >= window_ / 2;
    received_ = 0;
    // Who is not held up is asked less and less often.
    patience_ = held_up ? 2 * std::uint64_t{window_}
                        : std::min(2 * patience_, patience_windows_max * window_);
    return held_up ? std::min(most_, 2 * window_) : window_;
  }

  // What came of it.
  void set(std::uint32_t window) { window_ = window; }
  void begin_anew() {
    window_ = first_;
    patience_ = first_;
  }

 private:
  static constexpr std::uint64_t patience_windows_max = 64;

  std::uint32_t first_;
  std::uint32_t most_;
  std::uint32_t window_;
  bool measuring_ = false;
  std::uint64_t received_ = 0;
  std::uint64_t patience_ = first_;  // bytes before the next PING
};

}  // namespace ringside::http::detail
