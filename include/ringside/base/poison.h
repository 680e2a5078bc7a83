// Tells AddressSanitizer about memory that we hand out ourselves; nothing in other builds.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define RINGSIDE_POISON 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RINGSIDE_POISON 1
#endif
#endif

#ifdef RINGSIDE_POISON
#include <sanitizer/asan_interface.h>
#endif

namespace ringside::base {

// Until it is unpoisoned, touching the region ends a sanitized program.
inline void poison([[maybe_unused]] void* at, [[maybe_unused]] std::size_t bytes) {
#ifdef RINGSIDE_POISON
  __asan_poison_memory_region(at, bytes);
#endif
}

inline void unpoison([[maybe_unused]] void* at, [[maybe_unused]] std::size_t bytes) {
#ifdef RINGSIDE_POISON
  __asan_unpoison_memory_region(at, bytes);
#endif
}

}  // namespace ringside::base
