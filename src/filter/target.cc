#include <cstring>

#include "ringside/filter/forwarding.h"

namespace ringside::filter {
namespace {

std::string_view join(base::Arena& arena, std::string_view prefix, std::string_view path,
                      const http::RequestHead& head) {
  const std::size_t query_bytes = head.has_query ? head.query.size() + 1 : 0;
  char* const begin = arena.allocate_array<char>(prefix.size() + path.size() + query_bytes + 1);
  if (begin == nullptr) return {};
  char* at = begin;
  auto put = [&](std::string_view text) {
    if (!text.empty()) std::memcpy(at, text.data(), text.size());
    at += text.size();
  };
  put(prefix);
  put(path);
  if (head.has_query) {
    put("?");
    put(head.query);
  }
  return {begin, static_cast<std::size_t>(at - begin)};
}

bool begins_with(std::string_view path, std::string_view prefix) {
  return path.starts_with(prefix) && (path.size() == prefix.size() || path[prefix.size()] == '/');
}

}  // namespace

std::string_view upstream_target(const config::Route& route, const http::RequestHead& head,
                                 std::string_view normal_path, base::Arena& arena) {
  const bool rewritten = !route.strip_prefix.empty() || !route.add_prefix.empty();
  if (head.form == http::TargetForm::asterisk) return "*";
  if (!rewritten) {
    if (head.form == http::TargetForm::origin) return head.target;
    return join(arena, {}, head.path, head);
  }
  std::string_view path = normal_path;
  if (!route.strip_prefix.empty() && begins_with(path, route.strip_prefix)) {
    path.remove_prefix(route.strip_prefix.size());
  }
  // "/api" without "/api" is the root, also where a prefix goes before it: "/v1/".
  if (path.empty()) path = "/";
  // What is left of "/api//x" must not read as an authority (RFC 9112 §3.2.1).
  while (route.add_prefix.empty() && path.starts_with("//"))
    path.remove_prefix(1);
  return join(arena, route.add_prefix, path, head);
}

}  // namespace ringside::filter
