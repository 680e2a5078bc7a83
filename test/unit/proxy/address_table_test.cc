#include "ringside/proxy/address_table.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace ringside::proxy {
namespace {

AddressKey key(const std::string& ip) {
  return AddressKey::of(*net::Address::from_ip(ip, 1234)).value();
}

AddressKey key(std::uint64_t number) {
  return {.bits = number, .kind = AddressKey::Kind::v6};
}

TEST(AddressKey, is_an_address_or_a_slash_64) {
  EXPECT_EQ(key("10.0.0.1"), key("10.0.0.1"));
  EXPECT_NE(key("10.0.0.1"), key("10.0.0.2"));
  EXPECT_EQ(key("::ffff:10.0.0.1"), key("10.0.0.1"));
  EXPECT_EQ(key("2001:db8:0:1::1"), key("2001:db8:0:1:ffff::2"));
  EXPECT_NE(key("2001:db8:0:1::1"), key("2001:db8:0:2::1"));
  EXPECT_NE(key("::1"), key("0.0.0.0")) << "the same bits";
  EXPECT_FALSE(AddressKey::of(*net::Address::from_unix("/run/a.sock")).has_value());
}

TEST(AddressTable, counts_up_to_the_limit_and_forgets) {
  AddressTable table(1);
  EXPECT_TRUE(table.enter(key("10.0.0.1"), 2));
  EXPECT_TRUE(table.enter(key("10.0.0.1"), 2));
  EXPECT_FALSE(table.enter(key("10.0.0.1"), 2));
  EXPECT_EQ(table.connections(key("10.0.0.1")), 2U);
  EXPECT_TRUE(table.enter(key("10.0.0.2"), 2)) << "others have a count of their own";
  EXPECT_EQ(table.addresses(), 2U);
  table.leave(key("10.0.0.1"));
  EXPECT_TRUE(table.enter(key("10.0.0.1"), 2));
  table.leave(key("10.0.0.1"));
  table.leave(key("10.0.0.1"));
  table.leave(key("10.0.0.2"));
  EXPECT_EQ(table.addresses(), 0U);
  EXPECT_EQ(table.connections(key("10.0.0.1")), 0U);
}

TEST(AddressTable, a_limit_that_became_lower_holds_for_who_comes_next) {
  AddressTable table(1);
  EXPECT_TRUE(table.enter(key("::1"), 2));
  EXPECT_TRUE(table.enter(key("::1"), 2));
  EXPECT_FALSE(table.enter(key("::1"), 1));
  EXPECT_EQ(table.connections(key("::1")), 2U);
}

// Against a plain model: every search path is cut and closed again many times.
TEST(AddressTable, agrees_with_a_model) {
  constexpr std::uint64_t addresses = 3'000;
  AddressTable table(7);
  std::vector<std::uint32_t> model(addresses, 0);
  std::uint64_t state = 42;
  auto next = [&state] {
    return (state = state * 6364136223846793005ULL + 1442695040888963407ULL) >> 33;
  };
  for (int step = 0; step < 200'000; ++step) {
    const std::uint64_t address = next() % addresses;
    if (next() % 2 == 0) {
      ASSERT_EQ(table.enter(key(address), 3), model[address] < 3);
      if (model[address] < 3) ++model[address];
    } else if (model[address] > 0) {
      table.leave(key(address));
      --model[address];
    }
  }
  std::size_t present = 0;
  for (std::uint64_t address = 0; address < addresses; ++address) {
    ASSERT_EQ(table.connections(key(address)), model[address]) << address;
    present += model[address] != 0;
  }
  EXPECT_EQ(table.addresses(), present);
}

TEST(AddressTable, many_threads_never_pass_the_limit) {
  static constexpr std::uint32_t most = 3;
  AddressTable table(9);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&table] {
      for (int round = 0; round < 5'000; ++round) {
        std::vector<AddressPlace> places;
        for (std::uint64_t address = 0; address < 8; ++address) {
          if (table.enter(key(address), most)) places.emplace_back(table, key(address));
          EXPECT_LE(table.connections(key(address)), most);
        }
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(table.addresses(), 0U);
}

TEST(AddressPlace, counts_once_wherever_it_moves) {
  AddressTable table(1);
  {
    ASSERT_TRUE(table.enter(key("10.0.0.1"), 1));
    AddressPlace first(table, key("10.0.0.1"));
    AddressPlace second(std::move(first));
    AddressPlace third;
    third = std::move(second);
    EXPECT_EQ(table.connections(key("10.0.0.1")), 1U);
  }
  EXPECT_EQ(table.addresses(), 0U);
}

}  // namespace
}  // namespace ringside::proxy
