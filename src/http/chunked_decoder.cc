#include <algorithm>
#include <cassert>

#include "ringside/http/parser.h"

#include "byte_class.h"

namespace ringside::http {
namespace {

constexpr std::uint16_t line_bytes_max = 4096;
constexpr std::uint8_t digits_max = 16;  // 64 bits

constexpr bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

// What a quoted-string may hold, escaped or not: HTAB, SP, VCHAR, obs-text (RFC 9110 §5.6.4).
constexpr bool is_text(char c) {
  auto byte = static_cast<unsigned char>(c);
  return byte == '\t' || (byte >= ' ' && byte != 0x7f);
}

}  // namespace

bool ChunkedDecoder::fail(std::string_view reason) {
  state_ = State::failed;
  fault_ = reason;
  return false;
}

bool ChunkedDecoder::go(State state) {
  state_ = state;
  return true;
}

ChunkedDecoder::Step ChunkedDecoder::next(std::string_view input) {
  std::size_t at = 0;
  while (at < input.size() && state_ < State::done) {
    if (state_ == State::data) {
      auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(remaining_, input.size() - at));
      skip(bytes);
      return {Event::data, at + bytes, input.substr(at, bytes)};
    }
    if (take(input[at])) ++at;
  }
  if (state_ == State::done) return {Event::last_chunk, at, {}};
  return {state_ == State::failed ? Event::failed : Event::need_more, at, {}};
}

void ChunkedDecoder::skip(std::uint64_t bytes) {
  assert(bytes <= chunk_remaining());
  remaining_ -= bytes;
  if (remaining_ == 0 && state_ == State::data) state_ = State::data_cr;
}

bool ChunkedDecoder::take(char byte) {
  switch (state_) {
    case State::data_cr:
      return byte == '\r' ? go(State::data_lf) : fail("no CRLF after the data of a chunk");
    case State::data_lf:
      line_bytes_ = digits_ = 0;
      return byte == '\n' ? go(State::size) : fail("no CRLF after the data of a chunk");
    default:
      break;
  }
  if (++line_bytes_ > line_bytes_max) return fail("chunk-size line too long");
  if (state_ == State::size) return take_in_size(byte);
  if (state_ != State::size_lf) return take_in_extension(byte);
  if (byte != '\n') return fail("bare CR in a chunk-size line");
  return go(remaining_ == 0 ? State::done : State::data);
}

bool ChunkedDecoder::take_in_size(char byte) {
  int digit = hex_value(byte);
  if (digit >= 0) {
    if (++digits_ > digits_max) return fail("chunk size too large");
    remaining_ = remaining_ << 4 | static_cast<std::uint64_t>(digit);
    return true;
  }
  if (digits_ == 0) return fail("chunk without a size");
  if (is_blank(byte)) return go(State::before_semicolon);
  return end_of_extension(byte);
}

// Where an extension, or the size before the first, may end.
bool ChunkedDecoder::end_of_extension(char byte) {
  if (byte == ';') return go(State::before_name);
  if (byte == '\r') return go(State::size_lf);
  if (byte == '\n') return fail("bare LF in a chunk-size line");
  return fail(state_ == State::size ? "invalid chunk size" : "malformed chunk extension");
}

bool ChunkedDecoder::take_in_extension(char byte) {
  switch (state_) {
    case State::before_semicolon:
      if (is_blank(byte)) return true;
      return byte == ';' ? go(State::before_name) : fail("malformed chunk extension");
    case State::before_name:
      if (is_blank(byte)) return true;
      return token_bytes.has(byte) ? go(State::name) : fail("malformed chunk extension");
    case State::name:
      if (token_bytes.has(byte)) return true;
      if (byte == '=') return go(State::before_value);
      return is_blank(byte) ? go(State::after_name) : end_of_extension(byte);
    case State::after_name:
      if (is_blank(byte)) return true;
      if (byte == '=') return go(State::before_value);
      return byte == ';' ? go(State::before_name) : fail("malformed chunk extension");
    default:
      return take_in_value(byte);
  }
}

bool ChunkedDecoder::take_in_value(char byte) {
  switch (state_) {
    case State::before_value:
      if (is_blank(byte)) return true;
      if (byte == '"') return go(State::quoted_value);
      return token_bytes.has(byte) ? go(State::token_value) : fail("malformed chunk extension");
    case State::token_value:
      if (token_bytes.has(byte)) return true;
      return is_blank(byte) ? go(State::before_semicolon) : end_of_extension(byte);
    case State::quoted_value:
      if (byte == '"') return go(State::after_quoted_value);
      if (byte == '\\') return go(State::quoted_pair);
      return is_text(byte) || fail("malformed chunk extension");
    case State::quoted_pair:
      return is_text(byte) ? go(State::quoted_value) : fail("malformed chunk extension");
    default:  // after_quoted_value
      return is_blank(byte) ? go(State::before_semicolon) : end_of_extension(byte);
  }
}

}  // namespace ringside::http
