#include "head_reader.h"

#include <algorithm>
#include <limits>

#include "ringside/base/text.h"
#include "ringside/http/uri.h"

#include "byte_class.h"
#include "scan.h"

namespace ringside::http::detail {
namespace {

// More options than this in all Connection fields of one message is an attack: each may have to be
// compared with every field.
constexpr int connection_options_max = 64;

constexpr std::uint64_t content_length_max = std::numeric_limits<std::int64_t>::max();

// RFC 9110 §7.6.1, and the framing fields, which who forwards the message writes anew.
// Proxy-Authenticate and Proxy-Authorization travel: they are meant for proxies that a client
// chose, and this is not one.
constexpr std::uint32_t hop_by_hop_ids = bit(FieldId::connection) | bit(FieldId::content_length) |
                                         bit(FieldId::http2_settings) | bit(FieldId::keep_alive) |
                                         bit(FieldId::proxy_connection) | bit(FieldId::te) |
                                         bit(FieldId::transfer_encoding) | bit(FieldId::upgrade);

// Known fields that a Connection field cannot remove: without them the message would say something
// else, go elsewhere, or loop (RFC 9110 §7.6.1: options must not name fields meant for all
// recipients).
constexpr std::uint32_t kept_ids = bit(FieldId::host) | bit(FieldId::content_type) |
                                   bit(FieldId::date) | bit(FieldId::expect) |
                                   bit(FieldId::max_forwards) | bit(FieldId::via);
constexpr std::string_view kept_names[] = {"content-encoding", "content-range", "content-location"};

// Known fields that are dropped when they come as trailers (RFC 9110 §6.5.1): all of those that
// ringside or a server acts on before the body.
constexpr std::uint32_t not_trailer_ids =
    hop_by_hop_ids | bit(FieldId::content_type) | bit(FieldId::expect) | bit(FieldId::forwarded) |
    bit(FieldId::host) | bit(FieldId::location) | bit(FieldId::max_forwards) |
    bit(FieldId::proxy_authenticate) | bit(FieldId::proxy_authorization) | bit(FieldId::trailer) |
    bit(FieldId::via) | bit(FieldId::x_forwarded_for) | bit(FieldId::x_forwarded_host) |
    bit(FieldId::x_forwarded_proto);
constexpr std::string_view not_trailer_names[] = {
    "accept-ranges",
    "age",
    "authorization",
    "cache-control",
    "content-encoding",
    "content-location",
    "content-range",
    "cookie",
    "expires",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "pragma",
    "range",
    "retry-after",
    "set-cookie",
    "vary",
    "www-authenticate",
};

template <std::size_t n>
bool among(std::string_view name, const std::string_view (&names)[n]) {
  return std::ranges::any_of(
      names, [name](std::string_view one) { return base::equals_ignore_case(name, one); });
}

// Takes the next element off a comma-separated list; it may be empty.
std::string_view next_element(std::string_view& list) {
  std::size_t comma = list.find(',');
  std::string_view element = base::trim_ows(list.substr(0, comma));
  list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  return element;
}

std::string_view fault_of_byte(std::string_view buffer, std::size_t at) {
  switch (buffer[at]) {
    case '\r':
      return "bare CR in the head";
    case '\n':
      return "bare LF in the head";
    case '\0':
      return "NUL in the head";
    default:
      return "control character in the head";
  }
}

std::string_view fault_of_name(std::string_view line, std::size_t stop) {
  if (stop == line.size()) return "field line without a colon";
  bool blank = line[stop] == ' ' || line[stop] == '\t';
  if (stop == 0) return blank ? "folded or indented field line" : "field without a valid name";
  return blank ? "blank before the colon of a field" : "invalid byte in a field name";
}

}  // namespace

bool fail_bad_byte(HeadReader& reader, std::string_view buffer) {
  return fail(reader, 400, fault_of_byte(buffer, reader.scanned));
}

bool travels_not(Section section, const Field& field) {
  if (section != Section::trailer) return (hop_by_hop_ids & bit(field.id)) != 0;
  if (field.id != FieldId::other) return (not_trailer_ids & bit(field.id)) != 0;
  return among(field.name, not_trailer_names);
}

namespace {

// As base::trim_ows, where most values have one leading blank and no other.
inline std::string_view trimmed(std::string_view text) {
  const char* begin = text.data();
  const char* end = begin + text.size();
  while (begin < end && (*begin == ' ' || *begin == '\t'))
    ++begin;
  while (end > begin && (end[-1] == ' ' || end[-1] == '\t'))
    --end;
  return {begin, static_cast<std::size_t>(end - begin)};
}

bool take_content_length(HeadReader& reader, std::string_view value) {
  if (seen(reader, FieldId::content_length)) {
    return fail(reader, 400, "more than one Content-Length");
  }
  if (seen(reader, FieldId::transfer_encoding)) {
    return fail(reader, 400, "both Content-Length and Transfer-Encoding");
  }
  auto length = base::parse_decimal<std::uint64_t>(value);
  if (!length || *length > content_length_max) return fail(reader, 400, "invalid Content-Length");
  reader.content_length = *length;
  return true;
}

// 501 only for well-formed codings that are unknown; anything that could be read as "chunked"
// somewhere else and is not plainly that is 400 (RFC 9112 §6.1, §6.3).
bool fail_codings(HeadReader& reader, std::string_view list) {
  bool chunked_seen = false;
  do {
    bool trailing_comma = list.ends_with(',') && list.find(',') == list.size() - 1;
    std::string_view coding = next_element(list);
    if (coding.empty() || trailing_comma) {
      return fail(reader, 400, "empty element in Transfer-Encoding");
    }
    if (!token_bytes.has_all(coding)) return fail(reader, 400, "malformed Transfer-Encoding");
    if (chunked_seen) return fail(reader, 400, "chunked is not the last transfer coding");
    chunked_seen = base::equals_ignore_case(coding, "chunked");
  } while (!list.empty());
  return fail(reader, 501, "unknown transfer coding");
}

bool take_transfer_encoding(HeadReader& reader, Version version, std::string_view value) {
  if (seen(reader, FieldId::transfer_encoding)) {
    return fail(reader, 400, "more than one Transfer-Encoding");
  }
  if (seen(reader, FieldId::content_length)) {
    return fail(reader, 400, "both Content-Length and Transfer-Encoding");
  }
  if (version == Version::http10) return fail(reader, 400, "Transfer-Encoding in HTTP/1.0");
  if (!base::equals_ignore_case(value, "chunked")) return fail_codings(reader, value);
  reader.chunked = true;
  return true;
}

bool take_host(HeadReader& reader, std::string_view value, std::size_t index) {
  if (seen(reader, FieldId::host)) return fail(reader, 400, "more than one Host");
  reader.host_index = static_cast<std::uint32_t>(index);
  if (value.empty()) return true;
  auto authority = parse_authority(value);
  if (!authority) return fail(reader, 400, "invalid Host");
  reader.host_bytes = static_cast<std::uint32_t>(authority->host.size());
  return true;
}

bool take_known(HeadReader& reader, Section section, Version version, const Field& field,
                std::size_t index) {
  switch (field.id) {
    case FieldId::content_length:
      if (section == Section::trailer) return fail(reader, 400, "Content-Length in the trailers");
      return take_content_length(reader, field.value);
    case FieldId::transfer_encoding:
      if (section == Section::trailer) {
        return fail(reader, 400, "Transfer-Encoding in the trailers");
      }
      return take_transfer_encoding(reader, version, field.value);
    case FieldId::host:
      return section != Section::request || take_host(reader, field.value, index);
    default:
      return true;
  }
}

// Adds the field in `line` to `fields`. `readable` bytes from the start of the line are in the
// buffer: a name ends at the CR at the latest, so the search may use wide reads beyond the line.
bool take_field(HeadReader& reader, Section section, Version version, std::string_view line,
                std::size_t readable, FieldList& fields) {
  if (fields.size() >= reader.limits->fields_max) return fail(reader, 431, "too many fields");
  std::size_t colon = scan::class_stop(line.data(), readable, token_bytes);
  if (colon == 0 || colon == line.size() || line[colon] != ':') {
    return fail(reader, 400, fault_of_name(line, colon));
  }
  Field field;
  field.name = line.substr(0, colon);
  field.value = trimmed(line.substr(colon + 1));
  field.id = field_id(field.name);
  field.hop_by_hop = travels_not(section, field);
  if (field.id != FieldId::other) {
    if (!take_known(reader, section, version, field, fields.size())) return false;
    reader.seen |= bit(field.id);
  }
  if (!fields.add(*reader.arena, field)) return fail(reader, 503, "out of memory for fields");
  return true;
}

}  // namespace

ParseState read_fields(HeadReader& reader, Section section, Version version,
                       std::string_view buffer, FieldList& fields) {
  // The CRLF counts, so the text of the last line ends two bytes before the limit.
  std::size_t offset_max = std::max<std::size_t>(reader.limits->head_bytes_max, 2) - 2;
  for (;;) {
    std::string_view line;
    std::size_t readable = buffer.size() - reader.at;
    switch (next_line(reader, buffer, offset_max, line)) {
      case LineEnd::line:
        break;
      case LineEnd::need_more:
        return ParseState::need_more;
      case LineEnd::too_long:
        fail(reader, 431, "head too large");
        return ParseState::failed;
      case LineEnd::bad_byte:
        fail_bad_byte(reader, buffer);
        return ParseState::failed;
    }
    if (line.empty()) return ParseState::done;
    if (!take_field(reader, section, version, line, readable, fields)) return ParseState::failed;
  }
}

namespace {

void mark_named(FieldList& fields, std::string_view option) {
  FieldId id = field_id(option);
  if ((kept_ids & bit(id)) != 0) return;
  if (id == FieldId::other && among(option, kept_names)) return;
  for (Field& field : fields) {
    if (field.id != id || field.hop_by_hop) continue;
    if (id != FieldId::other || base::equals_ignore_case(field.name, option)) {
      field.hop_by_hop = true;
    }
  }
}

// What is no token names no field and is no option that we know: it is passed over, since
// Connection itself goes no further.
void apply_option(HeadReader& reader, FieldList& fields, std::string_view option) {
  if (base::equals_ignore_case(option, "close")) {
    reader.close_option = true;
  } else if (base::equals_ignore_case(option, "keep-alive")) {
    reader.keep_alive_option = true;
  } else if (base::equals_ignore_case(option, "upgrade")) {
    reader.upgrade_option = true;
  } else if (!option.empty()) {
    mark_named(fields, option);
  }
}

}  // namespace

bool apply_connection(HeadReader& reader, FieldList& fields) {
  if (!seen(reader, FieldId::connection)) return true;
  int options = 0;
  for (const Field& field : fields) {
    if (field.id != FieldId::connection) continue;
    for (std::string_view list = field.value; !list.empty();) {
      if (++options > connection_options_max) {
        return fail(reader, 431, "too many connection options");
      }
      apply_option(reader, fields, next_element(list));
    }
  }
  return true;
}

bool persistent(const HeadReader& reader, Version version) {
  if (reader.close_option) return false;
  return version != Version::http10 || reader.keep_alive_option;
}

bool list_has(std::string_view list, std::string_view token) {
  while (!list.empty()) {
    if (base::equals_ignore_case(next_element(list), token)) return true;
  }
  return false;
}

}  // namespace ringside::http::detail
