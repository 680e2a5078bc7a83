#include "ringside/net/address.h"

#include <gtest/gtest.h>

#include <string>

namespace ringside::net {
namespace {

std::string ip(const Address& address) {
  char out[64];
  return {out, address.write_ip(out, sizeof out)};
}

TEST(Address, reads_and_writes_ip) {
  auto four = Address::from_ip("10.0.0.1", 8080);
  ASSERT_TRUE(four.has_value());
  EXPECT_EQ(four->family(), AF_INET);
  EXPECT_EQ(four->port(), 8080);
  EXPECT_EQ(four->to_string(), "10.0.0.1:8080");
  EXPECT_EQ(ip(*four), "10.0.0.1");
  for (const char* text : {"0.0.0.0", "1.20.103.9", "255.255.255.255"})
    EXPECT_EQ(ip(*Address::from_ip(text, 1)), text);
  auto six = Address::from_ip("2001:DB8::1", 443);
  ASSERT_TRUE(six.has_value());
  EXPECT_EQ(six->to_string(), "[2001:db8::1]:443");
  EXPECT_EQ(ip(*six), "2001:db8::1");
}

TEST(Address, a_mapped_address_is_written_as_ipv4) {
  auto mapped = Address::from_ip("::ffff:192.0.2.7", 1);
  ASSERT_TRUE(mapped.has_value());
  EXPECT_EQ(ip(*mapped), "192.0.2.7");
}

TEST(Address, refuses_what_is_no_address) {
  for (const char* text : {"", "localhost", "10.0.0", "10.0.0.256", "[::1]", "::1%lo", "1.2.3.4 ",
                           "0123456789012345678901234567890123456789012345678901234567890123"}) {
    EXPECT_FALSE(Address::from_ip(text, 1).has_value()) << text;
  }
}

TEST(Address, unix_paths) {
  auto path = Address::from_unix("/run/app.sock");
  ASSERT_TRUE(path.has_value());
  EXPECT_EQ(path->to_string(), "unix:/run/app.sock");
  EXPECT_EQ(ip(*path), "unix:");
  EXPECT_EQ(path->port(), 0);
  auto abstract = Address::from_unix("@app");
  ASSERT_TRUE(abstract.has_value());
  EXPECT_EQ(abstract->to_string(), "unix:@app");
  EXPECT_TRUE(Address::from_unix(std::string(107, 'x')).has_value());
  EXPECT_FALSE(Address::from_unix(std::string(108, 'x')).has_value());
  EXPECT_FALSE(Address::from_unix("").has_value());
}

TEST(Address, equality_is_of_all_parts) {
  EXPECT_EQ(*Address::from_ip("10.0.0.1", 80), *Address::from_ip("10.0.0.1", 80));
  EXPECT_FALSE(*Address::from_ip("10.0.0.1", 80) == *Address::from_ip("10.0.0.1", 81));
  EXPECT_FALSE(*Address::from_ip("10.0.0.1", 80) == *Address::from_ip("10.0.0.2", 80));
  EXPECT_FALSE(*Address::from_ip("::1", 80) == *Address::from_ip("::2", 80));
  EXPECT_FALSE(*Address::from_ip("::1", 80) == *Address::from_ip("127.0.0.1", 80));
  EXPECT_EQ(*Address::from_unix("/a"), *Address::from_unix("/a"));
  EXPECT_FALSE(*Address::from_unix("/a") == *Address::from_unix("/b"));
}

TEST(Address, from_raw_keeps_all) {
  auto six = Address::from_ip("::1", 9);
  EXPECT_EQ(Address::from_raw(six->raw(), six->length()), *six);
}

}  // namespace
}  // namespace ringside::net
