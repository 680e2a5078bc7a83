// From frame to frame in what a peer sends, before nghttp2 gets it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace ringside::http::detail {

// Walks over the frames of an HTTP/2 peer, over any split of the input.
class H2FrameWalk {
 public:
  // What a client sends before its first frame (RFC 9113 §3.4).
  static constexpr std::uint32_t preface_bytes = 24;
  // Passes over so many bytes first.
  explicit H2FrameWalk(std::uint32_t skip) : skip_(skip) {}

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
  // The frame, whose header is known, asks for an answer, or brings nothing that could be used.
  bool idle() const {
    switch (type()) {
      case type_data:
        return length() == 0 && (flags() & flag_end_stream) == 0;
      case type_headers:
        return false;
      case type_settings:
      case type_ping:
        return (flags() & flag_ack) == 0;
      default:
        return true;
    }
  }
  bool pushes() const { return type() == type_push_promise; }
  std::int32_t stream() const { return static_cast<std::int32_t>(number(5, 4) & id_mask); }

 private:
  static constexpr std::size_t header_bytes = 9;
  static constexpr std::size_t dependency_bytes = 4;
  static constexpr std::uint8_t type_data = 0;
  static constexpr std::uint8_t type_headers = 1;
  static constexpr std::uint8_t type_priority = 2;
  static constexpr std::uint8_t type_settings = 4;
  static constexpr std::uint8_t type_push_promise = 5;
  static constexpr std::uint8_t type_ping = 6;
  static constexpr std::uint8_t flag_end_stream = 1;
  static constexpr std::uint8_t flag_ack = 1;
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
  std::uint32_t skip_;
};

}  // namespace ringside::http::detail
