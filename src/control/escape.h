// Text from strangers, made safe for one line of a log. All append to `out`; any thread.
#pragma once

#include <string>
#include <string_view>

namespace ringside::control {

// Between the quotes of a JSON string (RFC 8259 §7). Valid UTF-8 stays as it is, except for control
// characters (C0, DEL and C1), which terminals obey; every byte that is not part of valid UTF-8
// becomes \u00XX, so the output is valid JSON and UTF-8 for any input.
void append_json(std::string& out, std::string_view text);

// As nginx's default escaping: '"', '\' and every byte below 0x20 or above 0x7e become \xXX.
void append_combined(std::string& out, std::string_view text);

// For event lines: as append_json, but quotes stay readable and '\' is doubled.
void append_readable(std::string& out, std::string_view text);

}  // namespace ringside::control
