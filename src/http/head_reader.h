// What the parsers of requests, responses and trailers have in common: finding lines, reading field
// lines, and what Content-Length, Transfer-Encoding, Host and Connection say (RFC 9112 §5, §6, §9).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ringside/http/parser.h"

#include "scan.h"

namespace ringside::http::detail {

inline bool fail(HeadReader& reader, std::uint16_t status, std::string_view reason) {
  reader.state = ParseState::failed;
  reader.fault = {status, reason};
  return false;
}

constexpr std::uint32_t bit(FieldId id) {
  return 1U << static_cast<unsigned>(id);
}
inline bool seen(const HeadReader& reader, FieldId id) {
  return (reader.seen & bit(id)) != 0;
}

// Notes where the buffer is now and moves the views in `head` along with it.
template <typename Head>
void follow(HeadReader& reader, std::string_view buffer, Head& head) {
  if (reader.base == buffer.data()) return;
  if (reader.at > 0) {
    auto delta = reinterpret_cast<std::uintptr_t>(buffer.data()) -
                 reinterpret_cast<std::uintptr_t>(reader.base);
    head.rebase(reader.base, reader.at, static_cast<std::ptrdiff_t>(delta));
  }
  reader.base = buffer.data();
}

enum class LineEnd : std::uint8_t { need_more, line, too_long, bad_byte };

// Finds the line at reader.at and steps over it; `line` is without its CRLF. The text of the line
// must end at or before `offset_max` in the buffer. In the hot path of every message, hence here.
inline LineEnd next_line(HeadReader& reader, std::string_view buffer, std::size_t offset_max,
                         std::string_view& line) {
  // One byte more than may be there is enough to know, so a flood is not searched to its end.
  std::size_t end = std::min(buffer.size(), offset_max + 1);
  std::size_t stop = reader.scanned;
  if (stop < end) stop += scan::line_stop(buffer.data() + stop, end - stop);
  reader.scanned = stop;
  if (stop > offset_max) return LineEnd::too_long;
  if (stop == buffer.size()) return LineEnd::need_more;
  if (buffer[stop] != '\r') return LineEnd::bad_byte;
  if (stop + 1 == buffer.size()) return LineEnd::need_more;
  if (buffer[stop + 1] != '\n') return LineEnd::bad_byte;
  line = buffer.substr(reader.at, stop - reader.at);
  reader.at = reader.scanned = stop + 2;
  return LineEnd::line;
}

// Makes the fault that LineEnd::bad_byte stands for, at reader.scanned. Always false.
bool fail_bad_byte(HeadReader& reader, std::string_view buffer);

enum class Section : std::uint8_t { request, response, trailer };

// Reads field lines up to the empty one. `done` means that it was found; end-of-head checks follow.
ParseState read_fields(HeadReader& reader, Section section, Version version,
                       std::string_view buffer, FieldList& fields);

// Whether a field of that section concerns this connection, or its message's framing, alone; in
// trailers, also whether it must not be one (RFC 9110 §6.5.1).
bool travels_not(Section section, const Field& field);

// Applies every Connection field: options go to the reader, fields that are named get hop_by_hop.
bool apply_connection(HeadReader& reader, FieldList& fields);

// Whether the connection may serve another message (RFC 9112 §9.3).
bool persistent(const HeadReader& reader, Version version);

// Whether the response to such a request never has a body (RFC 9112 §6.3, rules 1 and 2).
inline bool has_no_body(std::uint16_t status, Method request_method) {
  if (request_method == Method::head || status < 200 || status == 204 || status == 304) return true;
  return request_method == Method::connect && status < 300;
}

// True when the comma-separated `list` has `token` as an element (case-insensitive).
bool list_has(std::string_view list, std::string_view token);

}  // namespace ringside::http::detail
