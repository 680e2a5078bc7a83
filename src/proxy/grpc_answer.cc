#include "grpc_answer.h"

#include "ringside/base/text.h"

namespace ringside::proxy {

bool is_grpc(const http::RequestHead& head) {
  constexpr std::string_view name = "application/grpc";
  if (head.version != http::Version::http2) return false;
  const http::Field* type = head.fields.find(http::FieldId::content_type);
  if (type == nullptr || !base::starts_with_ignore_case(type->value, name)) return false;
  const std::string_view rest = type->value.substr(name.size());
  return rest.empty() || rest[0] == '+' || rest[0] == ';' || rest[0] == ' ';
}

std::string_view grpc_status_of(std::uint16_t http_status) {
  constexpr std::string_view deadline_exceeded = "4";
  constexpr std::string_view permission_denied = "7";
  constexpr std::string_view resource_exhausted = "8";
  constexpr std::string_view unimplemented = "12";
  constexpr std::string_view internal = "13";
  constexpr std::string_view unavailable = "14";
  constexpr std::string_view unauthenticated = "16";
  switch (http_status) {
    case 401:
      return unauthenticated;
    case 403:
      return permission_denied;
    case 404:  // no route, or none for POST: nobody has that method
    case 405:
      return unimplemented;
    case 413:
    case 414:
    case 431:
      return resource_exhausted;
    case 425:  // to be sent again as it is
    case 429:
    case 502:
    case 503:
      return unavailable;
    case 504:
      return deadline_exceeded;
    default:
      return internal;
  }
}

std::string_view grpc_message(std::string_view text, base::Arena& arena) {
  constexpr char digits[] = "0123456789ABCDEF";
  char* const begin = arena.allocate_array<char>(3 * text.size() + 1);
  if (begin == nullptr) return {};
  char* at = begin;
  for (const char c : text) {
    if (c >= ' ' && c <= '~' && c != '%') {
      *at++ = c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    *at++ = '%';
    *at++ = digits[byte >> 4];
    *at++ = digits[byte & 0xf];
  }
  return {begin, static_cast<std::size_t>(at - begin)};
}

}  // namespace ringside::proxy
