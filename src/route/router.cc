#include "ringside/route/router.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "flat_map.h"

namespace ringside::route {
namespace {

constexpr std::uint32_t none = ~std::uint32_t{0};

// Keys of a few lengths, tried from the longest: the work of a lookup is bounded by what is
// configured, not by how many dots or slashes a client sends.
struct ByLength {
  FlatMap map;
  std::vector<std::size_t> lengths;  // distinct, longest first

  void insert(std::string_view key, std::uint32_t index) {
    map.insert(key, index);
    const auto at =
        std::lower_bound(lengths.begin(), lengths.end(), key.size(), std::greater<std::size_t>());
    if (at == lengths.end() || *at != key.size()) lengths.insert(at, key.size());
  }
};

// All routes of one path, in file order.
struct PathNode {
  std::vector<std::pair<std::string_view, const config::Route*>> by_method;
  const config::Route* any = nullptr;
  std::string allow;

  const config::Route* find(std::string_view method) const {
    const config::Route* get = nullptr;
    for (const auto& [name, route] : by_method) {
      if (name == method) return route;
      if (name == "GET" && get == nullptr) get = route;
    }
    // RFC 9110 §9.3.2: HEAD is GET without the content.
    if (get != nullptr && method == "HEAD") return get;
    return any;
  }
};

struct SiteTable {
  FlatMap exact;      // path to node
  ByLength prefixes;  // "/x" of "/x/*" to node
  std::vector<PathNode> nodes;

  const PathNode* find(std::string_view path) const {
    if (const auto node = exact.find(path)) return &nodes[*node];
    for (const std::size_t length : prefixes.lengths) {
      if (length > path.size()) continue;
      // A prefix ends where a segment ends. "*", of OPTIONS, is below the root only.
      if (length != path.size() && length != 0 && path[length] != '/') continue;
      if (const auto node = prefixes.map.find(path.substr(0, length))) return &nodes[*node];
    }
    return nullptr;
  }
};

// The sites of one listener.
struct HostTable {
  FlatMap exact;
  ByLength suffixes;  // ".a.test" of "*.a.test"
  std::uint32_t any = none;

  std::uint32_t find(std::string_view host) const {
    if (const auto site = exact.find(host)) return *site;
    for (const std::size_t length : suffixes.lengths) {
      if (length >= host.size()) continue;
      const std::string_view suffix = host.substr(host.size() - length);
      if (suffix.front() != '.') continue;
      if (const auto site = suffixes.map.find(suffix)) return *site;
    }
    return any;
  }
};

void add_method(std::string& allow, std::string_view method) {
  if (!allow.empty()) allow += ", ";
  allow += method;
}

void finish_node(PathNode& node) {
  bool get = false;
  bool head = false;
  for (const auto& [method, route] : node.by_method) {
    add_method(node.allow, method);
    get = get || method == "GET";
    head = head || method == "HEAD";
  }
  if (get && !head) add_method(node.allow, "HEAD");
}

void add_route(SiteTable& table, const config::Route& route) {
  const auto fresh = static_cast<std::uint32_t>(table.nodes.size());
  const std::string_view path = route.path;
  std::uint32_t index = 0;
  if (path.ends_with("/*")) {
    const std::string_view prefix = path.substr(0, path.size() - 2);
    index = table.prefixes.map.find(prefix).value_or(fresh);
    if (index == fresh) table.prefixes.insert(prefix, fresh);
  } else {
    index = table.exact.insert(path, fresh);
  }
  if (index == fresh) table.nodes.emplace_back();
  PathNode& node = table.nodes[index];
  for (const std::string& method : route.methods)
    node.by_method.emplace_back(method, &route);
  if (route.methods.empty() && node.any == nullptr) node.any = &route;
}

void add_host(HostTable& table, std::string_view host, std::uint32_t site) {
  if (host == "*") {
    if (table.any == none) table.any = site;
  } else if (host.starts_with("*.")) {
    table.suffixes.insert(host.substr(1), site);
  } else {
    table.exact.insert(host, site);
  }
}

}  // namespace

struct Router::Tables {
  std::vector<HostTable> listens;
  std::vector<SiteTable> sites;
};

Router::Router(config::SnapshotRef snapshot)
    : snapshot_(std::move(snapshot)), tables_(std::make_unique<Tables>()) {
  const config::Snapshot& from = *snapshot_;
  tables_->listens.resize(from.listens.size());
  tables_->sites.resize(from.sites.size());
  for (std::uint32_t i = 0; i < from.sites.size(); ++i) {
    const config::Site& site = from.sites[i];
    for (const config::Route& route : site.routes)
      add_route(tables_->sites[i], route);
    for (PathNode& node : tables_->sites[i].nodes)
      finish_node(node);
    for (std::uint32_t listen = 0; listen < from.listens.size(); ++listen) {
      const bool here = site.listens.empty() || std::find(site.listens.begin(), site.listens.end(),
                                                          listen) != site.listens.end();
      if (!here) continue;
      for (const std::string& host : site.hosts)
        add_host(tables_->listens[listen], host, i);
    }
  }
}

Router::~Router() = default;

const config::Site* Router::find_site(std::uint32_t listen, std::string_view host) const {
  if (listen >= tables_->listens.size()) return nullptr;
  const std::uint32_t site = tables_->listens[listen].find(host);
  return site == none ? nullptr : &snapshot_->sites[site];
}

Match Router::find(std::uint32_t listen, std::string_view host, std::string_view path,
                   std::string_view method) const {
  Match match;
  if (listen >= tables_->listens.size()) return match;
  const std::uint32_t site = tables_->listens[listen].find(host);
  if (site == none) return match;
  match.site = &snapshot_->sites[site];
  match.kind = Match::Kind::no_route;
  const PathNode* node = tables_->sites[site].find(path);
  if (node == nullptr) return match;
  match.route = node->find(method);
  if (match.route != nullptr) {
    match.kind = Match::Kind::found;
  } else {
    match.kind = Match::Kind::method_not_allowed;
    match.allow = node->allow;
  }
  return match;
}

}  // namespace ringside::route
