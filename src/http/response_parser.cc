#include <algorithm>

#include "ringside/base/text.h"
#include "ringside/http/parser.h"

#include "byte_class.h"
#include "head_reader.h"

namespace ringside::http {

ParseState ResponseParser::parse(std::string_view buffer) {
  if (reader_.state != ParseState::need_more) return reader_.state;
  detail::follow(reader_, buffer, head_);
  if (!buffer.empty()) started_ = true;
  reader_.state = read(buffer);
  // Whatever the server did wrong, the client's answer is the same.
  if (reader_.state == ParseState::failed) reader_.fault.status = 502;
  return reader_.state;
}

ParseState ResponseParser::read(std::string_view buffer) {
  if (!have_line_) {
    std::size_t offset_max =
        std::min(reader_.limits->line_bytes_max, reader_.limits->head_bytes_max);
    std::string_view line;
    switch (detail::next_line(reader_, buffer, offset_max, line)) {
      case detail::LineEnd::line:
        break;
      case detail::LineEnd::need_more:
        return ParseState::need_more;
      case detail::LineEnd::too_long:
        detail::fail(reader_, 502, "status line too long");
        return ParseState::failed;
      case detail::LineEnd::bad_byte:
        detail::fail_bad_byte(reader_, buffer);
        return ParseState::failed;
    }
    if (!take_status_line(line)) return ParseState::failed;
    have_line_ = true;
  }
  ParseState state =
      detail::read_fields(reader_, detail::Section::response, head_.version, buffer, head_.fields);
  return state == ParseState::done && !finish() ? ParseState::failed : state;
}

// "HTTP/1.1 200" alone is tolerated: servers that have no reason tend to forget the space as well.
bool ResponseParser::take_status_line(std::string_view line) {
  if (line.starts_with("HTTP/1.0 ")) {
    head_.version = Version::http10;
  } else if (!line.starts_with("HTTP/1.1 ")) {
    return detail::fail(reader_, 502, "no HTTP/1.0 or HTTP/1.1 status line");
  }
  line.remove_prefix(9);
  std::string_view code = line.substr(0, 3);
  auto status = base::parse_decimal<std::uint16_t>(code);
  if (code.size() != 3 || !status || *status < 100 || *status > 599) {
    return detail::fail(reader_, 502, "invalid status code");
  }
  head_.status = *status;
  line.remove_prefix(3);
  if (line.empty()) return true;
  if (line[0] != ' ') return detail::fail(reader_, 502, "invalid status code");
  head_.reason = line.substr(1);
  return true;
}

bool ResponseParser::finish() {
  if (!detail::apply_connection(reader_, head_.fields)) return false;
  head_.keep_alive = detail::persistent(reader_, head_.version);
  head_.upgrade = reader_.upgrade_option && detail::seen(reader_, FieldId::upgrade);
  if (detail::has_no_body(head_.status, request_method_)) {
    // RFC 9110 §8.6 and RFC 9112 §6.1 forbid both in 1xx and 204. A server that sends them may send
    // the body too.
    bool claims_body = reader_.chunked || reader_.content_length > 0;
    if ((head_.status < 200 || head_.status == 204) && claims_body) head_.keep_alive = false;
    return true;
  }
  if (reader_.chunked) {
    head_.framing = {Framing::Kind::chunked, 0};
  } else if (detail::seen(reader_, FieldId::content_length)) {
    head_.framing = {Framing::Kind::length, reader_.content_length};
  } else {
    head_.framing = {Framing::Kind::until_close, 0};
    head_.keep_alive = false;
  }
  return true;
}

}  // namespace ringside::http
