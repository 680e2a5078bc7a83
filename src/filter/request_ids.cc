#include <algorithm>
#include <bit>
#include <cstring>

#include "ringside/filter/forwarding.h"

namespace ringside::filter {
namespace {

constexpr std::size_t id_bytes_max = 128;
constexpr std::size_t hex_digits = 32;
// The all-zero state is the one that never leaves itself.
constexpr std::uint64_t seed_instead_of_none = 0x9E3779B97F4A7C15ULL;

bool is_id_char(char c) {
  const char low = static_cast<char>(c | 0x20);
  if ((low >= 'a' && low <= 'z') || (c >= '0' && c <= '9')) return true;
  return c == '.' || c == '_' || c == '~' || c == '+' || c == '/' || c == '=' || c == '-';
}

bool is_well_formed(std::string_view id) {
  return !id.empty() && id.size() <= id_bytes_max && std::all_of(id.begin(), id.end(), is_id_char);
}

// xoroshiro128++ (Blackman and Vigna): ids need to differ, not to be secret.
std::uint64_t next_word(std::uint64_t* state) {
  const std::uint64_t a = state[0];
  std::uint64_t b = state[1];
  const std::uint64_t result = std::rotl(a + b, 17) + a;
  b ^= a;
  state[0] = std::rotl(a, 49) ^ b ^ (b << 21);
  state[1] = std::rotl(b, 28);
  return result;
}

void write_hex(std::uint64_t word, char* out) {
  static constexpr char digits[] = "0123456789abcdef";
  for (int shift = 60; shift >= 0; shift -= 4)
    *out++ = digits[(word >> shift) & 15];
}

}  // namespace

RequestIds::RequestIds(std::uint64_t seed_a, std::uint64_t seed_b) : state_{seed_a, seed_b} {
  if ((seed_a | seed_b) == 0) state_[0] = seed_instead_of_none;
}

std::string_view RequestIds::next(base::Arena& arena) {
  char* const out = arena.allocate_array<char>(hex_digits);
  if (out == nullptr) return {};
  write_hex(next_word(state_), out);
  write_hex(next_word(state_), out + hex_digits / 2);
  return {out, hex_digits};
}

void RequestIds::fill(std::span<std::uint8_t, 16> out) {
  for (std::size_t at = 0; at < out.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t word = next_word(state_);
    std::memcpy(out.data() + at, &word, sizeof word);
  }
}

std::string_view RequestIds::keep_or_next(const RequestFacts& facts, base::Arena& arena) {
  if (facts.peer_trusted && facts.request_fields != nullptr) {
    const http::Field* field = facts.request_fields->find(http::FieldId::x_request_id);
    if (field != nullptr && !field->hop_by_hop && is_well_formed(field->value)) {
      return arena.copy(field->value);
    }
  }
  return next(arena);
}

}  // namespace ringside::filter
