#include "target.h"

#include "ringside/base/text.h"
#include "ringside/http/uri.h"

namespace ringside::http::detail {
namespace {

void split_query(RequestHead& head, std::string_view path_and_query) {
  std::size_t mark = path_and_query.find('?');
  head.path = path_and_query.substr(0, mark);
  if (mark == std::string_view::npos) return;
  head.has_query = true;
  head.query = path_and_query.substr(mark + 1);
}

std::string_view split_authority_form(RequestHead& head) {
  head.form = TargetForm::authority;
  auto authority = parse_authority(head.target);
  // RFC 9110 §9.3.6: there is no default port.
  if (!authority || !authority->port) return "CONNECT needs host:port as its target";
  head.authority = head.target;
  head.host = authority->host;
  return {};
}

// An empty path is "/", but for OPTIONS, where it asks about the server as a whole (RFC 9112
// §3.2.4).
void fill_empty_path(RequestHead& head) {
  if (!head.path.empty()) return;
  head.path = head.method == Method::options && !head.has_query ? "*" : "/";
}

std::string_view split_absolute_form(RequestHead& head) {
  head.form = TargetForm::absolute;
  std::string_view rest = head.target;
  if (base::starts_with_ignore_case(rest, "http://")) {
    rest.remove_prefix(7);
  } else if (base::starts_with_ignore_case(rest, "https://")) {
    rest.remove_prefix(8);
  } else {
    return "target is neither a path nor an http URI";
  }
  std::size_t authority_bytes = rest.find_first_of("/?");
  head.authority = rest.substr(0, authority_bytes);
  auto authority = parse_authority(head.authority);  // refuses userinfo, RFC 9110 §4.2.4
  if (!authority) return "invalid authority in the target";
  head.host = authority->host;
  split_query(head, rest.substr(head.authority.size()));
  fill_empty_path(head);
  return {};
}

}  // namespace

std::string_view split_target(RequestHead& head) {
  if (head.method == Method::connect) return split_authority_form(head);
  if (head.target[0] == '/') {
    head.form = TargetForm::origin;
    split_query(head, head.target);
    return {};
  }
  if (head.target != "*") return split_absolute_form(head);
  if (head.method != Method::options) return "target * is for OPTIONS only";
  head.form = TargetForm::asterisk;
  head.path = head.target;
  return {};
}

}  // namespace ringside::http::detail
