#include <algorithm>
#include <map>
#include <set>

#include "readers.h"

namespace ringside::config {
namespace {

std::vector<std::uint32_t> listens_of(const Site& site, std::size_t listen_count) {
  if (!site.listens.empty()) return site.listens;
  std::vector<std::uint32_t> all(listen_count);
  for (std::size_t i = 0; i < listen_count; ++i)
    all[i] = static_cast<std::uint32_t>(i);
  return all;
}

void check_listens(Draft& draft) {
  const Snapshot& snapshot = draft.snapshot;
  if (snapshot.listens.empty()) {
    draft.context.reporter.problem({snapshot.file, 0, 0}, "there is no listener",
                                   "add [listen.web] with an address");
  }
  std::map<std::string, Place> seen;
  for (std::size_t i = 0; i < snapshot.listens.size(); ++i) {
    for (std::size_t j = 0; j < snapshot.listens[i].addresses.size(); ++j) {
      const Endpoint& endpoint = snapshot.listens[i].addresses[j];
      // Port 0 is a new port each time.
      if (endpoint.kind != Endpoint::Kind::unix_socket && endpoint.port == 0) continue;
      const std::string key = endpoint.path.empty()
                                  ? join({endpoint.host, " ", std::to_string(endpoint.port)})
                                  : endpoint.path;
      const Place& place = draft.places.addresses[i][j];
      const auto [known, fresh] = seen.emplace(key, place);
      if (fresh) continue;
      draft.context.reporter.problem(
          place, join({"the address ", quote(endpoint.text), " is listened on already, at ",
                       short_text(known->second)}));
    }
  }
}

void check_hosts(Draft& draft) {
  const Snapshot& snapshot = draft.snapshot;
  std::map<std::pair<std::uint32_t, std::string>, Place> seen;
  std::set<std::uint32_t> used;
  for (std::size_t i = 0; i < snapshot.sites.size(); ++i) {
    const Site& site = snapshot.sites[i];
    const auto listens = listens_of(site, snapshot.listens.size());
    used.insert(listens.begin(), listens.end());
    for (std::size_t j = 0; j < site.hosts.size(); ++j) {
      const Place& place = draft.places.hosts[i][j];
      for (std::uint32_t listen : listens) {
        const auto [known, fresh] = seen.emplace(std::pair(listen, site.hosts[j]), place);
        if (fresh) continue;
        draft.context.reporter.problem(
            place, join({"the host ", quote(site.hosts[j]), " has a site on listener ",
                         quote(snapshot.listens[listen].name), " already, at ",
                         short_text(known->second)}));
        break;  // one report for the pair, not one a listener
      }
    }
  }
  if (snapshot.sites.empty()) {
    draft.context.reporter.warning({snapshot.file, 0, 0},
                                   "there is no site, so every request is answered with 404",
                                   "add [[site]]");
    return;
  }
  for (std::size_t i = 0; i < snapshot.listens.size(); ++i) {
    if (used.contains(static_cast<std::uint32_t>(i))) continue;
    draft.context.reporter.warning(
        draft.places.listens[i],
        join({"no site uses the listener ", quote(snapshot.listens[i].name)}));
  }
}

// Equal paths that take the same method. Unequal paths never hide each other: the more specific
// one wins.
void check_routes(Draft& draft, const Site& site, const std::vector<Place>& places) {
  std::map<std::pair<std::string, std::string>, std::size_t> seen;
  for (std::size_t i = 0; i < site.routes.size(); ++i) {
    const Route& route = site.routes[i];
    if (route.path.empty()) continue;
    std::vector<std::string> methods = route.methods;
    if (methods.empty()) methods.emplace_back();
    for (const std::string& method : methods) {
      const auto [known, fresh] = seen.emplace(std::pair(route.path, method), i);
      if (fresh) continue;
      draft.context.reporter.problem(
          places[i], join({"this site has a route for ", method.empty() ? "" : method + " ",
                           quote(route.path), " already, at ", short_text(places[known->second])}));
      break;
    }
  }
}

// A route that takes any method, beside routes on the same path that take all the usual ones.
void warn_of_shadowed(Draft& draft, const Site& site, const std::vector<Place>& places) {
  static constexpr std::string_view usual[] = {"GET",    "HEAD",    "POST", "PUT",
                                               "DELETE", "OPTIONS", "PATCH"};
  for (std::size_t i = 0; i < site.routes.size(); ++i) {
    if (!site.routes[i].methods.empty()) continue;
    std::set<std::string_view> taken;
    for (const Route& other : site.routes) {
      if (other.path == site.routes[i].path)
        taken.insert(other.methods.begin(), other.methods.end());
    }
    if (taken.contains("GET")) taken.insert("HEAD");
    const bool all = std::all_of(std::begin(usual), std::end(usual),
                                 [&](std::string_view method) { return taken.contains(method); });
    if (!all) continue;
    draft.context.reporter.warning(places[i], join({"other routes for ", quote(site.routes[i].path),
                                                    " take every usual method, so this one hardly "
                                                    "ever runs"}));
  }
}

void check_tls(Draft& draft) {
  const Snapshot& snapshot = draft.snapshot;
  for (std::uint32_t i = 0; i < snapshot.tls.size(); ++i) {
    const bool used = std::any_of(snapshot.listens.begin(), snapshot.listens.end(),
                                  [&](const Listen& listen) { return listen.tls == i; });
    if (used) continue;
    draft.context.reporter.warning(
        draft.places.tls[i], join({"no listener uses the entry [tls.", snapshot.tls[i].name, "]"}));
  }
}

void check_upstreams(Draft& draft) {
  const Snapshot& snapshot = draft.snapshot;
  std::set<std::uint32_t> used;
  for (const Site& site : snapshot.sites) {
    for (const Route& route : site.routes) {
      if (route.upstream) used.insert(*route.upstream);
    }
  }
  for (std::size_t i = 0; i < snapshot.upstreams.size(); ++i) {
    if (used.contains(static_cast<std::uint32_t>(i))) continue;
    draft.context.reporter.warning(
        draft.places.upstreams[i],
        join({"no route uses the upstream ", quote(snapshot.upstreams[i].name)}));
  }
}

}  // namespace

void check_whole(Draft& draft) {
  check_listens(draft);
  check_hosts(draft);
  for (std::size_t i = 0; i < draft.snapshot.sites.size(); ++i) {
    check_routes(draft, draft.snapshot.sites[i], draft.places.routes[i]);
    warn_of_shadowed(draft, draft.snapshot.sites[i], draft.places.routes[i]);
  }
  check_tls(draft);
  check_https(draft);
  check_upstreams(draft);
}

}  // namespace ringside::config
