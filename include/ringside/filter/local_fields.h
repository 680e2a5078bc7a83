// The fields of an answer that is made here, edited as its route wants.
#pragma once

#include <cstdint>
#include <string_view>

#include "ringside/config/snapshot.h"
#include "ringside/filter/forwarding.h"
#include "ringside/http/writer.h"

namespace ringside::filter {

// Lives while one head is written; ring thread. What it refers to outlives it.
class LocalFields {
 public:
  enum class Kind : std::uint8_t {
    answer,  // what the route is for: `respond`, `redirect`
    error,   // in the place of the server's answer
  };
  LocalFields(http::HeadWriter& out, const config::HeaderEdits& edits, Kind kind)
      : out_(out), edits_(edits), edited_(!edits.empty()), kind_(kind) {}

  // Unless the edits take it away.
  void field(std::string_view name, std::string_view value) {
    if (!edited_ || stays(name)) out_.field(name, value);
  }
  // What the edits put in. Behind all others.
  void finish(const RequestFacts& facts);

 private:
  bool stays(std::string_view name) const;

  http::HeadWriter& out_;
  const config::HeaderEdits& edits_;
  const bool edited_;
  const Kind kind_;
};

}  // namespace ringside::filter
