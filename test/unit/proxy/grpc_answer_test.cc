#include "grpc_answer.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace ringside::proxy {
namespace {

bool grpc(std::string_view type, http::Version version = http::Version::http2) {
  base::ChunkPool pool;
  base::Arena arena(pool);
  http::RequestHead head;
  head.version = version;
  EXPECT_TRUE(head.fields.add(
      arena, {.name = "content-type", .value = type, .id = http::FieldId::content_type}));
  return is_grpc(head);
}

TEST(GrpcAnswer, IsForCallsOverHttp2) {
  EXPECT_TRUE(grpc("application/grpc"));
  EXPECT_TRUE(grpc("Application/GRPC+proto"));
  EXPECT_TRUE(grpc("application/grpc;charset=utf-8"));
  EXPECT_FALSE(grpc("application/grpc-web"));
  EXPECT_FALSE(grpc("application/grp"));
  EXPECT_FALSE(grpc("application/json"));
  EXPECT_FALSE(grpc("application/grpc", http::Version::http11));
  EXPECT_FALSE(is_grpc({.version = http::Version::http2}));
}

TEST(GrpcAnswer, HasAStatusForEachOfHttp) {
  const std::map<std::uint16_t, std::string_view> wanted = {
      {400, "13"}, {401, "16"}, {403, "7"},  {404, "12"}, {405, "12"}, {408, "13"},
      {413, "8"},  {414, "8"},  {421, "13"}, {425, "14"}, {429, "14"}, {431, "8"},
      {500, "13"}, {502, "14"}, {503, "14"}, {504, "4"}};
  for (const auto& [status, grpc_status] : wanted)
    EXPECT_EQ(grpc_status_of(status), grpc_status) << status;
}

TEST(GrpcAnswer, MessagesArePercentEncoded) {
  base::ChunkPool pool;
  base::Arena arena(pool);
  EXPECT_EQ(grpc_message("No server is free.", arena), "No server is free.");
  EXPECT_EQ(grpc_message("100 % \xc3\xa4\r\n~\x7f", arena), "100 %25 %C3%A4%0D%0A~%7F");
  EXPECT_NE(grpc_message("", arena).data(), nullptr);
}

}  // namespace
}  // namespace ringside::proxy
