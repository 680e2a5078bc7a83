#include "ringside/http/message.h"

#include <algorithm>

#include "ringside/base/text.h"

namespace ringside::http {

Method method_of(std::string_view text) {
  switch (text.size()) {
    case 3:
      if (text == "GET") return Method::get;
      return text == "PUT" ? Method::put : Method::other;
    case 4:
      if (text == "POST") return Method::post;
      return text == "HEAD" ? Method::head : Method::other;
    case 5:
      if (text == "PATCH") return Method::patch;
      return text == "TRACE" ? Method::trace : Method::other;
    case 6:
      return text == "DELETE" ? Method::delete_ : Method::other;
    case 7:
      if (text == "OPTIONS") return Method::options;
      return text == "CONNECT" ? Method::connect : Method::other;
    default:
      return Method::other;
  }
}

bool is_safe(Method method) {
  return method == Method::get || method == Method::head || method == Method::options ||
         method == Method::trace;
}

bool is_idempotent(Method method) {
  return is_safe(method) || method == Method::put || method == Method::delete_;
}

bool FieldList::grow(base::Arena& arena) {
  // As many as fit into one chunk of the arena with room for its header and the alignment: more
  // need memory from outside the chunk pool, so that step is put off as long as it can be.
  constexpr std::uint32_t in_chunk_max = (base::ChunkPool::chunk_bytes - 64) / sizeof(Field);
  std::uint32_t capacity = capacity_ == 0 ? 16 : capacity_ * 2;
  if (capacity > in_chunk_max && capacity_ < in_chunk_max) capacity = in_chunk_max;
  auto* items = arena.allocate_array<Field>(capacity);
  if (items == nullptr) return false;
  std::uninitialized_copy(items_, items_ + size_, items);
  items_ = items;
  capacity_ = capacity;
  return true;
}

const Field* FieldList::find(FieldId id) const {
  const Field* at = std::find_if(begin(), end(), [id](const Field& f) { return f.id == id; });
  return at == end() ? nullptr : at;
}

const Field* FieldList::find(std::string_view name) const {
  const Field* at = std::find_if(
      begin(), end(), [name](const Field& f) { return base::equals_ignore_case(f.name, name); });
  return at == end() ? nullptr : at;
}

namespace {

// By number, not by pointer: the old buffer may be gone by now.
class Shift {
 public:
  Shift(const char* from, std::size_t bytes, std::ptrdiff_t delta)
      : from_(reinterpret_cast<std::uintptr_t>(from)), bytes_(bytes), delta_(delta) {}
  void operator()(std::string_view& view) const {
    auto at = reinterpret_cast<std::uintptr_t>(view.data());
    if (at - from_ >= bytes_) return;
    at += static_cast<std::uintptr_t>(delta_);
    view = {reinterpret_cast<const char*>(at), view.size()};
  }

 private:
  std::uintptr_t from_;
  std::size_t bytes_;
  std::ptrdiff_t delta_;
};

}  // namespace

void FieldList::rebase(const char* from, std::size_t bytes, std::ptrdiff_t delta) {
  Shift shift(from, bytes, delta);
  for (Field& field : *this) {
    shift(field.name);
    shift(field.value);
  }
}

void RequestHead::rebase(const char* from, std::size_t bytes, std::ptrdiff_t delta) {
  Shift shift(from, bytes, delta);
  for (auto* view : {&method_text, &target, &authority, &host, &path, &query})
    shift(*view);
  fields.rebase(from, bytes, delta);
}

void ResponseHead::rebase(const char* from, std::size_t bytes, std::ptrdiff_t delta) {
  Shift(from, bytes, delta)(reason);
  fields.rebase(from, bytes, delta);
}

namespace {

std::string_view reason_below_400(std::uint16_t status) {
  switch (status) {
    case 100:
      return "Continue";
    case 101:
      return "Switching Protocols";
    case 102:
      return "Processing";
    case 103:
      return "Early Hints";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 203:
      return "Non-Authoritative Information";
    case 204:
      return "No Content";
    case 205:
      return "Reset Content";
    case 206:
      return "Partial Content";
    case 207:
      return "Multi-Status";
    case 208:
      return "Already Reported";
    case 226:
      return "IM Used";
    case 300:
      return "Multiple Choices";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 305:
      return "Use Proxy";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    default:
      return "";
  }
}

std::string_view reason_4xx(std::uint16_t status) {
  switch (status) {
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 402:
      return "Payment Required";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 407:
      return "Proxy Authentication Required";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 411:
      return "Length Required";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 416:
      return "Range Not Satisfiable";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 422:
      return "Unprocessable Content";
    case 423:
      return "Locked";
    case 424:
      return "Failed Dependency";
    case 425:
      return "Too Early";
    case 426:
      return "Upgrade Required";
    case 428:
      return "Precondition Required";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 451:
      return "Unavailable For Legal Reasons";
    default:
      return "";
  }
}

std::string_view reason_5xx(std::uint16_t status) {
  switch (status) {
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    case 506:
      return "Variant Also Negotiates";
    case 507:
      return "Insufficient Storage";
    case 508:
      return "Loop Detected";
    case 511:
      return "Network Authentication Required";
    default:
      return "";
  }
}

}  // namespace

std::string_view reason_phrase(std::uint16_t status) {
  if (status < 400) return reason_below_400(status);
  return status < 500 ? reason_4xx(status) : reason_5xx(status);
}

}  // namespace ringside::http
