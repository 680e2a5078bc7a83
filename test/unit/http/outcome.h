// What a parser found, as text: so that two runs over the same bytes can be compared.
#pragma once

#include <ostream>
#include <sstream>
#include <string>

#include "ringside/http/message.h"
#include "ringside/http/parser.h"

namespace ringside::http::test {

inline void describe(std::ostream& out, const FieldList& fields) {
  for (const Field& f : fields) {
    out << "\n  " << f.name << "=[" << f.value << "] id " << int(f.id)
        << (f.hop_by_hop ? " hop" : "");
  }
}

inline void describe(std::ostream& out, const RequestHead& h) {
  out << h.method_text << '/' << int(h.method) << " target " << h.target << " version "
      << int(h.version) << " form " << int(h.form) << " authority " << h.authority << " host "
      << h.host << " path " << h.path << " query " << h.has_query << h.query << " flags "
      << h.keep_alive << h.expect_continue << h.upgrade << h.te_trailers << " framing "
      << int(h.framing.kind) << ' ' << h.framing.length;
  describe(out, h.fields);
}

inline void describe(std::ostream& out, const ResponseHead& h) {
  out << h.status << " [" << h.reason << "] version " << int(h.version) << " flags " << h.keep_alive
      << h.upgrade << " framing " << int(h.framing.kind) << ' ' << h.framing.length;
  describe(out, h.fields);
}

template <typename Parser>
const auto& result_of(Parser& parser) {
  if constexpr (requires { parser.head(); }) {
    return parser.head();
  } else {
    return parser.fields();
  }
}

// Everything that a parser tells, as text that two runs can be compared by.
template <typename Parser>
std::string outcome(Parser& parser, ParseState state) {
  std::ostringstream out;
  if (state == ParseState::failed) {
    out << "failed " << parser.fault().status << ' ' << parser.fault().reason;
  } else if (state == ParseState::done) {
    out << "done " << parser.consumed() << ' ';
    describe(out, result_of(parser));
  } else {
    out << "need_more";
  }
  return out.str();
}

}  // namespace ringside::http::test
