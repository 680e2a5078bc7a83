// A doubly linked list whose links live in its elements: no allocation, O(1) removal.
#pragma once

#include <cstddef>

namespace ringside::base {

// Inherit from ListHook<Tag> once for each list an object can be on. An object is on at most one
// list per tag; unlinking one that is on none is allowed and does nothing.
template <typename Tag = void>
class ListHook {
 public:
  ListHook() = default;
  ~ListHook() { unlink(); }
  ListHook(const ListHook&) = delete;
  ListHook& operator=(const ListHook&) = delete;

  bool linked() const { return next_ != nullptr; }
  void unlink() {
    if (next_ == nullptr) return;
    prev_->next_ = next_;
    next_->prev_ = prev_;
    next_ = prev_ = nullptr;
  }

 private:
  template <typename T, typename U>
  friend class IntrusiveList;
  ListHook* next_ = nullptr;
  ListHook* prev_ = nullptr;
};

// Not thread-safe. The list does not own its elements; they unlink themselves when destroyed.
template <typename T, typename Tag = void>
class IntrusiveList {
  using Hook = ListHook<Tag>;

 public:
  IntrusiveList() { head_.next_ = head_.prev_ = &head_; }
  ~IntrusiveList() {
    while (!empty())
      head_.next_->unlink();
    head_.next_ = head_.prev_ = nullptr;
  }
  IntrusiveList(const IntrusiveList&) = delete;
  IntrusiveList& operator=(const IntrusiveList&) = delete;

  bool empty() const { return head_.next_ == &head_; }
  T* front() { return empty() ? nullptr : static_cast<T*>(head_.next_); }
  T* back() { return empty() ? nullptr : static_cast<T*>(head_.prev_); }
  // An element of a list (this one too) moves.
  void push_back(T& item) {
    Hook& hook = item;
    hook.unlink();  // first, as the last element of this list may be `item` itself
    insert(*head_.prev_, hook);
  }
  void push_front(T& item) {
    Hook& hook = item;
    hook.unlink();
    insert(head_, hook);
  }
  T* pop_front() {
    T* item = front();
    if (item != nullptr) static_cast<Hook*>(item)->unlink();
    return item;
  }
  // Moves every element of `other` (another list) to the end of this one, in their order. O(1).
  void splice_back(IntrusiveList& other) {
    if (other.empty()) return;
    Hook* first = other.head_.next_;
    Hook* last = other.head_.prev_;
    other.head_.next_ = other.head_.prev_ = &other.head_;
    first->prev_ = head_.prev_;
    head_.prev_->next_ = first;
    last->next_ = &head_;
    head_.prev_ = last;
  }
  // `fn(T&)` may unlink the element that it was given, and no other.
  template <typename Fn>
  void for_each(Fn&& fn) {
    for (Hook* at = head_.next_; at != &head_;) {
      Hook* next = at->next_;
      fn(*static_cast<T*>(at));
      at = next;
    }
  }

 private:
  static void insert(Hook& after, Hook& item) {
    item.next_ = after.next_;
    item.prev_ = &after;
    after.next_->prev_ = &item;
    after.next_ = &item;
  }
  Hook head_;
};

}  // namespace ringside::base
