#include "ringside/http/gather.h"

#include <gtest/gtest.h>

#include <string>

namespace ringside::http {
namespace {

const std::string request = "GET /a?b HTTP/1.1\r\nHost: a.test\r\nX-Long: value\r\n\r\n";

TEST(Gather, a_whole_head_is_parsed_where_it_lies) {
  base::ChunkPool pool;
  base::Arena arena(pool);
  HeadLimits limits;
  RequestParser parser(arena, limits);
  Gather gather;
  std::string input = request + "GET /next";
  Gather::Fed fed = gather.feed(parser, arena, input);
  ASSERT_EQ(fed.state, ParseState::done);
  EXPECT_EQ(fed.used, request.size());
  EXPECT_EQ(fed.bytes, input.data());
  EXPECT_EQ(parser.head().path.data(), input.data() + 4);
}

TEST(Gather, every_split_gives_the_same_head_and_takes_only_its_bytes) {
  for (std::size_t cut = 1; cut < request.size(); ++cut) {
    base::ChunkPool pool;
    base::Arena arena(pool);
    HeadLimits limits;
    RequestParser parser(arena, limits);
    Gather gather;
    std::string first = request.substr(0, cut);
    std::string second = request.substr(cut) + "next";
    Gather::Fed fed = gather.feed(parser, arena, first);
    ASSERT_EQ(fed.state, ParseState::need_more) << cut;
    EXPECT_EQ(fed.used, first.size());
    EXPECT_TRUE(gather.started());
    first.assign(first.size(), '#');  // the buffer is somebody else's by now
    fed = gather.feed(parser, arena, second);
    ASSERT_EQ(fed.state, ParseState::done) << cut;
    EXPECT_EQ(fed.used, second.size() - 4);
    EXPECT_EQ(parser.head().target, "/a?b");
    EXPECT_EQ(parser.head().fields[1].value, "value");
    EXPECT_FALSE(gather.started());
  }
}

TEST(Gather, a_head_gathered_later_leaves_the_earlier_one_alone) {
  base::ChunkPool pool;
  base::Arena arena(pool);
  HeadLimits limits;
  RequestParser first(arena, limits);
  RequestParser second(arena, limits);
  Gather gather;
  gather.feed(first, arena, request.substr(0, 9));
  ASSERT_EQ(gather.feed(first, arena, request.substr(9)).state, ParseState::done);
  std::string other = "PUT /other HTTP/1.1\r\nHost: b.test\r\n\r\n";
  gather.feed(second, arena, other.substr(0, 9));
  ASSERT_EQ(gather.feed(second, arena, other.substr(9)).state, ParseState::done);
  EXPECT_EQ(first.head().target, "/a?b");
  EXPECT_EQ(second.head().target, "/other");
}

TEST(Gather, a_fault_is_reported_from_either_way) {
  base::ChunkPool pool;
  base::Arena arena(pool);
  HeadLimits limits;
  RequestParser whole(arena, limits);
  Gather gather;
  EXPECT_EQ(gather.feed(whole, arena, "GET / HTTP/1.1\r\nBad Name: x\r\n").state,
            ParseState::failed);
  RequestParser split(arena, limits);
  Gather other;
  other.feed(split, arena, "GET / HTTP/1.1\r\nBad Na");
  EXPECT_EQ(other.feed(split, arena, "me: x\r\n").state, ParseState::failed);
}

}  // namespace
}  // namespace ringside::http
