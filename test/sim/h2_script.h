// What the script of an exchange comes to in HTTP/2.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "h2_session.h"
#include "script.h"

namespace ringside::sim {

// Leaves out what HTTP/2 does not have. Draws nothing.
void make_h2(Script& script);
H2FieldList h2_request(const Script& script);
// What a server says: one of the interim heads, the final one, or what is no answer, as frames of
// that stream.
H2FieldList h2_interim(int status);
H2FieldList h2_response(const Script& script);
inline constexpr unsigned h2_malformed_answers = 15;
std::string h2_malformed_answer(unsigned kind, std::int32_t stream);
// Of the first field of that name; empty: there is none.
std::string_view value_of(const H2FieldList& fields, std::string_view name);
// Bytes that nobody may send, and how many kinds there are. `kind`: any number.
inline constexpr unsigned h2_mistakes = 20;
std::string h2_mistake(unsigned kind);

}  // namespace ringside::sim
