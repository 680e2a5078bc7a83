// From frame to frame in what a client sends, before nghttp2 gets it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace ringside::http::detail {

// Walks over the frames of an HTTP/2 client, its preface included, over any split of the input.
class H2FrameWalk {
 public:
  struct Step {
    std::size_t bytes = 0;   // of the input, up to the end of the frame at most
    bool header = false;     // these complete the frame's header: type() and stream() are its
    bool malformed = false;  // a PRIORITY frame that nghttp2 would pass over
  };
  // `input` is not empty.
  Step next(std::string_view input) {
    Step step;
    if (skip_ == 0) {
      const std::size_t part = std::min(wanted_ - have_, input.size());
      std::memcpy(bytes_ + have_, input.data(), part);
      have_ += part;
      step.bytes = part;
      if (have_ == wanted_) complete(step);
    }
    const auto payload = std::min<std::size_t>(skip_, input.size() - step.bytes);
    skip_ -= static_cast<std::uint32_t>(payload);
    step.bytes += payload;
    return step;
  }
  std::uint32_t length() const { return number(0, 3); }
  std::uint8_t type() const { return bytes_[3]; }
  std::uint8_t flags() const { return bytes_[4]; }
  std::int32_t stream() const { return static_cast<std::int32_t>(number(5, 4) & id_mask); }

 private:
  static constexpr std::size_t header_bytes = 9;
  static constexpr std::size_t dependency_bytes = 4;
  static constexpr std::uint8_t type_priority = 2;
  static constexpr std::uint32_t priority_bytes = 5;
  static constexpr std::uint32_t id_mask = 0x7fff'ffff;

  std::uint32_t number(std::size_t at, std::size_t bytes) const {
    std::uint32_t out = 0;
    for (std::size_t i = 0; i < bytes; ++i)
      out = out << 8 | bytes_[at + i];
    return out;
  }

  // A header, or that of a PRIORITY frame with the stream that it names. RFC 9113 §5.3.1, §6.3: its
  // own is not 0, and does not depend on itself.
  void complete(Step& step) {
    if (have_ == header_bytes) {
      step.header = true;
      if (type() == type_priority && length() == priority_bytes) {
        step.malformed = stream() == 0;
        wanted_ = header_bytes + dependency_bytes;
        return;
      }
    } else {
      step.malformed = (number(header_bytes, dependency_bytes) & id_mask) == number(5, 4);
    }
    skip_ = length() - static_cast<std::uint32_t>(have_ - header_bytes);
    have_ = 0;
    wanted_ = header_bytes;
  }

  std::uint8_t bytes_[header_bytes + dependency_bytes] = {};
  std::size_t have_ = 0;
  std::size_t wanted_ = header_bytes;
  std::uint32_t skip_ = 24;  // the preface
};

}  // namespace ringside::http::detail
