// Applies the `set`, `add` and `remove` of a route. Header only: it is on the path of every field.
#pragma once

#include <string_view>

#include "ringside/base/text.h"
#include "ringside/filter/forwarding.h"

namespace ringside::filter {

// `lower` is in lower case already.
inline bool is_name(std::string_view name, std::string_view lower) {
  if (name.size() != lower.size()) return false;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (base::to_lower(name[i]) != lower[i]) return false;
  }
  return true;
}

// As `is_name`, with "_" and "." read as "-": what CGI, WSGI and PHP make of a name (RFC 3875
// §4.1.18).
inline bool folds_to(std::string_view name, std::string_view lower) {
  if (name.size() != lower.size()) return false;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i] == '_' || name[i] == '.' ? '-' : base::to_lower(name[i]);
    const char other = lower[i] == '_' || lower[i] == '.' ? '-' : lower[i];
    if (c != other) return false;
  }
  return true;
}

// Whether the edits take a field of that name away, be it to put another in its place.
inline bool edits_drop(const config::HeaderEdits& edits, std::string_view name) {
  for (const std::string_view removed : edits.remove) {
    if (removed.ends_with('*')) {
      const std::string_view prefix = removed.substr(0, removed.size() - 1);
      if (name.size() >= prefix.size() && is_name(name.substr(0, prefix.size()), prefix))
        return true;
    } else if (is_name(name, removed)) {
      return true;
    }
  }
  for (const auto& [set, text] : edits.set) {
    if (is_name(name, set)) return true;
  }
  return false;
}

// A value that comes out empty writes no field: "x-user" from a header that the client did not send
// is no user.
void write_edit(http::HeadWriter& out, const RequestFacts& facts, std::string_view name,
                const config::Template& text);

// Writes what `set` and `add` put in, but Host, which is the caller's.
void write_edits(http::HeadWriter& out, const RequestFacts& facts,
                 const config::HeaderEdits& edits);

}  // namespace ringside::filter
