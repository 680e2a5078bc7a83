// What a fuzzed server has said and was told on a connection of HTTP/2: its windows, and what no
// client may send it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "../unit/http/h2_peer.h"
#include "oracle.h"

namespace ringside::fuzz {

// Whole frames of a stream of bytes.
class H2FrameSplitter {
 public:
  template <typename Take>
  void feed(std::string_view bytes, Take take) {
    bytes_ += bytes;
    const auto frames = test::h2_split(bytes_);
    std::size_t used = 0;
    for (const test::H2Frame& frame : frames) {
      take(frame);
      used += 9 + frame.payload.size();
    }
    bytes_.erase(0, used);
  }
  bool between_frames() const { return bytes_.empty(); }

 private:
  std::string bytes_;
};

// One connection. Ends the process when the client does what it must not.
class H2ServerModel {
 public:
  // What the server sends. Call it before the client gets it.
  void said(std::string_view bytes) {
    said_.feed(bytes, [this](const test::H2Frame& frame) { take(frame); });
  }
  // What the client sends, whole frames.
  void told(std::string_view bytes) {
    if (preface_left_ != 0) {
      const std::size_t part = std::min(preface_left_, bytes.size());
      const std::size_t at = test::h2_preface.size() - preface_left_;
      require(bytes.substr(0, part) == test::h2_preface.substr(at, part), "the preface is sent");
      preface_left_ -= part;
      bytes.remove_prefix(part);
    }
    told_.feed(bytes, [this](const test::H2Frame& frame) { check(frame); });
  }
  bool between_frames() const { return told_.between_frames(); }
  // Streams that are open, with one that is opened now.
  void check_open(std::size_t streams) {
    keep(streams <= most(&Settings::streams), "as many streams are open as allowed");
  }
  // Everything that the client had to say was told.
  void judge() const {
    if (!over_) require(broken_ == nullptr, broken_);
  }

 private:
  static constexpr std::uint8_t ack = 1;
  enum : std::uint8_t {
    data = 0,
    headers = 1,
    reset = 3,
    settings = 4,
    push = 5,
    goaway = 7,
    window_update = 8,
  };
  struct Settings {
    std::uint32_t streams = ~0U;
    std::uint32_t window = 65'535;
    std::uint32_t frame_bytes = 16'384;
  };
  struct Stream {
    std::int64_t opened = 0;  // by WINDOW_UPDATE, less what was sent
    bool begun = false;
    bool ended = false;
    bool gone = false;  // reset by the client
  };
  static constexpr std::uint32_t id_mask = 0x7fff'ffff;

  // Against what the server has said. It may have ended the connection by a mistake before it said
  // that; then a GOAWAY follows.
  void keep(bool holds, const char* what) {
    if (!holds && broken_ == nullptr) broken_ = what;
  }
  void take(const test::H2Frame& frame) {
    const std::uint32_t id = frame.stream & id_mask;
    if (frame.type == settings && (frame.flags & ack) == 0) said_settings(frame);
    if (frame.type == window_update && frame.payload.size() == 4) {
      const std::uint32_t bytes = frame.number(0) & id_mask;
      (id == 0 ? opened_ : streams_[id].opened) += bytes;
    }
  }
  void said_settings(const test::H2Frame& frame) {
    Settings next = settings_.back();
    for (std::size_t at = 0; at + 6 <= frame.payload.size(); at += 6) {
      const std::uint32_t value = frame.number(at + 2);
      if (frame.payload[at] != 0) continue;
      if (frame.payload[at + 1] == 3) next.streams = value;
      if (frame.payload[at + 1] == 4) next.window = value;
      if (frame.payload[at + 1] == 5) next.frame_bytes = value;
    }
    settings_.push_back(next);
  }
  // Until the client has acknowledged the next, the former hold too (RFC 9113 §6.5.3).
  std::uint32_t most(std::uint32_t Settings::* what) const {
    return std::ranges::max(settings_, {}, what).*what;
  }

  void check(const test::H2Frame& frame) {
    require(!over_, "nothing follows the last GOAWAY");
    keep(frame.payload.size() <= most(&Settings::frame_bytes), "frames are as large as allowed");
    require((frame.stream & ~id_mask) == 0, "no bit is reserved");
    if (frame.stream == 0) return check_own(frame);
    require(frame.stream % 2 == 1, "streams of a client are odd");
    Stream& stream = streams_[frame.stream];
    require(!stream.gone, "nothing follows a reset");
    switch (frame.type) {
      case headers:
        require(!stream.ended, "no head behind the end");
        if (!std::exchange(stream.begun, true))
          require(frame.stream > std::exchange(last_, frame.stream), "streams are opened in order");
        break;
      case data:
        require(stream.begun && !stream.ended, "a body lies between head and end");
        check_window(stream, static_cast<std::int64_t>(frame.payload.size()));
        break;
      case reset:
        require(stream.begun, "only what has begun is reset");
        stream.gone = true;
        break;
      default:
        require(frame.type != settings && frame.type != push && frame.type != goaway,
                "a frame of a connection has stream 0");
        break;
    }
    const bool may_end = frame.type == headers || frame.type == data;
    if (may_end && (frame.flags & test::h2_end_stream) != 0) stream.ended = true;
  }
  void check_own(const test::H2Frame& frame) {
    require(frame.type != data && frame.type != headers && frame.type != reset,
            "a frame of a stream has one");
    if (frame.type == settings && (frame.flags & ack) != 0) {
      require(settings_.size() > 1, "only settings are acknowledged");
      settings_.pop_front();
    }
    over_ = frame.type == goaway && frame.number(4) != 0;
  }
  void check_window(Stream& stream, std::int64_t bytes) {
    if (bytes == 0) return;
    stream.opened -= bytes;
    opened_ -= bytes;
    keep(stream.opened + most(&Settings::window) >= 0, "a stream's window is kept");
    keep(opened_ >= 0, "the connection's window is kept");
  }

  H2FrameSplitter said_;
  H2FrameSplitter told_;
  std::map<std::uint32_t, Stream> streams_;
  std::size_t preface_left_ = test::h2_preface.size();
  std::int64_t opened_ = 65'535;
  std::deque<Settings> settings_{{}};  // the ones that hold, and those not acknowledged
  std::uint32_t last_ = 0;
  const char* broken_ = nullptr;
  bool over_ = false;
};

}  // namespace ringside::fuzz
