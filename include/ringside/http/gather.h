// Feeds a parser that wants contiguous bytes from input that comes in pieces.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "ringside/base/arena.h"
#include "ringside/http/parser.h"

namespace ringside::http {

// A head that lies whole in one piece is parsed there, without a copy; one that came in several is
// gathered in the arena. Reusable for the next head after `done`.
class Gather {
 public:
  struct Fed {
    ParseState state;
    std::size_t used;   // bytes of the piece that are taken (all of them unless `done`)
    const char* bytes;  // where the head lies (valid after `done`)
    bool out_of_memory;
  };

  template <typename Parser>
  Fed feed(Parser& parser, base::Arena& arena, std::string_view piece) {
    if (size_ == 0) {
      ParseState state = parser.parse(piece);
      if (state == ParseState::done) return {state, parser.consumed(), piece.data(), false};
      if (state == ParseState::failed) return {state, piece.size(), nullptr, false};
    }
    std::size_t before = size_;
    if (!append(arena, piece)) return {ParseState::failed, piece.size(), nullptr, true};
    ParseState state = parser.parse({bytes_, size_});
    if (state != ParseState::done) return {state, piece.size(), nullptr, false};
    // The head stays where it lies; a later one is gathered elsewhere.
    const char* bytes = bytes_;
    reset();
    return {state, parser.consumed() - before, bytes, false};
  }
  // Part of a head is here.
  bool started() const { return size_ != 0; }
  // Forgets everything, and its arena.
  void reset() { *this = Gather(); }

 private:
  bool append(base::Arena& arena, std::string_view piece) {
    if (size_ + piece.size() > room_) {
      std::size_t room = std::max<std::size_t>(2 * (size_ + piece.size()), 1024);
      auto* larger = static_cast<char*>(arena.allocate(room, 1));
      if (larger == nullptr) return false;
      if (size_ != 0) std::memcpy(larger, bytes_, size_);
      bytes_ = larger;
      room_ = static_cast<std::uint32_t>(room);
    }
    std::memcpy(bytes_ + size_, piece.data(), piece.size());
    size_ += static_cast<std::uint32_t>(piece.size());
    return true;
  }

  char* bytes_ = nullptr;
  std::uint32_t size_ = 0;
  std::uint32_t room_ = 0;
};

}  // namespace ringside::http
