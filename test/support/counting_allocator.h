// Counts allocations, so that a test can say "none in this section".
#pragma once

#include <cstdint>

namespace ringside::test {

// Allocations of the calling thread since it was made: malloc and all that ends there, operator new
// included. Frees are not counted. The program must link counting_allocator.cc.
class AllocationCount {
 public:
  AllocationCount() : begin_(total()) {}
  std::uint64_t count() const { return total() - begin_; }

  // Of the calling thread since it began.
  static std::uint64_t total();

 private:
  std::uint64_t begin_;
};

}  // namespace ringside::test
