#include "event_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

namespace ringside::control {
namespace {

using base::LogLevel;

TEST(EventQueue, GivesEventsInOrder) {
  EventQueue queue(4);
  EventQueue::Event event;
  EXPECT_FALSE(queue.front(event));
  ASSERT_TRUE(queue.push({7, 3, LogLevel::warn, "accept", "no descriptors left"}));
  ASSERT_TRUE(queue.push({8, 0, LogLevel::info, "other", ""}));
  ASSERT_TRUE(queue.front(event));
  EXPECT_EQ(event.realtime_ns, 7U);
  EXPECT_EQ(event.left_out, 3U);
  EXPECT_EQ(event.level, LogLevel::warn);
  EXPECT_EQ(event.event, "accept");
  EXPECT_EQ(event.text, "no descriptors left");
  queue.pop();
  ASSERT_TRUE(queue.front(event));
  EXPECT_EQ(event.event, "other");
  queue.pop();
  EXPECT_FALSE(queue.front(event));
}

TEST(EventQueue, RefusesWhenFullOverManyLaps) {
  EventQueue queue(4);
  EventQueue::Event event;
  for (int lap = 0; lap < 10; ++lap) {
    for (int i = 0; i < 4; ++i)
      ASSERT_TRUE(queue.push({0, 0, LogLevel::info, "e", "t"}));
    EXPECT_FALSE(queue.push({0, 0, LogLevel::info, "e", "t"}));
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(queue.front(event));
      queue.pop();
    }
    ASSERT_FALSE(queue.front(event));
  }
}

TEST(EventQueue, CutsLongTexts) {
  EventQueue queue(2);
  ASSERT_TRUE(queue.push({0, 0, LogLevel::info, std::string(99, 'e'), std::string(5000, 't')}));
  EventQueue::Event event;
  ASSERT_TRUE(queue.front(event));
  EXPECT_EQ(event.event, std::string(EventQueue::event_bytes_max, 'e'));
  EXPECT_EQ(event.text, std::string(EventQueue::text_bytes_max - 3, 't') + "...");
}

TEST(EventQueue, CarriesEverythingFromManyThreads) {
  constexpr unsigned threads = 3;
  constexpr unsigned count = 5000;
  EventQueue queue(8);
  std::vector<std::thread> group;
  for (unsigned id = 0; id < threads; ++id) {
    group.emplace_back([&queue, id] {
      for (unsigned i = 0; i < count; ++i) {
        const std::string text = std::to_string(i);
        while (!queue.push({i, id, LogLevel::info, "e", text}))
          std::this_thread::yield();
      }
    });
  }
  std::array<unsigned, threads> next{};
  unsigned wrong = 0;
  for (unsigned seen = 0; seen < threads * count;) {
    EventQueue::Event event;
    if (!queue.front(event)) {
      std::this_thread::yield();
      continue;
    }
    unsigned& expected = next[event.left_out];
    if (event.text != std::to_string(expected) || event.realtime_ns != expected) ++wrong;
    ++expected;
    queue.pop();
    ++seen;
  }
  for (std::thread& thread : group)
    thread.join();
  EXPECT_EQ(wrong, 0U);
}

}  // namespace
}  // namespace ringside::control
