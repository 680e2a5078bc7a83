#include "h2_head.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "ringside/base/text.h"
#include "ringside/http/uri.h"

#include "byte_class.h"
#include "scan.h"
#include "target.h"

namespace ringside::http::detail {
namespace {

constexpr std::size_t field_overhead = 32;  // RFC 9113 §6.5.2
constexpr std::size_t text_block_bytes = 1024;

// Field names are sent in lower case (RFC 9113 §8.2).
constexpr ByteClass name_bytes =
    make_byte_class([](char c) { return token_bytes.has(c) && !(c >= 'A' && c <= 'Z'); });

bool blank(char c) {
  return c == ' ' || c == '\t';
}

std::string_view fault_of_connection_field(FieldId id) {
  switch (id) {
    case FieldId::connection:
    case FieldId::keep_alive:
    case FieldId::proxy_connection:
    case FieldId::transfer_encoding:
    case FieldId::upgrade:
      return "a field of HTTP/1.1 connections in HTTP/2";
    default:
      return {};
  }
}

}  // namespace

bool H2HeadReader::fail(std::uint16_t status, std::string_view reason) {
  if (!failed()) fault_ = {status, reason};
  return false;
}

void H2HeadReader::field(std::string_view name, std::string_view value) {
  list_bytes_ += name.size() + value.size() + field_overhead;
  if (failed()) return;
  if (list_bytes_ > limits_.head_bytes_max) {
    fail(431, "head too large");
  } else if (name.starts_with(':')) {
    pseudo_field(name, value);
  } else {
    regular_field(name, value);
  }
}

// ---- pseudo-header fields

void H2HeadReader::pseudo_field(std::string_view name, std::string_view value) {
  if (section_ == Section::trailer) {
    fail(400, "pseudo-header field in the trailers");
  } else if (regular_seen_) {
    fail(400, "pseudo-header field behind others");
  } else if (section_ == Section::request) {
    request_pseudo(name, value);
  } else if (name == ":status") {
    take_pseudo(status_code, status_, value);
  } else {
    fail(400, "unknown pseudo-header field");
  }
}

void H2HeadReader::request_pseudo(std::string_view name, std::string_view value) {
  if (name == ":method") {
    take_pseudo(method, method_, value);
  } else if (name == ":path") {
    take_pseudo(path, path_, value);
  } else if (name == ":authority") {
    take_pseudo(authority, authority_, value);
  } else if (name == ":scheme") {
    take_pseudo(scheme, scheme_, value);
  } else if (name == ":protocol") {
    take_pseudo(protocol, protocol_, value);
  } else {
    fail(400, "unknown pseudo-header field");
  }
}

void H2HeadReader::take_pseudo(Pseudo which, std::string_view& into, std::string_view value) {
  if (has(which)) {
    fail(400, "pseudo-header field sent twice");
    return;
  }
  pseudo_ |= which;
  if (which == path && value.size() > limits_.line_bytes_max) {
    fail(414, "request target too long");
    return;
  }
  into = arena_.copy(value);
  if (into.data() == nullptr) fail(503, "out of memory for fields");
}

// ---- regular fields

bool H2HeadReader::valid(std::string_view name, std::string_view value) {
  if (name.empty()) return fail(400, "field without a name");
  if (scan::class_stop(name.data(), name.size(), name_bytes) != name.size())
    return fail(400, "invalid byte in a field name");
  if (scan::line_stop(value.data(), value.size()) != value.size())
    return fail(400, "control character in a field value");
  if (!value.empty() && (blank(value.front()) || blank(value.back())))
    return fail(400, "blank around a field value");
  return true;
}

void H2HeadReader::regular_field(std::string_view name, std::string_view value) {
  regular_seen_ = true;
  if (++count_ > limits_.fields_max) {
    fail(431, "too many fields");
    return;
  }
  if (!valid(name, value)) return;
  // Of HTTP/1.1: there the handshake will have a key of its own (RFC 8441 §5).
  if (has(protocol) && name == "sec-websocket-key") return;
  Field field{.name = name, .value = value, .id = field_id(name)};
  field.hop_by_hop = travels_not(section_, field);
  if (field.id != FieldId::other) {
    if (!take_known(field)) return;
    seen_ |= bit(field.id);
  }
  add(field);
}

bool H2HeadReader::take_known(const Field& field) {
  if (const std::string_view wrong = fault_of_connection_field(field.id); !wrong.empty())
    return fail(400, wrong);
  switch (field.id) {
    case FieldId::te:
      if (section_ == Section::response) return true;
      te_trailers_ = base::equals_ignore_case(field.value, "trailers");
      return te_trailers_ || fail(400, "te other than \"trailers\"");
    case FieldId::expect:
      expect_continue_ = expect_continue_ || list_has(field.value, "100-continue");
      return true;
    case FieldId::host:
      return section_ != Section::request || take_host(field.value);
    case FieldId::content_length: {
      if (section_ == Section::trailer) return fail(400, "Content-Length in the trailers");
      if (seen(FieldId::content_length)) return fail(400, "more than one Content-Length");
      const auto length = base::parse_decimal<std::uint64_t>(field.value);
      if (!length || *length > std::uint64_t{std::numeric_limits<std::int64_t>::max()})
        return fail(400, "invalid Content-Length");
      content_length_ = *length;
      return true;
    }
    default:
      return true;
  }
}

bool H2HeadReader::take_host(std::string_view value) {
  if (seen(FieldId::host)) return fail(400, "more than one Host");
  host_ = arena_.copy(value);
  return host_.data() != nullptr || fail(503, "out of memory for fields");
}

// A view of `field` comes to point into the arena.
bool H2HeadReader::add(Field& field) {
  const std::size_t bytes = field.name.size() + field.value.size() + 4;
  if (static_cast<std::size_t>(end_ - at_) < bytes) {
    const std::size_t room = std::max(bytes, text_block_bytes);
    at_ = arena_.allocate_array<char>(room);
    end_ = at_ == nullptr ? nullptr : at_ + room;
    if (at_ == nullptr) return fail(503, "out of memory for fields");
  }
  char* const text = at_;
  auto put = [this](std::string_view part) {
    if (!part.empty()) std::memcpy(at_, part.data(), part.size());
    at_ += part.size();
  };
  put(field.name);
  put(": ");
  put(field.value);
  put("\r\n");
  field.name = {text, field.name.size()};
  field.value = {text + field.name.size() + 2, field.value.size()};
  if (field.id == FieldId::other && field.name == "priority") priority_ = field.value;
  FieldList& list =
      section_ == Section::request && field.id == FieldId::other && field.name == "cookie"
          ? crumbs_
          : fields_;
  return list.add(arena_, field) || fail(503, "out of memory for fields");
}

// Into the one field that HTTP/1.1 has for them (RFC 9113 §8.2.3).
bool H2HeadReader::join_cookies() {
  if (crumbs_.size() < 2) return crumbs_.empty() || fields_.add(arena_, crumbs_[0]);
  std::size_t bytes = 0;
  for (const Field& crumb : crumbs_)
    bytes += crumb.value.size() + 2;
  char* const text = arena_.allocate_array<char>(bytes);
  if (text == nullptr) return false;
  char* at = text;
  for (const Field& crumb : crumbs_) {
    if (at != text) at = std::copy_n("; ", 2, at);
    at = std::copy(crumb.value.begin(), crumb.value.end(), at);
  }
  Field cookie = crumbs_[0];
  cookie.value = {text, static_cast<std::size_t>(at - text)};
  return fields_.add(arena_, cookie);
}

// ---- the whole

// RFC 8441 §4 and §5. The request goes on as the GET that opens a WebSocket in HTTP/1.1.
bool H2HeadReader::finish_websocket(RequestHead& head, bool end_stream) {
  if (head.method != Method::connect) return fail(400, ":protocol without CONNECT");
  if (end_stream) return fail(400, "CONNECT that ends its stream");
  if (seen(FieldId::content_length)) return fail(400, "Content-Length with CONNECT");
  if (protocol_ != "websocket") return fail(501, "CONNECT to an unknown protocol");
  head.websocket = head.upgrade = true;
  head.method = Method::get;
  head.method_text = "GET";
  const Field upgrade{
      .name = "upgrade", .value = protocol_, .id = FieldId::upgrade, .hop_by_hop = true};
  return fields_.add(arena_, upgrade) || fail(503, "out of memory for fields");
}

bool H2HeadReader::finish_authority(RequestHead& head) {
  if (!has(authority) && !seen(FieldId::host)) return fail(400, "neither :authority nor Host");
  head.authority = has(authority) ? authority_ : host_;
  if (has(authority) && seen(FieldId::host) && !base::equals_ignore_case(authority_, host_))
    return fail(400, "Host differs from :authority");
  const auto parsed = parse_authority(head.authority);
  if (!parsed) return fail(400, "invalid authority");
  if (head.method == Method::connect && !parsed->port)
    return fail(400, "CONNECT needs host:port as its authority");
  head.host = parsed->host;
  return true;
}

bool H2HeadReader::finish_target(RequestHead& head) {
  if (head.method == Method::connect) {
    if (has(scheme) || has(path)) return fail(400, "CONNECT with :scheme or :path");
    if (!has(authority)) return fail(400, "CONNECT without :authority");
    head.form = TargetForm::authority;
    head.target = authority_;
    return true;
  }
  if (!has(scheme) || !has(path)) return fail(400, "a pseudo-header field is missing");
  if (!base::equals_ignore_case(scheme_, "https") && !base::equals_ignore_case(scheme_, "http"))
    return fail(400, "scheme other than http and https");
  if (path_.empty() || (path_[0] != '/' && path_ != "*")) return fail(400, "invalid :path");
  if (scan::class_stop(path_.data(), path_.size(), target_bytes) != path_.size())
    return fail(400, "invalid byte in :path");
  head.target = path_;
  const std::string_view wrong = split_target(head);
  return wrong.empty() || fail(400, wrong);
}

bool H2HeadReader::finish_request(RequestHead& head, bool end_stream) {
  if (failed()) return false;
  if (!has(method)) return fail(400, "no :method");
  if (method_.empty() ||
      scan::class_stop(method_.data(), method_.size(), token_bytes) != method_.size())
    return fail(400, "invalid method");
  head.version = Version::http2;
  head.method_text = method_;
  head.method = method_of(method_);
  if (has(protocol) && !finish_websocket(head, end_stream)) return false;
  if (!finish_target(head) || !finish_authority(head)) return false;
  if (!join_cookies()) return fail(503, "out of memory for fields");
  head.fields = fields_;
  head.te_trailers = te_trailers_;
  if (head.websocket) return true;  // what follows is no body
  head.expect_continue = expect_continue_ && !end_stream;
  if (seen(FieldId::content_length)) {
    if (end_stream && content_length_ != 0) return fail(400, "less body than Content-Length says");
    head.framing = {Framing::Kind::length, content_length_};
  } else if (!end_stream) {
    head.framing = {Framing::Kind::chunked, 0};
  }
  return true;
}

bool H2HeadReader::finish_response(ResponseHead& head, Method asked, bool end_stream) {
  if (failed()) return false;
  const auto code = base::parse_decimal<std::uint16_t>(status_);
  if (status_.size() != 3 || !code || *code < 100 || *code > 599)
    return fail(400, "no valid :status");
  // RFC 9113 §8.6: there is no switching of protocols.
  if (*code == 101) return fail(400, "status 101 in HTTP/2");
  if (*code < 200 && end_stream) return fail(400, "an interim response that ends the stream");
  head.status = *code;
  head.version = Version::http2;
  head.fields = fields_;
  if (has_no_body(*code, asked)) {
    head.framing = {Framing::Kind::none, 0};
    return true;
  }
  const bool known = seen(FieldId::content_length);
  if (end_stream && known && content_length_ != 0)
    return fail(400, "less body than Content-Length says");
  head.end_follows = known && !end_stream;
  // What ends here has no body; else its end is the stream's.
  head.framing = {Framing::Kind::chunked, 0};
  if (end_stream || known) head.framing = {Framing::Kind::length, end_stream ? 0 : content_length_};
  return true;
}

}  // namespace ringside::http::detail
