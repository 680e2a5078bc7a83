// Chunked bodies with their trailers. Oracles: split input; a second decoder, written without
// regard for speed or for input that comes in pieces; decode -> encode -> decode agrees.
#include <optional>

#include "ringside/http/writer.h"

#include "oracle.h"

namespace {

using namespace ringside;
using namespace ringside::http;
using Event = ChunkedDecoder::Event;

struct Body {
  std::string data;
  std::size_t bytes = 0;  // of the coded form
};

// RFC 9112 §7.1, read as a grammar over one whole line.
class SizeLine {
 public:
  explicit SizeLine(std::string_view line) : rest_(line) {}

  std::optional<std::uint64_t> parse() {
    std::string digits;
    while (!rest_.empty() && hex_value(rest_[0]) >= 0)
      digits += take();
    if (digits.empty() || digits.size() > 16) return std::nullopt;
    while (!rest_.empty()) {
      if (!extension()) return std::nullopt;
    }
    return std::strtoull(digits.c_str(), nullptr, 16);
  }

 private:
  char take() {
    char c = rest_[0];
    rest_.remove_prefix(1);
    return c;
  }
  bool take_if(char c) {
    if (!rest_.starts_with(c)) return false;
    take();
    return true;
  }
  void blanks() {
    while (rest_.starts_with(' ') || rest_.starts_with('\t'))
      take();
  }
  bool token() {
    std::size_t before = rest_.size();
    while (!rest_.empty() && token_bytes.has(rest_[0]))
      take();
    return rest_.size() < before;
  }
  bool quoted_string() {
    while (!rest_.empty()) {
      char c = take();
      if (c == '"') return true;
      if (c == '\\') {
        if (rest_.empty()) return false;
        c = take();
      }
      if (static_cast<std::uint8_t>(c) < ' ' && c != '\t') return false;
      if (c == 0x7f) return false;
    }
    return false;
  }
  // BWS ";" BWS name [ BWS "=" BWS value ]
  bool extension() {
    blanks();
    if (!take_if(';')) return false;
    blanks();
    if (!token()) return false;
    std::string_view after_name = rest_;
    blanks();
    if (!take_if('=')) {
      rest_ = after_name;  // the blanks belong to the next extension
      return true;
    }
    blanks();
    return take_if('"') ? quoted_string() : token();
  }

  std::string_view rest_;
};

std::optional<Body> decode_plainly(std::string_view input) {
  Body body;
  for (std::string_view rest = input;;) {
    std::size_t end = rest.find("\r\n");
    if (end == std::string_view::npos || end + 2 > 4096) return std::nullopt;
    auto size = SizeLine(rest.substr(0, end)).parse();
    if (!size) return std::nullopt;
    rest.remove_prefix(end + 2);
    if (*size == 0) {
      body.bytes = input.size() - rest.size();
      return body;
    }
    if (*size > rest.size() || rest.substr(*size, 2) != "\r\n") return std::nullopt;
    body.data += rest.substr(0, *size);
    rest.remove_prefix(*size + 2);
  }
}

struct Decoded {
  Event end = Event::need_more;
  Body body;
  std::string fault;
};

bool feed(ChunkedDecoder& decoder, std::string_view piece, Decoded& into) {
  fuzz::Exact exact(piece);
  for (std::string_view rest = exact.view();;) {
    ChunkedDecoder::Step step = decoder.next(rest);
    fuzz::require(step.consumed <= rest.size(), "no more is used than there is");
    into.body.data += step.piece;
    into.body.bytes += step.consumed;
    into.end = step.event;
    rest.remove_prefix(step.consumed);
    if (step.event == Event::data) continue;
    fuzz::require(step.event != Event::need_more || rest.empty(), "all input is used");
    into.fault = decoder.fault();
    return step.event == Event::need_more;
  }
}

void require_same(const Decoded& a, const Decoded& b, const char* what) {
  fuzz::require(a.end == b.end && a.body.data == b.body.data && a.body.bytes == b.body.bytes &&
                    a.fault == b.fault,
                what);
}

Decoded decode(std::string_view input) {
  Decoded whole;
  ChunkedDecoder decoder;
  feed(decoder, input, whole);
  Decoded two;
  ChunkedDecoder split;
  std::size_t at = fuzz::split_of(input);
  if (feed(split, input.substr(0, at), two)) feed(split, input.substr(at), two);
  require_same(whole, two, "split input differs");
  Decoded slow;
  ChunkedDecoder bytewise;
  for (char c : input) {
    if (!feed(bytewise, {&c, 1}, slow)) break;
  }
  require_same(whole, slow, "bytewise input differs");
  return whole;
}

void check_round_trip(const Body& body) {
  std::string coded;
  for (std::size_t at = 0; at < body.data.size(); at += 7) {
    std::string piece = body.data.substr(at, 7);
    char line[18];
    coded.append(line, write_chunk_size(piece.size(), line));
    coded += piece + "\r\n";
  }
  coded += "0\r\n";
  ChunkedDecoder decoder;
  Decoded again;
  feed(decoder, coded, again);
  fuzz::require(again.end == Event::last_chunk && again.body.data == body.data,
                "what was coded again is the same");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  std::string_view input(reinterpret_cast<const char*>(data), bytes);
  Decoded decoded = decode(input);
  std::optional<Body> plain = decode_plainly(input);
  fuzz::require(plain.has_value() == (decoded.end == Event::last_chunk),
                "both decoders see a complete body, or neither");
  if (!plain) return 0;
  fuzz::require(plain->data == decoded.body.data && plain->bytes == decoded.body.bytes,
                "both decoders see the same body");
  check_round_trip(decoded.body);
  constexpr HeadLimits limits{.head_bytes_max = 200, .fields_max = 3};
  std::string_view rest = input.substr(decoded.body.bytes);
  fuzz::agreed_outcome(rest, [&](base::Arena& arena) { return TrailerParser(arena, limits); });
  return 0;
}
