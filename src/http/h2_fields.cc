#include "h2_fields.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "ringside/base/text.h"

namespace ringside::http::detail {
namespace {

bool travels(std::string_view name) {
  switch (field_id(name)) {
    case FieldId::connection:
    case FieldId::keep_alive:
    case FieldId::proxy_connection:
    case FieldId::transfer_encoding:
    case FieldId::upgrade:
      return false;
    default:
      return !name.empty();
  }
}

nghttp2_nv make(std::string_view name, std::string_view value) {
  auto bytes = [](std::string_view text) {
    return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

void lower(char* begin, std::size_t bytes) {
  std::transform(begin, begin + bytes, begin, base::to_lower);
}

// As std::find, many bytes at a time.
char* find(char* from, char* to, char c) {
  void* at = std::memchr(from, c, static_cast<std::size_t>(to - from));
  return at == nullptr ? to : static_cast<char*>(at);
}

H2Fields* room_for(base::Arena& arena, std::size_t count) {
  auto* fields = arena.allocate_array<H2Fields>(1);
  auto* items = arena.allocate_array<nghttp2_nv>(count);
  if (fields == nullptr || items == nullptr) return nullptr;
  *fields = {items, 0};
  return fields;
}

// The field lines of `text`, whose names become lower case in place.
void add_lines(H2Fields& fields, std::span<char> text) {
  char* at = text.data();
  char* const end = at + text.size();
  while (at < end) {
    char* const stop = find(at, end, '\r');
    char* const colon = find(at, stop, ':');
    if (colon != stop) {
      const auto name_bytes = static_cast<std::size_t>(colon - at);
      lower(at, name_bytes);
      const std::string_view name(at, name_bytes);
      const std::string_view value = base::trim_ows({colon + 1, stop});
      if (travels(name)) fields.items[fields.count++] = make(name, value);
    }
    at = end - stop > 2 ? stop + 2 : end;
  }
}

}  // namespace

H2Fields* fields_of_head(base::Arena& arena, std::uint16_t status, std::span<char> text) {
  const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  H2Fields* fields = room_for(arena, lines + 1);
  char* digits = arena.allocate_array<char>(3);
  if (fields == nullptr || digits == nullptr) return nullptr;
  digits[0] = static_cast<char>('0' + status / 100);
  digits[1] = static_cast<char>('0' + status / 10 % 10);
  digits[2] = static_cast<char>('0' + status % 10);
  fields->items[fields->count++] = make(":status", {digits, 3});
  const std::size_t status_line = std::string_view(text.data(), text.size()).find('\n') + 1;
  add_lines(*fields, text.subspan(status_line));
  return fields;
}

H2Fields* fields_of_request(base::Arena& arena, const H2RequestLine& line, std::span<char> text) {
  const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  H2Fields* fields = room_for(arena, lines + 4);
  if (fields == nullptr) return nullptr;
  fields->items[fields->count++] = make(":method", line.method);
  fields->items[fields->count++] = make(":scheme", line.scheme);
  fields->items[fields->count++] = make(":authority", line.authority);
  fields->items[fields->count++] = make(":path", line.path);
  add_lines(*fields, text);
  return fields;
}

H2Fields* fields_of_trailers(base::Arena& arena, const FieldList& trailers) {
  H2Fields* fields = room_for(arena, trailers.size());
  if (fields == nullptr) return nullptr;
  for (const Field& field : trailers) {
    if (field.hop_by_hop || !travels(field.name)) continue;
    const std::string_view name = arena.copy(field.name);
    const std::string_view value = arena.copy(field.value);
    if (name.data() == nullptr || value.data() == nullptr) return nullptr;
    lower(const_cast<char*>(name.data()), name.size());
    fields->items[fields->count++] = make(name, value);
  }
  return fields;
}

}  // namespace ringside::http::detail
