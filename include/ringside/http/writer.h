// Writes HTTP/1 heads and chunk framing into an arena.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "ringside/base/arena.h"
#include "ringside/http/message.h"

namespace ringside::http {

// Builds one head as contiguous bytes. Start with a good guess of the size: growing copies.
// When memory runs out everything after is ignored and `finish` returns a view with null data().
// Names, values, targets and reasons are written as they are: they must have come from a parser, or
// from a place that checked them, so that none holds CR, LF or NUL.
class HeadWriter {
 public:
  HeadWriter(base::Arena& arena, std::size_t bytes_hint);
  // RFC 9112 §3: "METHOD target HTTP/1.1".
  void request_line(std::string_view method, std::string_view target);
  // RFC 9112 §4: "HTTP/1.1 status reason". An empty reason is replaced by the standard one.
  void status_line(std::uint16_t status, std::string_view reason);
  void field(std::string_view name, std::string_view value) {
    if (!room(name.size() + 2 + value.size() + 2)) return;
    put(name);
    put(": ");
    put(value);
    put("\r\n");
  }
  void field(std::string_view name, std::uint64_t value);
  // For values made of parts: begin_field, any number of append, end_field.
  void begin_field(std::string_view name) {
    if (!room(name.size() + 2)) return;
    put(name);
    put(": ");
  }
  void append(std::string_view text) {
    if (room(text.size())) put(text);
  }
  void append(std::uint64_t number);
  void end_field() { append("\r\n"); }
  // Adds the empty line, and gives back what was not needed: nothing is written after. The view is
  // valid as long as the arena.
  std::string_view finish();

 private:
  // After a failed allocation all three pointers are null for good: no later call finds room.
  bool room(std::size_t bytes) {
    return static_cast<std::size_t>(end_ - at_) >= bytes && at_ != nullptr ? true : grow(bytes);
  }
  bool grow(std::size_t bytes);
  // Where there is room.
  void put(std::string_view text) {
    if (!text.empty()) std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
  }
  base::Arena* arena_;
  char* begin_ = nullptr;
  char* at_ = nullptr;
  char* end_ = nullptr;
};

// "SIZE CRLF" of a chunk (lower-case hex), into `out` of at least 18 bytes. Returns the length.
std::size_t write_chunk_size(std::uint64_t bytes, char* out);

// What stands before a chunk's data: the end of the chunk before it, unless it is the first, and
// its size line.
class ChunkLine {
 public:
  ChunkLine(std::uint64_t bytes, bool first)
      : skip_(first ? 2 : 0), size_(2 + write_chunk_size(bytes, line_ + 2)) {}
  // At most 20 bytes; as long as this lives.
  std::string_view text() const { return {line_ + skip_, size_ - skip_}; }

 private:
  char line_[2 + 18] = {'\r', '\n'};
  std::size_t skip_;
  std::size_t size_;
};

}  // namespace ringside::http
