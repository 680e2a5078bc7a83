#include <algorithm>

#include "ringside/http/parser.h"

#include "byte_class.h"
#include "head_reader.h"
#include "scan.h"
#include "target.h"

namespace ringside::http {
namespace {

constexpr int empty_lines_max = 4;

std::string_view fault_of_target(std::string_view line, std::size_t stop) {
  if (stop == line.size()) return "request line without a version";
  return line[stop] == '#' ? "fragment in the request target"
                           : "invalid byte in the request target";
}

}  // namespace

ParseState RequestParser::parse(std::string_view buffer) {
  if (reader_.state != ParseState::need_more) return reader_.state;
  detail::follow(reader_, buffer, head_);
  if (!have_line_) {
    ParseState state = read_request_line(buffer);
    if (state != ParseState::done) return state;
  }
  ParseState state =
      detail::read_fields(reader_, detail::Section::request, head_.version, buffer, head_.fields);
  if (state == ParseState::done && !finish()) state = ParseState::failed;
  reader_.state = state;
  return state;
}

ParseState RequestParser::read_request_line(std::string_view buffer) {
  for (;;) {
    std::size_t offset_max = std::min<std::size_t>(reader_.at + reader_.limits->line_bytes_max,
                                                   reader_.limits->head_bytes_max);
    std::string_view line;
    if (buffer.size() > reader_.at && buffer[reader_.at] != '\r') started_ = true;
    switch (detail::next_line(reader_, buffer, offset_max, line)) {
      case detail::LineEnd::line:
        break;
      case detail::LineEnd::need_more:
        return ParseState::need_more;
      case detail::LineEnd::too_long:
        detail::fail(reader_, 414, "request line too long");
        return ParseState::failed;
      case detail::LineEnd::bad_byte:
        detail::fail_bad_byte(reader_, buffer);
        return ParseState::failed;
    }
    if (!line.empty()) {
      if (!take_request_line(line)) return ParseState::failed;
      have_line_ = true;
      return ParseState::done;
    }
    if (++empty_lines_ > empty_lines_max) {
      detail::fail(reader_, 400, "too many empty lines before the request line");
      return ParseState::failed;
    }
  }
}

bool RequestParser::take_request_line(std::string_view line) {
  std::size_t space = scan::class_stop(line.data(), line.size(), token_bytes);
  if (space == 0 || space == line.size() || line[space] != ' ') {
    return detail::fail(reader_, 400, "invalid method");
  }
  head_.method_text = line.substr(0, space);
  head_.method = method_of(head_.method_text);

  std::size_t begin = space + 1;
  std::size_t end =
      begin + scan::class_stop(line.data() + begin, line.size() - begin, target_bytes);
  if (end == line.size() || line[end] != ' ') {
    return detail::fail(reader_, 400, fault_of_target(line, end));
  }
  if (end == begin) return detail::fail(reader_, 400, "empty request target");
  head_.target = line.substr(begin, end - begin);
  if (!take_version(line.substr(end + 1))) return false;
  std::string_view wrong = detail::split_target(head_);
  return wrong.empty() || detail::fail(reader_, 400, wrong);
}

bool RequestParser::take_version(std::string_view text) {
  if (text == "HTTP/1.1") return true;
  if (text == "HTTP/1.0") {
    head_.version = Version::http10;
    return true;
  }
  bool well_formed = text.size() == 8 && text.starts_with("HTTP/") && is_digit(text[5]) &&
                     text[6] == '.' && is_digit(text[7]);
  if (!well_formed) return detail::fail(reader_, 400, "malformed HTTP version");
  return detail::fail(reader_, 505, "HTTP version not supported");
}

bool RequestParser::finish() {
  if (detail::seen(reader_, FieldId::host)) {
    if (head_.form == TargetForm::origin || head_.form == TargetForm::asterisk) {
      head_.authority = head_.fields[reader_.host_index].value;
      head_.host = head_.authority.substr(0, reader_.host_bytes);
    }
  } else if (head_.version == Version::http11) {
    return detail::fail(reader_, 400, "no Host in an HTTP/1.1 request");
  }
  if (!detail::apply_connection(reader_, head_.fields)) return false;
  head_.keep_alive = detail::persistent(reader_, head_.version);
  if (reader_.chunked) {
    head_.framing = {Framing::Kind::chunked, 0};
  } else if (detail::seen(reader_, FieldId::content_length)) {
    head_.framing = {Framing::Kind::length, reader_.content_length};
  }
  constexpr std::uint32_t noted =
      detail::bit(FieldId::expect) | detail::bit(FieldId::upgrade) | detail::bit(FieldId::te);
  if ((reader_.seen & noted) != 0) note_options();
  return true;
}

void RequestParser::note_options() {
  // Upgrade and Expect mean nothing in HTTP/1.0 (RFC 9110 §7.8, §10.1.1).
  bool http11 = head_.version == Version::http11;
  for (const Field& field : head_.fields) {
    if (field.id == FieldId::te && detail::list_has(field.value, "trailers")) {
      head_.te_trailers = true;
    } else if (field.id == FieldId::upgrade && http11) {
      head_.upgrade = reader_.upgrade_option;
    } else if (field.id == FieldId::expect && http11 &&
               detail::list_has(field.value, "100-continue")) {
      head_.expect_continue = true;
    }
  }
}

}  // namespace ringside::http
