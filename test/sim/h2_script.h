// What the script of an exchange comes to in HTTP/2.
#pragma once

#include "h2_session.h"
#include "script.h"

namespace ringside::sim {

// Leaves out what HTTP/2 does not have. Draws nothing.
void make_h2(Script& script);
H2FieldList h2_request(const Script& script);
// Bytes that no client may send, and how many kinds there are. `kind`: any number.
inline constexpr unsigned h2_mistakes = 20;
std::string h2_mistake(unsigned kind);

}  // namespace ringside::sim
