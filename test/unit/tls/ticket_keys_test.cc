#include "ringside/tls/ticket_keys.h"

#include <atomic>
#include <thread>

#include "authority.h"

namespace ringside::tls::test {
namespace {

const std::vector<unsigned char> binding_a(32, 'a');
const std::vector<unsigned char> binding_b(32, 'b');

std::string key_bytes(char fill, std::size_t size = 80) {
  return std::string(size, fill);
}

bool knows(const TicketKeys& keys, const TicketKey& key, bool current) {
  TicketKey found;
  bool is_current = false;
  return keys.find(key.name, found, is_current) && found.cipher == key.cipher &&
         found.mac == key.mac && is_current == current;
}

bool lacks(const TicketKeys& keys, const TicketKey& key) {
  TicketKey found;
  bool is_current = false;
  return !keys.find(key.name, found, is_current);
}

TEST(TlsTicketKeys, RotationKeepsOneOlderKey) {
  auto keys = TicketKeys::random(binding_a, 1000, 5000).value();
  const TicketKey first = keys->current();
  EXPECT_TRUE(knows(*keys, first, true));
  EXPECT_FALSE(keys->rotate(5999));
  EXPECT_TRUE(keys->rotate(6000));
  const TicketKey second = keys->current();
  EXPECT_NE(first.name, second.name);
  EXPECT_NE(first.cipher, second.cipher);
  EXPECT_TRUE(knows(*keys, second, true));
  EXPECT_TRUE(knows(*keys, first, false));
  EXPECT_FALSE(keys->rotate(6999));
  EXPECT_TRUE(keys->rotate(7000));
  EXPECT_TRUE(lacks(*keys, first));
  EXPECT_TRUE(knows(*keys, second, false));
  // After a long pause the current key is too old to be kept at all.
  const TicketKey third = keys->current();
  EXPECT_TRUE(keys->rotate(9000));
  EXPECT_TRUE(lacks(*keys, third));
}

TEST(TlsTicketKeys, AFileGivesTheSameKeysEverywhereButOnlyForOneBinding) {
  const Folder folder;
  const std::string file = folder.write("k", key_bytes('1') + key_bytes('2'));
  const auto here = TicketKeys::from_file(binding_a, file).value();
  const auto there = TicketKeys::from_file(binding_a, file).value();
  const auto other = TicketKeys::from_file(binding_b, file).value();
  EXPECT_TRUE(knows(*there, here->current(), true));
  EXPECT_TRUE(lacks(*other, here->current()));
  EXPECT_NE(other->current().cipher, here->current().cipher);
  EXPECT_FALSE(here->rotate(1ULL << 40));
  // A new key in front; the one that was in front is now an older one.
  const TicketKey first = here->current();
  folder.write("k", key_bytes('3') + key_bytes('1'));
  EXPECT_TRUE(here->reload());
  EXPECT_FALSE(lacks(*here, first));
  EXPECT_TRUE(knows(*here, first, false));
  // The names are not those of the file, and neither are the keys.
  EXPECT_NE(first.name[0], '1');
  EXPECT_NE(first.cipher[0], '1');
}

TEST(TlsTicketKeys, ShortKeysAndWrongSizes) {
  const Folder folder;
  EXPECT_TRUE(TicketKeys::from_file(binding_a, folder.write("k", key_bytes('1', 48))));
  EXPECT_TRUE(TicketKeys::from_file(binding_a, folder.write("k", key_bytes('1', 96))));
  auto keys = TicketKeys::from_file(binding_a, folder.write("k", key_bytes('1', 640))).value();
  const TicketKey before = keys->current();
  EXPECT_EQ(TicketKeys::from_file(binding_a, folder.write("k", "x")).error(),
            folder.path("k") + " has 1 bytes; ticket keys are 80 or 48 bytes each");
  EXPECT_EQ(keys->reload().error(),
            folder.path("k") + " has 1 bytes; ticket keys are 80 or 48 bytes each");
  EXPECT_TRUE(knows(*keys, before, true));
  EXPECT_FALSE(TicketKeys::from_file(binding_a, folder.write("k", "")));
  EXPECT_EQ(TicketKeys::from_file(binding_a, folder.write("k", key_bytes('1', 720))).error(),
            folder.path("k") + " has 9 ticket keys; at most 8 are used");
}

// For ThreadSanitizer, and against keys that are half one and half another.
TEST(TlsTicketKeys, ReadersNeverSeeAKeyInTheMaking) {
  const Folder folder;
  const std::string file = folder.write("k", key_bytes('1'));
  const TicketKey one = TicketKeys::from_file(binding_a, file).value()->current();
  auto keys = TicketKeys::from_file(binding_a, file).value();
  folder.write("k", key_bytes('2'));
  const TicketKey two = TicketKeys::from_file(binding_a, file).value()->current();
  std::atomic<bool> stop{false};
  std::atomic<int> torn{0};
  std::atomic<int> reads{0};
  auto read = [&] {
    while (!stop.load()) {
      const TicketKey key = keys->current();
      const bool is_one = key.name == one.name && key.cipher == one.cipher && key.mac == one.mac;
      const bool is_two = key.name == two.name && key.cipher == two.cipher && key.mac == two.mac;
      if (!is_one && !is_two) ++torn;
      TicketKey found;
      bool is_current = false;
      if (keys->find(one.name, found, is_current) && found.mac != one.mac) ++torn;
      ++reads;
    }
  };
  std::thread first(read);
  std::thread second(read);
  for (int i = 0; i < 500 || reads.load() < 500; ++i) {
    if (i % 2 == 0) folder.write("k", key_bytes(i % 4 == 0 ? '1' : '2'));
    EXPECT_TRUE(keys->reload());
  }
  stop = true;
  first.join();
  second.join();
  EXPECT_EQ(torn.load(), 0);
}

}  // namespace
}  // namespace ringside::tls::test
