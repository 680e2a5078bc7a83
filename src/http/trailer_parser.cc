#include "ringside/http/parser.h"

#include "head_reader.h"

namespace ringside::http {

ParseState TrailerParser::parse(std::string_view buffer) {
  if (reader_.state != ParseState::need_more) return reader_.state;
  detail::follow(reader_, buffer, fields_);
  reader_.state =
      detail::read_fields(reader_, detail::Section::trailer, Version::http11, buffer, fields_);
  return reader_.state;
}

}  // namespace ringside::http
