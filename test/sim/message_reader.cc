#include "message_reader.h"

#include <algorithm>
#include <cstdlib>

namespace ringside::sim {

namespace {

constexpr std::size_t line_bytes_max = 70'000;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

bool all_of(std::string_view text, std::string_view allowed) {
  return !text.empty() && text.find_first_not_of(allowed) == std::string_view::npos;
}

}  // namespace

void MessageReader::begin(bool to_head) {
  const Side side = side_;
  *this = MessageReader(side);
  to_head_ = to_head;
}

void MessageReader::fail(std::string why) {
  state_ = State::failed;
  why_ = std::move(why);
}

// A whole line, without its CRLF, is in line_ when this is true.
bool MessageReader::take_line(std::string_view data, std::size_t* used) {
  const std::size_t end = data.find('\n');
  const std::size_t bytes = end == std::string_view::npos ? data.size() : end + 1;
  line_.append(data.substr(0, bytes));
  *used = bytes;
  if (line_.size() > line_bytes_max) fail("an endless line");
  if (end == std::string_view::npos || state_ == State::failed) return false;
  if (line_.size() < 2 || line_[line_.size() - 2] != '\r') {
    fail("a line without CR: " + line_);
    return false;
  }
  line_.resize(line_.size() - 2);
  return true;
}

std::size_t MessageReader::feed(std::string_view data) {
  piece_ = {};
  if (data.empty() || state_ == State::done || state_ == State::failed) return 0;
  started_ = true;
  if (part_ == Part::data || part_ == Part::to_close) return take_data(data);
  std::size_t used = 0;
  if (!take_line(data, &used)) return used;
  switch (part_) {
    case Part::lines:
      head_line();
      break;
    case Part::chunk_size:
      chunk_size_line();
      break;
    case Part::chunk_end:
      if (!line_.empty()) fail("bytes behind a chunk: " + line_);
      part_ = Part::chunk_size;
      break;
    case Part::trailer:
      if (line_.empty()) {
        state_ = State::done;
      } else {
        ++trailers_;
      }
      break;
    default:
      break;
  }
  line_.clear();
  return used;
}

std::size_t MessageReader::take_data(std::string_view data) {
  const std::size_t bytes = part_ == Part::to_close ? data.size() : std::min(data.size(), left_);
  piece_ = data.substr(0, bytes);
  body_bytes_ += bytes;
  if (part_ == Part::to_close) return bytes;
  left_ -= bytes;
  if (left_ != 0) return bytes;
  if (framing_ == Framing::chunked) {
    part_ = Part::chunk_end;
  } else {
    state_ = State::done;
  }
  return bytes;
}

void MessageReader::head_line() {
  if (line_.empty()) {
    if (start_line_.empty()) return fail("an empty start line");
    return head_over();
  }
  if (start_line_.empty()) {
    start_line_ = line_;
    return;
  }
  const std::size_t colon = line_.find(':');
  if (colon == 0 || colon == std::string::npos) return fail("a field without a name: " + line_);
  std::string_view value = std::string_view(line_).substr(colon + 1);
  while (!value.empty() && (value.front() == ' ' || value.front() == '\t'))
    value.remove_prefix(1);
  while (!value.empty() && (value.back() == ' ' || value.back() == '\t'))
    value.remove_suffix(1);
  fields_.emplace_back(lower(std::string_view(line_).substr(0, colon)), value);
}

void MessageReader::read_status() {
  if (start_line_.size() < 12 || !start_line_.starts_with("HTTP/1.") ||
      !all_of(std::string_view(start_line_).substr(9, 3), "0123456789")) {
    return fail("a bad status line: " + start_line_);
  }
  status_ = std::atoi(start_line_.c_str() + 9);
}

void MessageReader::head_over() {
  if (side_ == Side::response) read_status();
  if (state_ == State::failed) return;
  choose_framing();
  if (state_ == State::failed) return;
  state_ = State::body;
  if (framing_ == Framing::none || (framing_ == Framing::length && left_ == 0))
    state_ = State::done;
  if (framing_ == Framing::length) part_ = Part::data;
  if (framing_ == Framing::chunked) part_ = Part::chunk_size;
  if (framing_ == Framing::until_close) part_ = Part::to_close;
}

void MessageReader::choose_framing() {
  std::size_t lengths = 0;
  for (const auto& [name, value] : fields_)
    lengths += name == "content-length" ? 1 : 0;
  if (lengths > 1) return fail("more than one length");
  const std::string_view length = value("content-length");
  const bool chunked = has("transfer-encoding");
  if (chunked && lengths != 0) return fail("a length and an encoding");
  if (lengths != 0 && !all_of(length, "0123456789")) return fail("a bad length");
  const bool bodiless =
      side_ == Side::response && (to_head_ || status_ < 200 || status_ == 204 || status_ == 304);
  if (bodiless) return;
  if (chunked) {
    if (!value_is("transfer-encoding", "chunked")) return fail("an unknown encoding");
    framing_ = Framing::chunked;
  } else if (lengths != 0) {
    framing_ = Framing::length;
    left_ = std::strtoull(std::string(length).c_str(), nullptr, 10);
  } else if (side_ == Side::response) {
    framing_ = Framing::until_close;
  }
}

void MessageReader::chunk_size_line() {
  if (!all_of(line_, "0123456789abcdefABCDEF") || line_.size() > 8) {
    return fail("a bad chunk size: " + line_);
  }
  left_ = std::strtoull(line_.c_str(), nullptr, 16);
  part_ = left_ == 0 ? Part::trailer : Part::data;
}

void MessageReader::end_of_stream() {
  if (state_ == State::body && part_ == Part::to_close) state_ = State::done;
}

std::string_view MessageReader::value(std::string_view name) const {
  for (const auto& [have, value] : fields_) {
    if (have == name) return value;
  }
  return {};
}

bool MessageReader::value_is(std::string_view name, std::string_view text) const {
  return lower(value(name)) == text;
}

}  // namespace ringside::sim
