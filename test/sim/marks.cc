#include "marks.h"

#include "random.h"

namespace ringside::sim {

namespace {

// Eight bytes at a time; never the poison pattern in all of them.
class Marks {
 public:
  Marks(std::uint32_t exchange, Lane lane)
      : base_(std::uint64_t{exchange} << 8 | static_cast<std::uint64_t>(lane)) {}

  char at(std::size_t offset) {
    if (const std::uint64_t word = offset / 8; word != word_) {
      word_ = word;
      value_ = Random(base_ * 0x9e3779b97f4a7c15ULL + word).next();
    }
    return static_cast<char>(value_ >> (offset % 8 * 8));
  }

 private:
  std::uint64_t base_;
  std::uint64_t word_ = ~std::uint64_t{0};
  std::uint64_t value_ = 0;
};

}  // namespace

std::string marked(std::uint32_t exchange, Lane lane, std::size_t offset, std::size_t bytes) {
  Marks marks(exchange, lane);
  std::string out(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i)
    out[i] = marks.at(offset + i);
  return out;
}

std::size_t first_wrong(std::uint32_t exchange, Lane lane, std::size_t offset,
                        std::string_view data) {
  Marks marks(exchange, lane);
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (data[i] != marks.at(offset + i)) return i;
  }
  return std::string_view::npos;
}

}  // namespace ringside::sim
