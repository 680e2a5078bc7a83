#include "ringside/http/writer.h"

#include <charconv>
#include <cstring>

namespace ringside::http {
namespace {

constexpr std::size_t decimal_digits_max = 20;  // of a 64-bit number
constexpr std::size_t bytes_min = 256;

}  // namespace

HeadWriter::HeadWriter(base::Arena& arena, std::size_t bytes_hint) : arena_(&arena) {
  std::size_t bytes = bytes_hint < bytes_min ? bytes_min : bytes_hint;
  begin_ = at_ = arena.allocate_array<char>(bytes);
  end_ = begin_ == nullptr ? nullptr : begin_ + bytes;
}

bool HeadWriter::grow(std::size_t bytes) {
  if (begin_ == nullptr) return false;
  auto used = static_cast<std::size_t>(at_ - begin_);
  std::size_t capacity = 2 * static_cast<std::size_t>(end_ - begin_) + bytes;
  char* bigger = arena_->allocate_array<char>(capacity);
  if (bigger == nullptr) {
    begin_ = at_ = end_ = nullptr;
    return false;
  }
  std::memcpy(bigger, begin_, used);
  begin_ = bigger;
  at_ = bigger + used;
  end_ = bigger + capacity;
  return true;
}

void HeadWriter::request_line(std::string_view method, std::string_view target) {
  constexpr std::string_view tail = " HTTP/1.1\r\n";
  if (!room(method.size() + 1 + target.size() + tail.size())) return;
  put(method);
  put(" ");
  put(target);
  put(tail);
}

void HeadWriter::status_line(std::uint16_t status, std::string_view reason) {
  if (reason.empty()) reason = reason_phrase(status);
  constexpr std::string_view version = "HTTP/1.1 ";
  if (!room(version.size() + decimal_digits_max + 1 + reason.size() + 2)) return;
  put(version);
  at_ = std::to_chars(at_, end_, status).ptr;
  put(" ");
  put(reason);
  put("\r\n");
}

void HeadWriter::field(std::string_view name, std::uint64_t value) {
  begin_field(name);
  append(value);
  end_field();
}

void HeadWriter::append(std::uint64_t number) {
  if (room(decimal_digits_max)) at_ = std::to_chars(at_, end_, number).ptr;
}

std::string_view HeadWriter::finish() {
  append("\r\n");
  if (begin_ == nullptr) return {};
  arena_->shrink(at_, end_);
  end_ = at_;
  return {begin_, static_cast<std::size_t>(at_ - begin_)};
}

std::size_t write_chunk_size(std::uint64_t bytes, char* out) {
  char* end = std::to_chars(out, out + 16, bytes, 16).ptr;
  std::memcpy(end, "\r\n", 2);
  return static_cast<std::size_t>(end + 2 - out);
}

}  // namespace ringside::http
