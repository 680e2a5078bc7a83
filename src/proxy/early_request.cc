#include "early_request.h"

#include <algorithm>

#include "ringside/base/text.h"
#include "ringside/filter/forwarding.h"

namespace ringside::proxy {

bool may_be_early(const http::RequestHead& head) {
  const bool harmless = head.method == http::Method::get || head.method == http::Method::head ||
                        head.method == http::Method::options;
  const bool bodyless =
      head.framing.kind == http::Framing::Kind::none ||
      (head.framing.kind == http::Framing::Kind::length && head.framing.length == 0);
  return harmless && bodyless && !head.upgrade;
}

bool was_early_before(const http::RequestHead& head) {
  return std::ranges::any_of(head.fields, [](const http::Field& field) {
    return base::equals_ignore_case(field.name, filter::early_data_name);
  });
}

}  // namespace ringside::proxy
