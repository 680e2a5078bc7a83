#include "ringside/http/message.h"

#include <gtest/gtest.h>

#include <string>

namespace ringside::http {
namespace {

TEST(MethodTest, SafeAndIdempotentAsRfc9110Says) {
  for (Method m : {Method::get, Method::head, Method::options, Method::trace}) {
    EXPECT_TRUE(is_safe(m));
    EXPECT_TRUE(is_idempotent(m));
  }
  for (Method m : {Method::put, Method::delete_}) {
    EXPECT_FALSE(is_safe(m));
    EXPECT_TRUE(is_idempotent(m));
  }
  for (Method m : {Method::post, Method::patch, Method::connect, Method::other}) {
    EXPECT_FALSE(is_safe(m));
    EXPECT_FALSE(is_idempotent(m));
  }
}

TEST(FieldListTest, GrowsInOrderAndFindsTheFirst) {
  base::ChunkPool pool;
  base::Arena arena(pool);
  FieldList list;
  EXPECT_TRUE(list.empty());
  std::string names[200];
  for (int i = 0; i < 200; ++i) {
    names[i] = "x-" + std::to_string(i);
    ASSERT_TRUE(list.add(arena, {names[i], "v", FieldId::other, false}));
  }
  ASSERT_TRUE(list.add(arena, {"Via", "1", FieldId::via, false}));
  ASSERT_TRUE(list.add(arena, {"VIA", "2", FieldId::via, false}));
  ASSERT_EQ(list.size(), 202U);
  for (int i = 0; i < 200; ++i)
    EXPECT_EQ(list[static_cast<std::size_t>(i)].name, names[i]);
  EXPECT_EQ(list.find(FieldId::via)->value, "1");
  EXPECT_EQ(list.find("vIa")->value, "1");
  EXPECT_EQ(list.find("X-150"), &list[150]);
  EXPECT_EQ(list.find("x-200"), nullptr);
  EXPECT_EQ(list.find(FieldId::host), nullptr);
}

TEST(FieldListTest, RebaseMovesOnlyWhatPointsIntoTheRange) {
  base::ChunkPool pool;
  base::Arena arena(pool);
  std::string old_buffer = "Name: value";
  std::string new_buffer = old_buffer;
  FieldList list;
  std::string_view old_view = old_buffer;
  ASSERT_TRUE(list.add(arena, {old_view.substr(0, 4), old_view.substr(6), FieldId::other, false}));
  ASSERT_TRUE(list.add(arena, {"static", old_view.substr(11), FieldId::other, false}));
  const char* outside = list[1].value.data();
  list.rebase(old_buffer.data(), 11, new_buffer.data() - old_buffer.data());
  EXPECT_EQ(list[0].name.data(), new_buffer.data());
  EXPECT_EQ(list[0].value.data(), new_buffer.data() + 6);
  EXPECT_EQ(list[1].name, "static");
  EXPECT_EQ(list[1].value.data(), outside);
}

TEST(ReasonPhraseTest, StandardOnes) {
  EXPECT_EQ(reason_phrase(100), "Continue");
  EXPECT_EQ(reason_phrase(101), "Switching Protocols");
  EXPECT_EQ(reason_phrase(200), "OK");
  EXPECT_EQ(reason_phrase(304), "Not Modified");
  EXPECT_EQ(reason_phrase(400), "Bad Request");
  EXPECT_EQ(reason_phrase(431), "Request Header Fields Too Large");
  EXPECT_EQ(reason_phrase(502), "Bad Gateway");
  EXPECT_EQ(reason_phrase(505), "HTTP Version Not Supported");
  for (std::uint16_t unknown :
       {std::uint16_t{0}, std::uint16_t{299}, std::uint16_t{418}, std::uint16_t{599}}) {
    EXPECT_EQ(reason_phrase(unknown), "");
  }
}

}  // namespace
}  // namespace ringside::http
