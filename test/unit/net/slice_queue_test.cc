#include <gtest/gtest.h>

#include <string>

#include "ringside/net/slice.h"

namespace ringside::net {
namespace {

std::string all(SliceQueue& queue) {
  std::string out;
  for (Slice* at = queue.front(); at != nullptr; at = at->next)
    out.append(at->data, at->size);
  return out;
}

TEST(SliceQueue, keeps_order_and_counts_bytes) {
  SlicePool pool(8);
  SliceQueue queue(pool);
  EXPECT_TRUE(queue.empty());
  queue.push_view("hello ");
  queue.push_copy("small");
  queue.push_view(" world");
  EXPECT_EQ(all(queue), "hello small world");
  EXPECT_EQ(queue.bytes(), 17U);
}

TEST(SliceQueue, consumes_over_pieces) {
  const std::string text = "abcdefghij";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    SlicePool pool(8);
    SliceQueue queue(pool);
    queue.push_view("abc");
    queue.push_copy("de");
    queue.push_view("fghij");
    queue.consume(cut);
    EXPECT_EQ(all(queue), text.substr(cut));
    EXPECT_EQ(queue.bytes(), text.size() - cut);
    EXPECT_EQ(queue.empty(), cut == text.size());
    const std::size_t left = std::size_t{cut < 3} + std::size_t{cut < 5} + std::size_t{cut < 10};
    EXPECT_EQ(queue.cost(), queue.bytes() + left * sizeof(Slice));
    queue.push_view("!");
    EXPECT_EQ(all(queue), text.substr(cut) + "!");
  }
}

TEST(SliceQueue, a_copy_does_not_need_its_source) {
  SlicePool pool(1);
  SliceQueue queue(pool);
  std::string source = "1a2b\r\n";
  queue.push_copy(source);
  source.assign("xxxxxx");
  EXPECT_EQ(all(queue), "1a2b\r\n");
}

TEST(SliceQueue, a_dry_pool_refuses_and_changes_nothing) {
  SlicePool pool(2);
  SliceQueue queue(pool);
  EXPECT_TRUE(queue.push_view("a"));
  EXPECT_TRUE(queue.push_view("b"));
  EXPECT_FALSE(queue.push_view("c"));
  EXPECT_EQ(all(queue), "ab");
  queue.consume(1);
  EXPECT_TRUE(queue.push_view("c"));
  EXPECT_EQ(all(queue), "bc");
}

TEST(SliceQueue, appends_to_what_an_arena_placed_last) {
  base::ChunkPool chunks;
  base::Arena arena(chunks);
  SlicePool pool(4);
  SliceQueue queue(pool);
  EXPECT_FALSE(queue.append("x", arena)) << "there is nothing to append to";
  queue.push_copy("own");
  EXPECT_FALSE(queue.append("x", arena));
  queue.push_view("static");
  EXPECT_FALSE(queue.append("x", arena));
  queue.push_view(arena.copy("head "));
  ASSERT_TRUE(queue.append("body", arena));
  EXPECT_EQ(all(queue), "ownstatichead body");
  EXPECT_EQ(queue.bytes(), 18U);
  EXPECT_EQ(pool.in_use(), 3U) << "it took a piece";
  queue.consume(14);
  ASSERT_TRUE(queue.append("!", arena)) << "of which a part has left";
  EXPECT_EQ(all(queue), "body!");
  EXPECT_FALSE(queue.append(std::string(base::ChunkPool::chunk_bytes, 'x'), arena));
  arena.copy("other");
  EXPECT_FALSE(queue.append("x", arena)) << "something else is behind it";
  EXPECT_EQ(all(queue), "body!");
}

TEST(SliceQueue, gives_everything_back) {
  SlicePool pool(4);
  {
    SliceQueue queue(pool);
    queue.push_view("a");
    queue.push_view("b");
    Slice* first = queue.take_front();
    EXPECT_EQ(queue.bytes(), 1U);
    EXPECT_EQ(queue.cost(), 1 + sizeof(Slice));
    pool.destroy(first);
    EXPECT_EQ(pool.in_use(), 1U);
  }
  EXPECT_EQ(pool.in_use(), 0U);
}

}  // namespace
}  // namespace ringside::net
