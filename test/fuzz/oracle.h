// What fuzz targets check with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "ringside/base/arena.h"
#include "ringside/http/parser.h"

#include "../../src/http/scan.h"
#include "../unit/http/outcome.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes);

namespace ringside::fuzz {

// Ends the process, so that the fuzzer keeps the input.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

inline void require_equal(const std::string& a, const std::string& b, const char* what) {
  if (a == b) return;
  std::fprintf(stderr, "%s:\n%s\n--- but\n%s\n", what, a.c_str(), b.c_str());
  std::abort();
}

// Bytes in memory of exactly their size, so that a read past them is seen.
class Exact {
 public:
  explicit Exact(std::string_view text) : bytes_(new char[text.size()]), size_(text.size()) {
    if (size_ != 0) std::memcpy(bytes_.get(), text.data(), size_);
  }
  std::string_view view() const { return {bytes_.get(), size_}; }

 private:
  std::unique_ptr<char[]> bytes_;
  std::size_t size_;
};

// A place in the input that depends on its content alone: a kept input always splits there.
inline std::size_t split_of(std::string_view input) {
  std::uint64_t hash = 14695981039346656037U;
  for (char c : input)
    hash = (hash ^ static_cast<std::uint8_t>(c)) * 1099511628211U;
  return input.empty() ? 0 : static_cast<std::size_t>(hash % (input.size() + 1));
}

// Parses `input` whole, split with the buffer moved between the calls, byte by byte, and with each
// kind of instructions; all must agree. `make` makes a parser. Returns the outcome of the whole
// run.
template <typename Make>
std::string agreed_outcome(std::string_view input, Make make) {
  using http::ParseState;
  base::ChunkPool pool;
  Exact whole(input);
  base::Arena arena(pool);
  auto parser = make(arena);
  ParseState state = parser.parse(whole.view());
  std::string expected = http::test::outcome(parser, state);

  {
    base::Arena split_arena(pool);
    auto split = make(split_arena);
    auto first = std::make_unique<Exact>(input.substr(0, split_of(input)));
    ParseState split_state = split.parse(first->view());
    if (split_state == ParseState::need_more) {
      split_state = split.parse(whole.view());
      first.reset();
    }
    require_equal(expected, http::test::outcome(split, split_state), "split input differs");
  }
  {
    base::Arena slow_arena(pool);
    auto slow = make(slow_arena);
    ParseState slow_state = ParseState::need_more;
    for (std::size_t n = 0; n <= input.size() && slow_state == ParseState::need_more; ++n) {
      slow_state = slow.parse(whole.view().substr(0, n));
    }
    require_equal(expected, http::test::outcome(slow, slow_state), "bytewise input differs");
  }
  http::scan::Level best = http::scan::active_level();
  for (http::scan::Level level : http::scan::all_levels) {
    if (!http::scan::force_level(level)) continue;
    base::Arena level_arena(pool);
    auto other = make(level_arena);
    ParseState other_state = other.parse(whole.view());
    require_equal(expected, http::test::outcome(other, other_state), "instruction sets differ");
  }
  http::scan::force_level(best);
  return expected;
}

// What no parsed head may hold, whatever came in.
inline void check_fields(const http::FieldList& fields) {
  int lengths = 0;
  int codings = 0;
  for (const http::Field& field : fields) {
    require(!field.name.empty() && http::token_bytes.has_all(field.name), "a name is a token");
    require(http::scan::line_stop(field.value.data(), field.value.size()) == field.value.size(),
            "a value has no control characters");
    require(field.id == http::field_id(field.name), "ids are right");
    lengths += field.id == http::FieldId::content_length;
    codings += field.id == http::FieldId::transfer_encoding;
  }
  require(lengths + codings <= 1, "one framing field at most");
}

}  // namespace ringside::fuzz
