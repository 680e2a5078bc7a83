// An owner of operations that keeps its completions and may run a function on each.
#pragma once

#include <functional>
#include <vector>

#include "ringside/ring/ring.h"

namespace ringside::ring::test {

class Owner final : public Completer {
 public:
  struct Seen {
    std::uint8_t kind;
    std::int32_t result;
    friend bool operator==(const Seen&, const Seen&) = default;
  };

  Owner() = default;
  explicit Owner(Ring& ring) : ring_(&ring) { ring.attach(*this); }
  ~Owner() override {
    if (ring_ != nullptr && attached() && in_flight() == 0) ring_->detach(*this);
  }

  void on_complete(std::uint8_t kind, const Completion& completion) override {
    last = completion;
    seen.push_back({kind, completion.result});
    if (action) action(kind, completion);
  }

  std::vector<Seen> seen;
  Completion last;
  std::function<void(std::uint8_t, const Completion&)> action;

 private:
  Ring* ring_ = nullptr;
};

inline void PrintTo(const Owner::Seen& seen, std::ostream* out) {
  *out << "{kind " << int{seen.kind} << ", result " << seen.result << '}';
}

}  // namespace ringside::ring::test
