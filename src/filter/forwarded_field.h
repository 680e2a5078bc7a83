// The Forwarded field (RFC 7239): reading the `for` of each element, and writing one element.
#pragma once

#include <cstddef>
#include <string_view>

#include "ringside/base/arena.h"
#include "ringside/filter/forwarding.h"
#include "ringside/http/writer.h"

namespace ringside::filter {

// Walks the elements of one Forwarded value. Commas and semicolons inside quoted strings separate
// nothing (RFC 9110 §5.6.4).
class ForwardedReader {
 public:
  explicit ForwardedReader(std::string_view value) : rest_(value) {}

  enum class Step { element, end, malformed };
  // After `element`, `node` is the unquoted value of `for`, in place or in the arena; empty when
  // the element has none.
  Step next(base::Arena& arena, std::string_view& node);
  // Of the element that was read last; empty when it has none.
  std::string_view proto() const { return proto_; }

 private:
  bool pair(base::Arena& arena, std::string_view& node);
  bool value(base::Arena& arena, std::string_view& out);
  std::string_view token();
  void skip_blanks();

  std::string_view rest_;
  std::string_view proto_;
};

// Appends "for=...;proto=...;host=..." about this hop.
void append_forwarded_element(http::HeadWriter& out, const RequestFacts& facts);

}  // namespace ringside::filter
