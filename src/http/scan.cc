#include "scan.h"

#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#define RINGSIDE_SCAN_X86 1
#else
#define RINGSIDE_SCAN_X86 0
#endif

namespace ringside::http::scan {
namespace {

constexpr bool stops_line(char byte) {
  auto c = static_cast<std::uint8_t>(byte);
  return (c < 0x20 && c != '\t') || c == 0x7f;
}

// The high bit of each byte that stops a line. No sum carries from one byte into the next, so every
// bit is exact.
std::uint64_t line_stops(std::uint64_t word) {
  constexpr std::uint64_t ones = 0x0101010101010101U;
  constexpr std::uint64_t tops = ones * 0x80;
  std::uint64_t sevens = word & ~tops;
  std::uint64_t not_control = (sevens + ones * (0x80 - 0x20)) | word;
  std::uint64_t not_tab = ((sevens ^ (ones * '\t')) + ones * 0x7f) | word;
  std::uint64_t not_del = ((sevens ^ (ones * 0x7f)) + ones * 0x7f) | word;
  return ((~not_control & not_tab) | ~not_del) & tops;
}

std::size_t line_stop_bytes(const char* data, std::size_t at, std::size_t bytes) {
  while (at < bytes && !stops_line(data[at]))
    ++at;
  return at;
}

std::size_t class_stop_bytes(const char* data, std::size_t at, std::size_t bytes,
                             const ByteClass& set) {
  while (at < bytes && set.has(data[at]))
    ++at;
  return at;
}

std::size_t line_stop_portable(const char* data, std::size_t bytes) {
  std::size_t at = 0;
  if constexpr (std::endian::native == std::endian::little) {
    for (; at + 8 <= bytes; at += 8) {
      std::uint64_t word;
      std::memcpy(&word, data + at, 8);
      if (std::uint64_t stops = line_stops(word); stops != 0) {
        return at + static_cast<std::size_t>(std::countr_zero(stops)) / 8;
      }
    }
  }
  return line_stop_bytes(data, at, bytes);
}

std::size_t class_stop_portable(const char* data, std::size_t bytes, const ByteClass& set) {
  return class_stop_bytes(data, 0, bytes, set);
}

constexpr Kernels portable_kernels{line_stop_portable, class_stop_portable};

#if RINGSIDE_SCAN_X86

// The last block of each scan overlaps the one before it, which is known to be clean: so a long
// input has no bytewise tail, and nothing is read outside [data, data + bytes).

__attribute__((target("sse4.2"))) unsigned line_mask16(const char* at) {
  __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(block, _mm_set1_epi8(0x1f)), block);
  __m128i tab = _mm_cmpeq_epi8(block, _mm_set1_epi8('\t'));
  __m128i del = _mm_cmpeq_epi8(block, _mm_set1_epi8(0x7f));
  return static_cast<unsigned>(
      _mm_movemask_epi8(_mm_or_si128(_mm_andnot_si128(tab, control), del)));
}

__attribute__((target("sse4.2"))) unsigned class_mask16(const char* at, __m128i low, __m128i high) {
  __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  __m128i nibble = _mm_set1_epi8(0x0f);
  __m128i row = _mm_shuffle_epi8(low, _mm_and_si128(block, nibble));
  __m128i bit = _mm_shuffle_epi8(high, _mm_and_si128(_mm_srli_epi16(block, 4), nibble));
  __m128i outside = _mm_cmpeq_epi8(_mm_and_si128(row, bit), _mm_setzero_si128());
  return static_cast<unsigned>(_mm_movemask_epi8(outside));
}

__attribute__((target("sse4.2"))) std::size_t line_stop_sse42(const char* data, std::size_t bytes) {
  if (bytes < 16) return line_stop_bytes(data, 0, bytes);
  std::size_t at = 0;
  for (;;) {
    if (unsigned mask = line_mask16(data + at); mask != 0) {
      return at + static_cast<std::size_t>(std::countr_zero(mask));
    }
    at += 16;
    if (at == bytes) return bytes;
    if (at + 16 > bytes) at = bytes - 16;
  }
}

__attribute__((target("sse4.2"))) std::size_t class_stop_sse42(const char* data, std::size_t bytes,
                                                               const ByteClass& set) {
  if (bytes < 16) return class_stop_bytes(data, 0, bytes, set);
  __m128i low = _mm_load_si128(reinterpret_cast<const __m128i*>(set.low));
  __m128i high = _mm_load_si128(reinterpret_cast<const __m128i*>(set.high));
  std::size_t at = 0;
  for (;;) {
    if (unsigned mask = class_mask16(data + at, low, high); mask != 0) {
      return at + static_cast<std::size_t>(std::countr_zero(mask));
    }
    at += 16;
    if (at == bytes) return bytes;
    if (at + 16 > bytes) at = bytes - 16;
  }
}

__attribute__((target("avx2"))) unsigned line_mask32(const char* at) {
  __m256i block = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
  __m256i control = _mm256_cmpeq_epi8(_mm256_min_epu8(block, _mm256_set1_epi8(0x1f)), block);
  __m256i tab = _mm256_cmpeq_epi8(block, _mm256_set1_epi8('\t'));
  __m256i del = _mm256_cmpeq_epi8(block, _mm256_set1_epi8(0x7f));
  return static_cast<unsigned>(
      _mm256_movemask_epi8(_mm256_or_si256(_mm256_andnot_si256(tab, control), del)));
}

__attribute__((target("avx2"))) unsigned class_mask32(const char* at, __m256i low, __m256i high) {
  __m256i block = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
  __m256i nibble = _mm256_set1_epi8(0x0f);
  __m256i row = _mm256_shuffle_epi8(low, _mm256_and_si256(block, nibble));
  __m256i bit = _mm256_shuffle_epi8(high, _mm256_and_si256(_mm256_srli_epi16(block, 4), nibble));
  __m256i outside = _mm256_cmpeq_epi8(_mm256_and_si256(row, bit), _mm256_setzero_si256());
  return static_cast<unsigned>(_mm256_movemask_epi8(outside));
}

__attribute__((target("avx2"))) std::size_t line_stop_avx2(const char* data, std::size_t bytes) {
  if (bytes < 32) return line_stop_sse42(data, bytes);
  std::size_t at = 0;
  for (;;) {
    if (unsigned mask = line_mask32(data + at); mask != 0) {
      return at + static_cast<std::size_t>(std::countr_zero(mask));
    }
    at += 32;
    if (at == bytes) return bytes;
    if (at + 32 > bytes) at = bytes - 32;
  }
}

__attribute__((target("avx2"))) std::size_t class_stop_avx2(const char* data, std::size_t bytes,
                                                            const ByteClass& set) {
  if (bytes < 32) return class_stop_sse42(data, bytes, set);
  __m256i low =
      _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(set.low)));
  __m256i high =
      _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(set.high)));
  std::size_t at = 0;
  for (;;) {
    if (unsigned mask = class_mask32(data + at, low, high); mask != 0) {
      return at + static_cast<std::size_t>(std::countr_zero(mask));
    }
    at += 32;
    if (at == bytes) return bytes;
    if (at + 32 > bytes) at = bytes - 32;
  }
}

constexpr Kernels sse42_kernels{line_stop_sse42, class_stop_sse42};
constexpr Kernels avx2_kernels{line_stop_avx2, class_stop_avx2};

#endif

}  // namespace

bool supported(Level level) {
  switch (level) {
    case Level::portable:
      return true;
#if RINGSIDE_SCAN_X86
    case Level::sse42:
      return __builtin_cpu_supports("sse4.2") != 0;
    case Level::avx2:
      return __builtin_cpu_supports("avx2") != 0;
#else
    case Level::sse42:
    case Level::avx2:
      return false;
#endif
  }
  return false;
}

// Valid before any constructor runs, so that code which parses that early works as well.
constinit Kernels active = portable_kernels;

namespace {

constinit Level level_now = Level::portable;

bool choose_best_level() {
#if RINGSIDE_SCAN_X86
  __builtin_cpu_init();  // needed by __builtin_cpu_supports in code that runs before main
#endif
  return force_level(Level::avx2) || force_level(Level::sse42);
}

[[maybe_unused]] const bool best_level_chosen = choose_best_level();

}  // namespace

Level active_level() {
  return level_now;
}

bool force_level(Level level) {
  if (!supported(level)) return false;
  switch (level) {
    case Level::portable:
      active = portable_kernels;
      break;
#if RINGSIDE_SCAN_X86
    case Level::sse42:
      active = sse42_kernels;
      break;
    case Level::avx2:
      active = avx2_kernels;
      break;
#else
    case Level::sse42:
    case Level::avx2:
      return false;
#endif
  }
  level_now = level;
  return true;
}

}  // namespace ringside::http::scan
