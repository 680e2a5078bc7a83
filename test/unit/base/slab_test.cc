#include "ringside/base/slab.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "counting_allocator.h"

namespace ringside::base {
namespace {

struct Counted {
  explicit Counted(int number) : value(number) { ++alive; }
  ~Counted() { --alive; }
  Counted(const Counted&) = delete;
  int value;
  static inline int alive = 0;
};

TEST(Slab, constructs_and_destroys) {
  Slab<Counted> slab(4);
  EXPECT_EQ(slab.capacity(), 4U);
  Counted* one = slab.create(17);
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->value, 17);
  EXPECT_EQ(Counted::alive, 1);
  EXPECT_EQ(slab.in_use(), 1U);
  slab.destroy(one);
  EXPECT_EQ(Counted::alive, 0);
  EXPECT_EQ(slab.in_use(), 0U);
}

TEST(Slab, is_full_at_its_capacity_and_recovers) {
  Slab<Counted> slab(3);
  Counted* objects[3];
  for (int i = 0; i < 3; ++i) {
    objects[i] = slab.create(i);
    ASSERT_NE(objects[i], nullptr);
  }
  EXPECT_EQ(slab.create(9), nullptr);
  EXPECT_EQ(Counted::alive, 3);
  slab.destroy(objects[1]);
  Counted* again = slab.create(4);
  EXPECT_EQ(again, objects[1]);
  EXPECT_EQ(slab.create(9), nullptr);
  slab.destroy(objects[0]);
  slab.destroy(again);
  slab.destroy(objects[2]);
}

TEST(Slab, a_capacity_of_zero_is_always_full) {
  Slab<Counted> slab(0);
  EXPECT_EQ(slab.create(1), nullptr);
}

TEST(Slab, reuses_the_warmest_place_first) {
  Slab<Counted> slab(8);
  Counted* a = slab.create(1);
  Counted* b = slab.create(2);
  slab.destroy(a);
  slab.destroy(b);
  EXPECT_EQ(slab.create(3), b);
  EXPECT_EQ(slab.create(4), a);
  EXPECT_EQ(slab.peak(), 2U);
  slab.destroy(a);
  slab.destroy(b);
}

TEST(Slab, peak_is_the_most_that_lived_at_once) {
  Slab<Counted> slab(8);
  for (int round = 0; round < 3; ++round) {
    Counted* a = slab.create(1);
    Counted* b = slab.create(2);
    slab.destroy(b);
    slab.destroy(a);
  }
  EXPECT_EQ(slab.peak(), 2U);
}

TEST(Slab, honours_alignment) {
  struct alignas(64) Line {
    char bytes[65];
  };
  Slab<Line> slab(4);
  Line* lines[4];
  for (int i = 0; i < 4; ++i) {
    lines[i] = slab.create();
    ASSERT_NE(lines[i], nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(lines[i]) % 64, 0U);
    std::fill(std::begin(lines[i]->bytes), std::end(lines[i]->bytes), static_cast<char>(i));
  }
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(lines[i]->bytes[0], i);
    EXPECT_EQ(lines[i]->bytes[64], i);
    slab.destroy(lines[i]);
  }
}

TEST(Slab, a_huge_capacity_costs_nothing) {
  Slab<Counted> slab(std::size_t{1} << 32);
  Counted* one = slab.create(1);
  ASSERT_NE(one, nullptr);
  slab.destroy(one);
}

TEST(Slab, a_capacity_that_cannot_be_mapped_is_zero) {
  Slab<Counted> slab(std::size_t{1} << 59);
  EXPECT_EQ(slab.capacity(), 0U);
  EXPECT_EQ(slab.create(1), nullptr);
}

TEST(Slab, allocates_nothing_and_never_moves_objects) {
  Slab<Counted> slab(200);
  std::vector<std::pair<Counted*, int>> alive;
  alive.reserve(200);
  std::mt19937 random(3);
  test::AllocationCount allocations;
  for (int step = 0; step < 10'000; ++step) {
    if (random() % 2 == 0) {
      Counted* object = slab.create(step);
      EXPECT_EQ(object == nullptr, alive.size() == 200);
      if (object != nullptr) alive.emplace_back(object, step);
    } else if (!alive.empty()) {
      std::swap(alive[random() % alive.size()], alive.back());
      slab.destroy(alive.back().first);
      alive.pop_back();
    }
    EXPECT_EQ(slab.in_use(), alive.size());
  }
  for (auto [object, value] : alive)
    EXPECT_EQ(object->value, value);
  EXPECT_EQ(allocations.count(), 0U);
  for (auto [object, value] : alive)
    slab.destroy(object);
}

#ifdef RINGSIDE_POISON
TEST(SlabDeathTest, a_destroyed_object_may_not_be_read) {
  Slab<Counted> slab(4);
  Counted* object = slab.create(1);
  slab.destroy(object);
  EXPECT_DEATH({ [[maybe_unused]] volatile int value = object->value; }, "use-after-poison");
}
#endif

}  // namespace
}  // namespace ringside::base
