// Finding the byte where a line or a token stops, many bytes at a time. The widest instructions
// that the processor has are chosen once, before main.
#pragma once

#include <cstddef>
#include <cstdint>

#include "byte_class.h"

namespace ringside::http::scan {

enum class Level : std::uint8_t { portable, sse42, avx2 };
inline constexpr Level all_levels[] = {Level::portable, Level::sse42, Level::avx2};

struct Kernels {
  std::size_t (*line_stop)(const char* data, std::size_t bytes);
  std::size_t (*class_stop)(const char* data, std::size_t bytes, const ByteClass& set);
};

// Whether this processor (and this build) can run `level`.
bool supported(Level level);
Level active_level();
// For tests: uses `level` from now on, for all threads. False, with nothing changed, when it is not
// supported. Call it only while no other thread parses.
bool force_level(Level level);

extern Kernels active;

// Index of the first byte that cannot stand inside a line of a head: a control other than HTAB, DEL
// included, so CR, LF and NUL too. `bytes` when there is none.
inline std::size_t line_stop(const char* data, std::size_t bytes) {
  return active.line_stop(data, bytes);
}

// Index of the first byte that is not in `set`; `bytes` when all are.
inline std::size_t class_stop(const char* data, std::size_t bytes, const ByteClass& set) {
  return active.class_stop(data, bytes, set);
}

}  // namespace ringside::http::scan
