#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "ringside/tls/engine.h"

namespace ringside::tls {

bool OutputStore::append(std::span<const char> bytes) {
  if (bytes.empty()) return true;
  if (begin_ != 0) {
    std::memmove(data_, data_ + begin_, this->bytes());
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ + bytes.size() > capacity_) {
    const std::size_t wanted = std::max(2 * capacity_, end_ + bytes.size());
    auto* grown = static_cast<char*>(std::realloc(data_, wanted));
    if (grown == nullptr) return false;
    data_ = grown;
    capacity_ = wanted;
  }
  std::memcpy(data_ + end_, bytes.data(), bytes.size());
  end_ += bytes.size();
  return true;
}

std::size_t OutputStore::take(std::span<char> out) {
  const std::size_t some = std::min(out.size(), bytes());
  if (some == 0) return 0;
  std::memcpy(out.data(), data_ + begin_, some);
  begin_ += some;
  if (empty()) release();
  return some;
}

void OutputStore::release() {
  std::free(data_);
  data_ = nullptr;
  capacity_ = begin_ = end_ = 0;
}

}  // namespace ringside::tls
