#include <bit>
#include <cstdint>
#include <cstring>

#include "ringside/http/message.h"

namespace ringside::http {
namespace {

// A field name as a template argument. Comparing goes by words: `fold` holds 0x20 where the name
// has a letter, so that upper case is folded there and nowhere else.
template <std::size_t n>
struct Name {
  char lower[n];
  // NOLINTNEXTLINE(google-explicit-constructor): a literal must convert by itself.
  consteval Name(const char (&text)[n + 1]) {
    for (std::size_t i = 0; i < n; ++i)
      lower[i] = text[i];
  }
  consteval bool letter(std::size_t i) const { return lower[i] >= 'a' && lower[i] <= 'z'; }
  template <typename Word>
  consteval Word want(std::size_t from) const {
    Word word = 0;
    for (std::size_t i = 0; i < sizeof(Word); ++i)
      put(word, i, static_cast<Word>(lower[from + i]));
    return word;
  }
  template <typename Word>
  consteval Word fold(std::size_t from) const {
    Word word = 0;
    for (std::size_t i = 0; i < sizeof(Word); ++i)
      put(word, i, Word{letter(from + i) ? std::uint8_t{0x20} : std::uint8_t{0}});
    return word;
  }

 private:
  template <typename Word>
  static consteval void put(Word& word, std::size_t i, Word byte) {
    std::size_t place = std::endian::native == std::endian::little ? i : sizeof(Word) - 1 - i;
    word = static_cast<Word>(word | static_cast<Word>(byte << (8 * place)));
  }
};
template <std::size_t n>
Name(const char (&)[n]) -> Name<n - 1>;

template <typename Word, Name name, std::size_t from>
bool same_word(const char* text) {
  Word word;
  std::memcpy(&word, text + from, sizeof(Word));
  constexpr Word want = name.template want<Word>(from);
  constexpr Word fold = name.template fold<Word>(from);
  return (word | fold) == want;
}

// `text` has exactly the length of `name`. Words overlap where the length is no multiple of theirs.
template <Name name>
bool is(const char* text) {
  constexpr std::size_t n = sizeof(name.lower);
  if constexpr (n > 16) {
    return same_word<std::uint64_t, name, 0>(text) && same_word<std::uint64_t, name, 8>(text) &&
           same_word<std::uint64_t, name, n - 8>(text);
  } else if constexpr (n >= 8) {
    return same_word<std::uint64_t, name, 0>(text) && same_word<std::uint64_t, name, n - 8>(text);
  } else if constexpr (n >= 4) {
    return same_word<std::uint32_t, name, 0>(text) && same_word<std::uint32_t, name, n - 4>(text);
  } else {
    return same_word<std::uint16_t, name, 0>(text) && same_word<std::uint16_t, name, n - 2>(text);
  }
}

FieldId of_length_10(const char* s) {
  if (is<"user-agent">(s)) return FieldId::user_agent;
  if (is<"connection">(s)) return FieldId::connection;
  if (is<"keep-alive">(s)) return FieldId::keep_alive;
  return FieldId::other;
}

FieldId of_length_12(const char* s) {
  if (is<"content-type">(s)) return FieldId::content_type;
  if (is<"x-request-id">(s)) return FieldId::x_request_id;
  if (is<"max-forwards">(s)) return FieldId::max_forwards;
  return FieldId::other;
}

}  // namespace

FieldId field_id(std::string_view name) {
  const char* s = name.data();
  switch (name.size()) {
    case 2:
      return is<"te">(s) ? FieldId::te : FieldId::other;
    case 3:
      return is<"via">(s) ? FieldId::via : FieldId::other;
    case 4:
      if (is<"host">(s)) return FieldId::host;
      return is<"date">(s) ? FieldId::date : FieldId::other;
    case 6:
      if (is<"server">(s)) return FieldId::server;
      return is<"expect">(s) ? FieldId::expect : FieldId::other;
    case 7:
      if (is<"referer">(s)) return FieldId::referer;
      if (is<"upgrade">(s)) return FieldId::upgrade;
      return is<"trailer">(s) ? FieldId::trailer : FieldId::other;
    case 8:
      return is<"location">(s) ? FieldId::location : FieldId::other;
    case 9:
      return is<"forwarded">(s) ? FieldId::forwarded : FieldId::other;
    case 10:
      return of_length_10(s);
    case 12:
      return of_length_12(s);
    case 14:
      if (is<"content-length">(s)) return FieldId::content_length;
      return is<"http2-settings">(s) ? FieldId::http2_settings : FieldId::other;
    case 15:
      return is<"x-forwarded-for">(s) ? FieldId::x_forwarded_for : FieldId::other;
    case 16:
      if (is<"proxy-connection">(s)) return FieldId::proxy_connection;
      return is<"x-forwarded-host">(s) ? FieldId::x_forwarded_host : FieldId::other;
    case 17:
      if (is<"transfer-encoding">(s)) return FieldId::transfer_encoding;
      return is<"x-forwarded-proto">(s) ? FieldId::x_forwarded_proto : FieldId::other;
    case 18:
      return is<"proxy-authenticate">(s) ? FieldId::proxy_authenticate : FieldId::other;
    case 19:
      return is<"proxy-authorization">(s) ? FieldId::proxy_authorization : FieldId::other;
    default:
      return FieldId::other;
  }
}

}  // namespace ringside::http
