#include "counting_allocator.h"

#include <cerrno>
#include <cstddef>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RINGSIDE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define RINGSIDE_SANITIZED 1
#endif
#endif

namespace {
// Initial-exec: reading it never allocates, which malloc itself could not bear.
[[gnu::tls_model("initial-exec")]] constinit thread_local std::uint64_t allocations = 0;
}  // namespace

namespace ringside::test {
std::uint64_t AllocationCount::total() {
  return allocations;
}
}  // namespace ringside::test

#ifdef RINGSIDE_SANITIZED

// A sanitizer has its own malloc and offers a hook.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void*,
                                                                             std::size_t),
                                                         void (*free_hook)(const volatile void*));

namespace {
void count_malloc(const volatile void*, std::size_t) {
  ++allocations;
}
void ignore_free(const volatile void*) {}
[[maybe_unused]] const int installed =
    __sanitizer_install_malloc_and_free_hooks(count_malloc, ignore_free);
}  // namespace

#else

// glibc lets a program define these and still offers its own under another name.
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* at, std::size_t bytes);
void* __libc_memalign(std::size_t align, std::size_t bytes);
void __libc_free(void* at);

void* malloc(std::size_t bytes) {
  ++allocations;
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  ++allocations;
  return __libc_calloc(count, bytes);
}
void* realloc(void* at, std::size_t bytes) {
  ++allocations;
  return __libc_realloc(at, bytes);
}
void* memalign(std::size_t align, std::size_t bytes) {
  ++allocations;
  return __libc_memalign(align, bytes);
}
void* aligned_alloc(std::size_t align, std::size_t bytes) {
  return memalign(align, bytes);
}
int posix_memalign(void** out, std::size_t align, std::size_t bytes) {
  void* at = memalign(align, bytes);
  if (at == nullptr) return ENOMEM;
  *out = at;
  return 0;
}
void free(void* at) {
  __libc_free(at);
}
}

#endif
