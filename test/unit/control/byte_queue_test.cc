#include "byte_queue.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <thread>

namespace ringside::control {
namespace {

bool push(ByteQueue& queue, std::string_view text) {
  std::byte* place = queue.reserve(text.size());
  if (place == nullptr) return false;
  std::memcpy(place, text.data(), text.size());
  queue.commit();
  return true;
}

std::string take(ByteQueue& queue) {
  const auto bytes = queue.front();
  if (bytes.data() == nullptr) return "(none)";
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  queue.pop();
  return text;
}

TEST(ByteQueue, GivesRecordsInOrder) {
  ByteQueue queue(256);
  EXPECT_EQ(take(queue), "(none)");
  ASSERT_TRUE(push(queue, "one"));
  ASSERT_TRUE(push(queue, ""));
  ASSERT_TRUE(push(queue, "a longer record"));
  EXPECT_EQ(take(queue), "one");
  EXPECT_EQ(take(queue), "");
  EXPECT_EQ(take(queue), "a longer record");
  EXPECT_EQ(take(queue), "(none)");
}

TEST(ByteQueue, ShowsNothingBeforeCommit) {
  ByteQueue queue(256);
  ASSERT_NE(queue.reserve(8), nullptr);
  EXPECT_EQ(queue.front().data(), nullptr);
  ASSERT_TRUE(push(queue, "second try"));
  EXPECT_EQ(take(queue), "second try");
  EXPECT_EQ(take(queue), "(none)");
}

TEST(ByteQueue, RefusesWhenFullAndTakesAgainAfterPop) {
  ByteQueue queue(64);  // four records of a header and one word each
  const std::string record(8, 'x');
  int taken = 0;
  while (push(queue, record))
    ++taken;
  EXPECT_EQ(taken, 4);
  EXPECT_EQ(take(queue), record);
  EXPECT_TRUE(push(queue, record));
  EXPECT_FALSE(push(queue, record));
}

TEST(ByteQueue, RefusesWhatIsLargerThanHalf) {
  ByteQueue queue(64);
  EXPECT_EQ(queue.record_bytes_max(), 24U);
  EXPECT_EQ(queue.reserve(25), nullptr);
  EXPECT_NE(queue.reserve(24), nullptr);
}

// Every length at every offset, so that each way of meeting the end of the ring occurs.
TEST(ByteQueue, KeepsRecordsWholeAcrossTheEnd) {
  for (std::size_t shift = 0; shift < 16; ++shift) {
    ByteQueue queue(128);
    for (std::size_t i = 0; i < shift; ++i) {
      ASSERT_TRUE(push(queue, "12345678"));
      ASSERT_EQ(take(queue), "12345678");
    }
    for (std::size_t length = 0; length <= queue.record_bytes_max(); ++length) {
      const std::string text(length, static_cast<char>('a' + length % 26));
      ASSERT_TRUE(push(queue, text)) << shift << ' ' << length;
      ASSERT_EQ(take(queue), text) << shift << ' ' << length;
    }
  }
}

TEST(ByteQueue, KnowsWhenItIsOverHalf) {
  ByteQueue queue(128);
  for (int lap = 0; lap < 20; ++lap) {
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(push(queue, "12345678"));
      EXPECT_FALSE(queue.over_half());
    }
    ASSERT_TRUE(push(queue, "12345678"));
    EXPECT_TRUE(queue.over_half());
    while (take(queue) != "(none)") {
    }
  }
}

TEST(ByteQueue, CarriesEverythingBetweenThreads) {
  constexpr unsigned count = 20'000;
  ByteQueue queue(1024);
  std::thread producer([&queue] {
    for (unsigned i = 0; i < count; ++i) {
      const std::string text = std::to_string(i) + std::string(i % 300, '.');
      while (!push(queue, text))
        std::this_thread::yield();
    }
  });
  unsigned wrong = 0;
  for (unsigned i = 0; i < count; ++i) {
    while (queue.front().data() == nullptr)
      std::this_thread::yield();
    if (take(queue) != std::to_string(i) + std::string(i % 300, '.')) ++wrong;
  }
  producer.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_EQ(take(queue), "(none)");
}

}  // namespace
}  // namespace ringside::control
