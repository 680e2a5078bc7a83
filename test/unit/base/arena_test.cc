#include "ringside/base/arena.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "counting_allocator.h"

namespace ringside::base {
namespace {

TEST(Arena, takes_no_chunk_before_it_needs_one) {
  ChunkPool pool;
  Arena arena(pool);
  EXPECT_TRUE(arena.empty());
  EXPECT_EQ(pool.in_use(), 0U);
  ASSERT_NE(arena.allocate(1), nullptr);
  EXPECT_FALSE(arena.empty());
  EXPECT_EQ(pool.in_use(), 1U);
}

TEST(Arena, gives_all_chunks_back_on_release_and_on_destruction) {
  ChunkPool pool;
  {
    Arena arena(pool);
    for (int i = 0; i < 10; ++i)
      ASSERT_NE(arena.allocate(1000), nullptr);
    EXPECT_EQ(pool.in_use(), 3U);
    arena.release();
    EXPECT_TRUE(arena.empty());
    EXPECT_EQ(pool.in_use(), 0U);
    EXPECT_EQ(pool.idle(), 3U);
    ASSERT_NE(arena.allocate(10), nullptr);
    EXPECT_EQ(pool.idle(), 2U);
  }
  EXPECT_EQ(pool.in_use(), 0U);
  EXPECT_EQ(pool.idle(), 3U);
  pool.trim(1);
  EXPECT_EQ(pool.idle(), 1U);
}

TEST(Arena, honours_alignment) {
  ChunkPool pool;
  Arena arena(pool);
  for (std::size_t align = 1; align <= 4096; align *= 2) {
    ASSERT_NE(arena.allocate(1, 1), nullptr);
    void* at = arena.allocate(3, align);
    ASSERT_NE(at, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at) % align, 0U) << align;
  }
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena.allocate_array<double>(3)) % alignof(double),
            0U);
}

TEST(Arena, takes_things_larger_than_a_chunk) {
  ChunkPool pool;
  Arena arena(pool);
  for (std::size_t bytes : {std::size_t{4096}, std::size_t{100'000}}) {
    auto* at = static_cast<char*>(arena.allocate(bytes, 64));
    ASSERT_NE(at, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at) % 64, 0U);
    std::memset(at, 'x', bytes);
  }
  arena.release();
  // Odd sizes are not kept.
  EXPECT_EQ(pool.idle(), 0U);
  EXPECT_EQ(pool.in_use(), 0U);
}

TEST(Arena, a_large_thing_does_not_end_the_chunk_that_was_begun) {
  ChunkPool pool;
  Arena arena(pool);
  auto* before = static_cast<char*>(arena.allocate(8, 8));
  ASSERT_NE(arena.allocate(50'000), nullptr);
  auto* after = static_cast<char*>(arena.allocate(8, 8));
  EXPECT_EQ(after, before + 8);
  EXPECT_EQ(pool.in_use(), 2U);
}

TEST(Arena, refuses_absurd_sizes) {
  ChunkPool pool;
  Arena arena(pool);
  ASSERT_NE(arena.allocate(1), nullptr);
  for (std::size_t bytes : {SIZE_MAX, SIZE_MAX - 15, SIZE_MAX / 2, (std::size_t{1} << 40) + 1}) {
    EXPECT_EQ(arena.allocate(bytes), nullptr);
    EXPECT_EQ(arena.allocate(bytes, 1), nullptr);
  }
  EXPECT_EQ(arena.allocate_array<std::uint64_t>(SIZE_MAX / 8 + 2), nullptr);
  EXPECT_EQ(arena.allocate_array<std::uint64_t>(SIZE_MAX), nullptr);
}

TEST(Arena, copies_text) {
  ChunkPool pool;
  Arena arena(pool);
  std::string text = "hello";
  std::string_view copy = arena.copy(text);
  text = "HELLO";
  EXPECT_EQ(copy, "hello");
  std::string_view none = arena.copy({});
  EXPECT_TRUE(none.empty());
  EXPECT_NE(none.data(), nullptr);
}

// Nothing overlaps and nothing is lost, whatever the sizes.
TEST(Arena, keeps_everything_that_was_put_in) {
  ChunkPool pool;
  std::mt19937 random(11);
  for (int round = 0; round < 50; ++round) {
    Arena arena(pool);
    std::vector<std::pair<std::span<unsigned char>, unsigned char>> pieces;
    for (int i = 0; i < 200; ++i) {
      std::size_t bytes = random() % 50 == 0 ? random() % 20'000 : random() % 300;
      auto* at = static_cast<unsigned char*>(arena.allocate(bytes, std::size_t{1} << random() % 7));
      ASSERT_NE(at, nullptr);
      auto mark = static_cast<unsigned char>(random());
      if (bytes != 0) std::memset(at, mark, bytes);
      pieces.emplace_back(std::span(at, bytes), mark);
    }
    for (auto [piece, mark] : pieces) {
      for (unsigned char byte : piece)
        ASSERT_EQ(byte, mark);
    }
  }
  EXPECT_EQ(pool.in_use(), 0U);
}

TEST(Arena, allocates_nothing_once_the_pool_is_warm) {
  ChunkPool pool;
  auto exchange = [&] {
    Arena arena(pool);
    for (int i = 0; i < 100; ++i)
      ASSERT_NE(arena.allocate(100), nullptr);
  };
  exchange();
  test::AllocationCount allocations;
  for (int i = 0; i < 100; ++i)
    exchange();
  EXPECT_EQ(allocations.count(), 0U);
}

TEST(ArenaPin, keeps_what_is_in_the_arena_past_its_release) {
  ChunkPool pool;
  Arena arena(pool);
  std::string_view small = arena.copy("small");
  std::string_view large = arena.copy(std::string(10'000, 'x'));
  ArenaPin pin = arena.pin();
  std::string_view later = arena.copy("put in after the pin");
  arena.release();
  EXPECT_TRUE(arena.empty());
  EXPECT_EQ(pool.in_use(), 2U);
  // Others use the pool meanwhile, and the same arena too.
  Arena other(pool);
  for (int i = 0; i < 10; ++i) {
    std::memset(other.allocate(1000), 'o', 1000);
    std::memset(arena.allocate(1000), 'a', 1000);
  }
  EXPECT_EQ(small, "small");
  EXPECT_EQ(large, std::string(10'000, 'x'));
  EXPECT_EQ(later, "put in after the pin");
  other.release();
  arena.release();
  EXPECT_EQ(pool.in_use(), 2U);
  pin.reset();
  EXPECT_EQ(pool.in_use(), 0U);
  pin.reset();
}

TEST(ArenaPin, the_last_of_several_gives_back) {
  ChunkPool pool;
  ArenaPin first;
  ArenaPin second;
  {
    Arena arena(pool);
    arena.copy("x");
    first = arena.pin();
    for (int i = 0; i < 10; ++i)
      ASSERT_NE(arena.allocate(1000), nullptr);
    second = arena.pin();
  }
  EXPECT_EQ(pool.in_use(), 3U);
  first.reset();
  EXPECT_EQ(pool.in_use(), 3U);
  ArenaPin moved = std::move(second);
  second.reset();
  EXPECT_EQ(pool.in_use(), 3U);
  moved = ArenaPin();
  EXPECT_EQ(pool.in_use(), 0U);
}

TEST(ArenaPin, one_that_is_gone_before_the_release_changes_nothing) {
  ChunkPool pool;
  Arena arena(pool);
  std::string_view text = arena.copy("x");
  arena.pin().reset();
  EXPECT_EQ(text, "x");
  EXPECT_EQ(pool.in_use(), 1U);
  ArenaPin again = arena.pin();
  again.reset();
  arena.release();
  EXPECT_EQ(pool.in_use(), 0U);
}

TEST(ArenaPin, of_an_empty_arena_pins_nothing) {
  ChunkPool pool;
  Arena arena(pool);
  ArenaPin pin = arena.pin();
  arena.copy("x");
  arena.release();
  EXPECT_EQ(pool.in_use(), 0U);
}

// The chunk that counted the pins of one arena is used by the next: nothing may be left over.
TEST(ArenaPin, leaves_no_trace_in_recycled_chunks) {
  ChunkPool pool;
  for (int round = 0; round < 5; ++round) {
    Arena arena(pool);
    arena.copy("x");
    ArenaPin pin = round % 2 == 0 ? arena.pin() : ArenaPin();
    arena.release();
    EXPECT_EQ(pool.in_use(), round % 2 == 0 ? 1U : 0U);
    pin.reset();
    EXPECT_EQ(pool.in_use(), 0U);
    EXPECT_EQ(pool.idle(), 1U);
  }
}

TEST(Arena, extends_and_shrinks_what_was_allocated_last) {
  ChunkPool pool;
  Arena arena(pool);
  EXPECT_FALSE(arena.extend(nullptr, 0));
  const std::string_view first = arena.copy("first");
  const std::string_view last = arena.copy("last");
  EXPECT_FALSE(arena.extend(first.data() + first.size(), 1)) << "something is behind it";
  const char* end = last.data() + last.size();
  EXPECT_FALSE(arena.extend(end, ChunkPool::chunk_bytes)) << "there is no room";
  ASSERT_TRUE(arena.extend(end, 3));
  EXPECT_EQ(arena.copy("!").data(), end + 3);
  auto* at = static_cast<char*>(arena.allocate(100, 1));
  arena.shrink(at + 10, at + 100);
  EXPECT_EQ(arena.copy("?").data(), at + 10);
  arena.shrink(at, at + 10);
  EXPECT_EQ(arena.copy("?").data(), at + 11) << "it was not the last one";
}

#ifdef RINGSIDE_POISON
TEST(ArenaDeathTest, what_was_shrunk_away_may_not_be_written) {
  ChunkPool pool;
  Arena arena(pool);
  auto* at = static_cast<volatile char*>(arena.allocate(32, 8));
  arena.shrink(const_cast<char*>(at) + 8, const_cast<char*>(at) + 32);
  at[7] = 1;
  EXPECT_DEATH(at[8] = 1, "use-after-poison");
}

TEST(ArenaDeathTest, what_was_released_may_not_be_read) {
  ChunkPool pool;
  Arena arena(pool);
  auto* at = static_cast<volatile char*>(arena.allocate(8));
  *at = 1;
  arena.release();
  EXPECT_DEATH({ [[maybe_unused]] char value = *at; }, "use-after-poison");
}

TEST(ArenaDeathTest, what_was_not_allocated_may_not_be_written) {
  ChunkPool pool;
  Arena arena(pool);
  auto* at = static_cast<volatile char*>(arena.allocate(8, 8));
  EXPECT_DEATH(at[8] = 1, "use-after-poison");
}
#endif

}  // namespace
}  // namespace ringside::base
