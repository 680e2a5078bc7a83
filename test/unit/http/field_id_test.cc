#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "ringside/base/text.h"
#include "ringside/http/message.h"

namespace ringside::http {
namespace {

const std::vector<std::pair<std::string, FieldId>> known = {
    {"connection", FieldId::connection},
    {"content-length", FieldId::content_length},
    {"content-type", FieldId::content_type},
    {"date", FieldId::date},
    {"expect", FieldId::expect},
    {"forwarded", FieldId::forwarded},
    {"host", FieldId::host},
    {"http2-settings", FieldId::http2_settings},
    {"keep-alive", FieldId::keep_alive},
    {"location", FieldId::location},
    {"max-forwards", FieldId::max_forwards},
    {"proxy-authenticate", FieldId::proxy_authenticate},
    {"proxy-authorization", FieldId::proxy_authorization},
    {"proxy-connection", FieldId::proxy_connection},
    {"referer", FieldId::referer},
    {"server", FieldId::server},
    {"te", FieldId::te},
    {"trailer", FieldId::trailer},
    {"transfer-encoding", FieldId::transfer_encoding},
    {"upgrade", FieldId::upgrade},
    {"user-agent", FieldId::user_agent},
    {"via", FieldId::via},
    {"x-forwarded-for", FieldId::x_forwarded_for},
    {"x-forwarded-host", FieldId::x_forwarded_host},
    {"x-forwarded-proto", FieldId::x_forwarded_proto},
    {"x-request-id", FieldId::x_request_id},
};

TEST(FieldIdTest, KnowsEveryNameInEveryCase) {
  ASSERT_EQ(known.size(), static_cast<std::size_t>(FieldId::x_request_id));
  for (const auto& [name, id] : known) {
    EXPECT_EQ(field_id(name), id) << name;
    std::string upper = name;
    for (char& c : upper)
      c = static_cast<char>(std::toupper(c));
    EXPECT_EQ(field_id(upper), id) << upper;
    std::string mixed = name;
    mixed[0] = upper[0];
    mixed.back() = upper.back();
    EXPECT_EQ(field_id(mixed), id) << mixed;
  }
}

// Any other byte at any place makes another name, those that differ by 0x20 alone included.
TEST(FieldIdTest, OneOtherByteIsAnotherName) {
  for (const auto& [name, id] : known) {
    for (std::size_t place = 0; place < name.size(); ++place) {
      for (int c = 0; c < 256; ++c) {
        std::string other = name;
        other[place] = static_cast<char>(c);
        bool same = base::equals_ignore_case(other, name);
        ASSERT_EQ(field_id(other) == id, same) << name << " with byte " << c << " at " << place;
      }
    }
    EXPECT_EQ(field_id(name + "x"), FieldId::other) << name;
    EXPECT_NE(field_id(name.substr(1)), id) << name;
  }
}

TEST(FieldIdTest, OthersAreOther) {
  for (const char* name :
       {"", "x", "cookie", "accept", "set-cookie", "content-encoding", "abcdefghijklmnop"}) {
    EXPECT_EQ(field_id(name), FieldId::other) << name;
  }
}

}  // namespace
}  // namespace ringside::http
