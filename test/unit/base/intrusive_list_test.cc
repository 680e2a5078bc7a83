#include "ringside/base/intrusive_list.h"

#include <gtest/gtest.h>

#include <list>
#include <memory>
#include <random>
#include <vector>

namespace ringside::base {
namespace {

struct First;
struct Second;

struct Item : ListHook<First>, ListHook<Second> {
  explicit Item(int number) : value(number) {}
  int value;
};
using FirstList = IntrusiveList<Item, First>;
using SecondList = IntrusiveList<Item, Second>;

std::vector<int> values(FirstList& list) {
  std::vector<int> out;
  list.for_each([&](Item& item) { out.push_back(item.value); });
  return out;
}

bool linked(const Item& item) {
  return static_cast<const ListHook<First>&>(item).linked();
}

TEST(IntrusiveList, is_empty_at_first) {
  FirstList list;
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.front(), nullptr);
  EXPECT_EQ(list.back(), nullptr);
  EXPECT_EQ(list.pop_front(), nullptr);
}

TEST(IntrusiveList, keeps_order) {
  Item a(1), b(2), c(3);
  FirstList list;
  list.push_back(b);
  list.push_back(c);
  list.push_front(a);
  EXPECT_EQ(values(list), (std::vector{1, 2, 3}));
  EXPECT_EQ(list.front(), &a);
  EXPECT_EQ(list.back(), &c);
  EXPECT_EQ(list.pop_front(), &a);
  EXPECT_FALSE(linked(a));
  EXPECT_EQ(values(list), (std::vector{2, 3}));
}

TEST(IntrusiveList, an_element_may_be_pushed_again_where_it_is) {
  Item a(1), b(2);
  FirstList list;
  list.push_back(a);
  list.push_back(a);
  EXPECT_EQ(values(list), (std::vector{1}));
  list.push_front(a);
  EXPECT_EQ(values(list), (std::vector{1}));
  list.push_back(b);
  list.push_back(b);
  list.push_front(a);
  EXPECT_EQ(values(list), (std::vector{1, 2}));
  list.push_back(a);
  EXPECT_EQ(values(list), (std::vector{2, 1}));
  list.push_front(a);
  EXPECT_EQ(values(list), (std::vector{1, 2}));
}

TEST(IntrusiveList, pushing_moves_from_another_list) {
  Item a(1), b(2);
  FirstList from;
  FirstList to;
  from.push_back(a);
  from.push_back(b);
  to.push_back(a);
  EXPECT_EQ(values(from), (std::vector{2}));
  EXPECT_EQ(values(to), (std::vector{1}));
}

TEST(IntrusiveList, a_destroyed_element_unlinks_itself) {
  Item a(1), c(3);
  FirstList list;
  list.push_back(a);
  {
    Item b(2);
    list.push_back(b);
    list.push_back(c);
    EXPECT_EQ(values(list), (std::vector{1, 2, 3}));
  }
  EXPECT_EQ(values(list), (std::vector{1, 3}));
}

TEST(IntrusiveList, a_destroyed_list_unlinks_its_elements) {
  Item a(1);
  {
    FirstList list;
    list.push_back(a);
    EXPECT_TRUE(linked(a));
  }
  EXPECT_FALSE(linked(a));
}

TEST(IntrusiveList, unlinking_what_is_not_linked_does_nothing) {
  Item a(1);
  static_cast<ListHook<First>&>(a).unlink();
  EXPECT_FALSE(linked(a));
}

TEST(IntrusiveList, tags_are_independent) {
  Item a(1);
  FirstList first;
  SecondList second;
  first.push_back(a);
  second.push_back(a);
  EXPECT_EQ(second.front(), &a);
  EXPECT_EQ(first.pop_front(), &a);
  EXPECT_EQ(second.front(), &a);
}

TEST(IntrusiveList, splice_moves_all_in_order) {
  Item a(1), b(2), c(3), d(4);
  FirstList list;
  FirstList other;
  list.splice_back(other);
  EXPECT_TRUE(list.empty());
  other.push_back(c);
  other.push_back(d);
  list.splice_back(other);
  EXPECT_EQ(values(list), (std::vector{3, 4}));
  EXPECT_TRUE(other.empty());
  other.push_back(a);
  other.push_back(b);
  list.splice_back(other);
  EXPECT_EQ(values(list), (std::vector{3, 4, 1, 2}));
  EXPECT_EQ(list.back(), &b);
  other.push_back(d);
  EXPECT_EQ(values(other), (std::vector{4}));
  EXPECT_EQ(values(list), (std::vector{3, 1, 2}));
}

TEST(IntrusiveList, for_each_may_unlink_the_current_element) {
  Item a(1), b(2), c(3);
  FirstList list;
  list.push_back(a);
  list.push_back(b);
  list.push_back(c);
  list.for_each([](Item& item) {
    if (item.value != 2) static_cast<ListHook<First>&>(item).unlink();
  });
  EXPECT_EQ(values(list), (std::vector{2}));
}

// Two lists against two std::lists under random operations.
TEST(IntrusiveList, agrees_with_a_reference) {
  std::mt19937 random(7);
  std::vector<std::unique_ptr<Item>> items;
  for (int i = 0; i < 12; ++i)
    items.push_back(std::make_unique<Item>(i));
  FirstList lists[2];
  std::list<int> expected[2];
  auto forget = [&](int value) {
    for (auto& list : expected)
      list.remove(value);
  };
  for (int step = 0; step < 20'000; ++step) {
    Item& item = *items[random() % items.size()];
    unsigned which = random() % 2;
    switch (random() % 6) {
      case 0:
      case 1:
        forget(item.value);
        expected[which].push_back(item.value);
        lists[which].push_back(item);
        break;
      case 2:
        forget(item.value);
        expected[which].push_front(item.value);
        lists[which].push_front(item);
        break;
      case 3:
        forget(item.value);
        static_cast<ListHook<First>&>(item).unlink();
        break;
      case 4:
        if (Item* popped = lists[which].pop_front()) {
          EXPECT_EQ(popped->value, expected[which].front());
          expected[which].pop_front();
        }
        break;
      case 5:
        expected[which].splice(expected[which].end(), expected[1 - which]);
        lists[which].splice_back(lists[1 - which]);
        break;
    }
    for (int i = 0; i < 2; ++i)
      ASSERT_EQ(values(lists[i]), std::vector<int>(expected[i].begin(), expected[i].end()));
  }
}

}  // namespace
}  // namespace ringside::base
