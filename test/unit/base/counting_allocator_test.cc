// The tool that the "allocates nothing" tests trust.
#include "counting_allocator.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#ifndef __has_feature
#define __has_feature(name) 0
#endif

namespace ringside::test {
namespace {

// Not inlined, so that no compiler may leave out a pair of new and delete.
[[gnu::noinline]] void touch(void* at) {
  asm volatile("" : : "r"(at) : "memory");
}

TEST(CountingAllocator, counts_malloc_calloc_and_realloc) {
  AllocationCount allocations;
  void* a = std::malloc(100);
  touch(a);
  void* b = std::calloc(10, 10);
  touch(b);
  EXPECT_EQ(allocations.count(), 2U);
  a = std::realloc(a, 100'000);
  touch(a);
  EXPECT_EQ(allocations.count(), 3U);
  std::free(a);
  std::free(b);
  EXPECT_EQ(allocations.count(), 3U);
}

TEST(CountingAllocator, counts_operator_new) {
  AllocationCount allocations;
  auto a = std::make_unique<int>(1);
  touch(a.get());
  std::string text(1000, 'x');
  touch(text.data());
  EXPECT_EQ(allocations.count(), 2U);
}

TEST(CountingAllocator, counts_aligned_memory) {
  struct alignas(256) Wide {
    char bytes[256];
  };
  AllocationCount allocations;
  auto wide = std::make_unique<Wide>();
  touch(wide.get());
  EXPECT_EQ(allocations.count(), 1U);
#if !defined(__SANITIZE_THREAD__) && !__has_feature(thread_sanitizer)
  // (ThreadSanitizer does not tell its hook of this one.)
  void* at = nullptr;
  ASSERT_EQ(::posix_memalign(&at, 4096, 100), 0);
  touch(at);
  EXPECT_EQ(allocations.count(), 2U);
  std::free(at);
#endif
}

TEST(CountingAllocator, leaves_out_other_threads) {
  std::uint64_t others = 0;
  std::uint64_t own = 0;
  std::thread other([&] {
    AllocationCount allocations;
    for (int i = 0; i < 50; ++i) {
      void* at = std::malloc(10);
      touch(at);
      std::free(at);
    }
    others = allocations.count();
  });
  {
    AllocationCount allocations;
    other.join();
    own = allocations.count();
  }
  EXPECT_EQ(others, 50U);
  EXPECT_EQ(own, 0U);
}

}  // namespace
}  // namespace ringside::test
