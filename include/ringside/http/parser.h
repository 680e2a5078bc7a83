// The HTTP/1 parser: bytes in, heads and body pieces out, no I/O (RFC 9112).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ringside/base/arena.h"
#include "ringside/http/message.h"

namespace ringside::http {

struct HeadLimits {
  std::uint32_t line_bytes_max = 8192;   // request line or status line
  std::uint32_t head_bytes_max = 32768;  // all of it, start line included
  std::uint32_t fields_max = 100;
};

enum class ParseState : std::uint8_t { need_more, done, failed };

// What is wrong with a message. `status` is the answer to a client (400, 414, 431, 501, 505, or 503
// when the arena's memory ran out); for a response it is always 502. `reason` is a static, readable
// sentence for the log.
struct ParseFault {
  std::uint16_t status = 400;
  std::string_view reason;
};

namespace detail {

// What the parsers below share: the place in the input and what the fields so far say. Private to
// src/http/head_reader.h.
struct HeadReader {
  base::Arena* arena;
  const HeadLimits* limits;
  const char* base = nullptr;  // where the buffer was at the last call
  std::size_t at = 0;          // start of the line that is not complete yet
  std::size_t scanned = 0;     // bytes already searched for the end of that line
  std::uint64_t content_length = 0;
  std::uint32_t seen = 0;        // one bit for each FieldId
  std::uint32_t host_index = 0;  // of the field
  std::uint32_t host_bytes = 0;  // of its value, the port aside
  ParseState state = ParseState::need_more;
  bool chunked = false;
  bool close_option = false;
  bool keep_alive_option = false;
  bool upgrade_option = false;
  ParseFault fault{};
};

}  // namespace detail

// Parses one request head, line by line as bytes arrive; every byte is searched once, however the
// input is split. Errors are reported at the first line that has them, and a byte that no line may
// hold (bare CR or LF, NUL, other controls) as soon as it arrives. Empty lines before the request
// line are skipped (RFC 9112 §2.2), at most four.
//
// `parse(buffer)` gets all bytes of this head so far: the same bytes as the last time, more behind
// them, perhaps at another address (views are rebased). The head's views point into `buffer`, which
// must stay in place while the head is used. After `done`, `consumed()` bytes belong to this head.
// After `done` or `failed` further calls change nothing.
//
// Where RFC 9110 and 9112 leave a choice, the strict one is taken, since what two recipients read
// differently is how requests are smuggled. 400 for: Content-Length with Transfer-Encoding;
// Content-Length twice or as a list, equal values included, or above 2^63 - 1; a Transfer-Encoding
// other than one "chunked" (501 when the codings are well-formed and chunked is not misplaced: we
// know no other coding), or any in HTTP/1.0; obsolete line folding; blanks before a colon; Host
// missing in HTTP/1.1, sent twice or not host[:port] (empty is allowed, RFC 9110 §7.2); "#" or
// bytes outside ASCII in the target; authority form without a port. When the target is in absolute
// form, its authority counts and Host is only checked: who forwards the request must write Host
// from `authority` (RFC 9112 §3.2.2). Both `Content-Length` and `Transfer-Encoding` are marked
// hop_by_hop, because who forwards the message writes its framing anew, from `framing`.
class RequestParser {
 public:
  // Both must outlive the parser; the arena also the head.
  RequestParser(base::Arena& arena, const HeadLimits& limits) : reader_{&arena, &limits} {}
  ParseState parse(std::string_view buffer);
  std::size_t consumed() const { return reader_.at; }
  // True once a byte of a request line has been seen (for telling an idle close from a cut
  // request).
  bool started() const { return started_; }
  const ParseFault& fault() const { return reader_.fault; }
  RequestHead& head() { return head_; }

 private:
  ParseState read_request_line(std::string_view buffer);
  bool take_request_line(std::string_view line);
  bool take_version(std::string_view text);
  bool finish();
  void note_options();

  detail::HeadReader reader_;
  std::uint8_t empty_lines_ = 0;
  bool started_ = false;
  bool have_line_ = false;
  RequestHead head_;
};

// As RequestParser, and as strict, for responses; no empty line may stand before the status line.
// `request_method` decides about bodies (HEAD, CONNECT). The length that a response without a body
// names (to HEAD, or 304) is in its Content-Length field, which is valid once the head is done. A
// response whose length ends with the connection is not `keep_alive`, nor is a 204 that claims a
// body.
class ResponseParser {
 public:
  ResponseParser(base::Arena& arena, const HeadLimits& limits, Method request_method)
      : reader_{&arena, &limits}, request_method_(request_method) {}
  ParseState parse(std::string_view buffer);
  std::size_t consumed() const { return reader_.at; }
  // True once a byte has been seen.
  bool started() const { return started_; }
  const ParseFault& fault() const { return reader_.fault; }
  ResponseHead& head() { return head_; }

 private:
  ParseState read(std::string_view buffer);
  bool take_status_line(std::string_view line);
  bool finish();

  detail::HeadReader reader_;
  Method request_method_;
  bool started_ = false;
  bool have_line_ = false;
  ResponseHead head_;
};

// Undoes the chunked coding without copying (RFC 9112 §7.1). Keeps its place over any split.
// Strict: a size is 1 to 16 hex digits and nothing else, every line ends in CRLF, extensions must
// follow the grammar of §7.1.1 and a chunk-size line has at most 4096 bytes.
class ChunkedDecoder {
 public:
  enum class Event : std::uint8_t {
    need_more,   // the input is used up
    data,        // `piece` is body data, a view into the input
    last_chunk,  // the last chunk was read; the trailer section follows (parse it with
                 // TrailerParser)
    failed,
  };
  struct Step {
    Event event;
    std::size_t consumed;    // bytes of the input that this step used
    std::string_view piece;  // for Event::data
  };
  // Call again with the rest of the input until `need_more`, `last_chunk` or `failed`. The latter
  // two repeat themselves, using nothing, when called again.
  Step next(std::string_view input);
  // Static text that says what is wrong after `failed`.
  std::string_view fault() const { return fault_; }
  // Bytes of data still to come of the chunk that is being read: what a bulk mover may move.
  std::uint64_t chunk_remaining() const { return state_ == State::data ? remaining_ : 0; }
  // Says that a bulk mover took `bytes` (at most chunk_remaining()) of data past `next`.
  void skip(std::uint64_t bytes);

 private:
  enum class State : std::uint8_t {
    size,
    before_semicolon,
    before_name,
    name,
    after_name,
    before_value,
    token_value,
    quoted_value,
    quoted_pair,
    after_quoted_value,
    size_lf,
    data,
    data_cr,
    data_lf,
    done,
    failed,
  };
  // One byte outside of chunk data. False: it breaks the grammar.
  bool take(char byte);
  bool take_in_size(char byte);
  bool take_in_extension(char byte);
  bool take_in_value(char byte);
  bool end_of_extension(char byte);
  bool go(State state);
  bool fail(std::string_view reason);

  State state_ = State::size;
  std::uint8_t digits_ = 0;
  std::uint16_t line_bytes_ = 0;  // of the chunk-size line, so that extensions are bounded
  std::uint64_t remaining_ = 0;
  std::string_view fault_;
};

// Parses a trailer section (RFC 9112 §7.1.2) up to its empty line. Same contract as RequestParser;
// limits and statuses are those of a request's fields (the caller makes them 502 for a response).
// Content-Length and Transfer-Encoding fail the message. Other fields that must not be trailers
// (routing, authentication, controls, content format: RFC 9110 §6.5.1) are marked hop_by_hop, so
// they are dropped.
class TrailerParser {
 public:
  TrailerParser(base::Arena& arena, const HeadLimits& limits) : reader_{&arena, &limits} {}
  ParseState parse(std::string_view buffer);
  std::size_t consumed() const { return reader_.at; }
  const ParseFault& fault() const { return reader_.fault; }
  FieldList& fields() { return fields_; }

 private:
  detail::HeadReader reader_;
  FieldList fields_;
};

}  // namespace ringside::http
