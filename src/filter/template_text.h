// The values of variables, and templates written without copying them first.
#pragma once

#include <charconv>
#include <cstdint>
#include <string_view>

#include "ringside/filter/forwarding.h"

namespace ringside::filter {

// Up to three views, one behind the other: a variable's value without a copy ("uri" needs three).
struct VariableText {
  std::string_view parts[3];
  char digits[8];  // holds a port when one of the parts is that number
  bool empty() const { return parts[0].empty() && parts[1].empty() && parts[2].empty(); }
};

// Fills `out`. Its parts may point into `out` itself.
void variable_text(const config::TemplatePart& part, const RequestFacts& facts, VariableText& out);

// Calls `sink(piece)` for every piece of the text, without the bytes that would end a line (CR, LF,
// NUL: RFC 9110 §5.5), wherever they came from.
template <typename Sink>
void clean_pieces(std::string_view text, Sink&& sink) {
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c > '\r' || (c != '\r' && c != '\n' && c != '\0')) [[likely]]
      continue;
    if (i > begin) sink(text.substr(begin, i - begin));
    begin = i + 1;
  }
  if (begin < text.size()) sink(text.substr(begin));
}

template <typename Sink>
void template_pieces(const config::Template& text, const RequestFacts& facts, Sink&& sink) {
  for (const config::TemplatePart& part : text) {
    if (part.variable == config::Variable::none) {
      clean_pieces(part.literal, sink);
      continue;
    }
    VariableText value;
    variable_text(part, facts, value);
    for (std::string_view piece : value.parts)
      clean_pieces(piece, sink);
  }
}

}  // namespace ringside::filter
