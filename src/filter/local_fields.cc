#include "ringside/filter/local_fields.h"

#include <algorithm>

#include "field_edits.h"

namespace ringside::filter {
namespace {

// They say what a body is, or for how long it may be kept. What is true of the server's answer is
// not of an error in its place: a 502 that is kept for a year would be.
constexpr std::string_view content_names[] = {
    "cache-control",    "cdn-cache-control", "content-disposition", "content-encoding",
    "content-language", "content-location",  "content-type",        "etag",
    "expires",          "grpc-message",      "grpc-status",         "last-modified",
    "surrogate-control"};

bool is_of_content(std::string_view name) {
  return std::any_of(std::begin(content_names), std::end(content_names),
                     [name](std::string_view known) { return is_name(name, known); });
}

}  // namespace

bool LocalFields::stays(std::string_view name) const {
  return (kind_ == Kind::error && is_of_content(name)) || !edits_drop(edits_, name);
}

void LocalFields::finish(const RequestFacts& facts) {
  if (!edited_) return;
  for (const auto* edits : {&edits_.set, &edits_.add}) {
    for (const auto& [name, text] : *edits) {
      if (kind_ == Kind::answer || !is_of_content(name)) write_edit(out_, facts, name, text);
    }
  }
}

}  // namespace ringside::filter
