#include <algorithm>

#include "addresses.h"
#include "readers.h"

namespace ringside::config {
namespace {

void read_hosts(const Value& value, Site& site, std::vector<Place>& places) {
  for (const auto& [text, element] : read_texts(value)) {
    auto host = parse_host_pattern(text);
    if (!host) {
      element.complain(host.error());
    } else if (std::find(site.hosts.begin(), site.hosts.end(), *host) != site.hosts.end()) {
      element.complain(join({"has ", quote(*host), " twice"}));
    } else {
      site.hosts.push_back(std::move(*host));
      places.push_back(element.place());
    }
  }
}

void read_site_listens(const Value& value, const Draft& draft, Site& site) {
  for (const auto& [name, element] : read_texts(value)) {
    const auto found = draft.listen_names.find(name);
    if (found == draft.listen_names.end()) {
      std::vector<std::string_view> names;
      names.reserve(draft.listen_names.size());
      for (const auto& [known, index] : draft.listen_names)
        names.push_back(known);
      element.complain(join({"names ", quote(name), ", but there is no such listener"}),
                       suggest(name, names));
    } else if (std::find(site.listens.begin(), site.listens.end(), found->second) !=
               site.listens.end()) {
      element.complain(join({"names ", quote(name), " twice"}));
    } else {
      site.listens.push_back(found->second);
    }
  }
}

void read_routes(const Value& value, Draft& draft, Site& site) {
  for (const Value& element : value.elements()) {
    if (!element.is_table()) {
      element.complain_type("a table, [[site.route]]");
      continue;
    }
    Section section = element.section("[[site.route]]");
    read_route(section, draft, site);
  }
}

void read_https(Section& section, Draft& draft, Site& site) {
  std::optional<Place>& redirect_place = draft.places.redirects.emplace_back();
  if (const auto redirect = section.take("redirect_https")) {
    read_redirect_https(*redirect, site.redirect_https.emplace());
    redirect_place = redirect->place();
  }
  std::optional<Place>& hsts_place = draft.places.hsts.emplace_back();
  if (const auto hsts = section.take("hsts")) {
    read_hsts(*hsts, site.hsts);
    hsts_place = hsts->place();
  }
}

}  // namespace

void read_site(Section& section, Draft& draft) {
  Site site;
  site.timeouts = draft.snapshot.timeouts;
  site.limits = draft.snapshot.limits;
  std::vector<Place> host_places;
  if (const auto hosts = section.take("hosts")) {
    read_hosts(*hosts, site, host_places);
  } else {
    draft.context.reporter.problem(section.place(), join({section.title(), " has no hosts"}),
                                   R"(like hosts = ["example.org"]; "*" is any host)");
  }
  if (const auto listen = section.take("listen")) read_site_listens(*listen, draft, site);
  Section timeouts = section.sub("timeouts", "timeouts of [[site]]");
  read_site_timeouts(timeouts, site.timeouts);
  Section limits = section.sub("limits", "limits of [[site]]");
  read_site_limits(limits, site.limits);
  read_https(section, draft, site);
  draft.places.routes.emplace_back();
  const auto routes = section.take("route");
  if (routes) {
    read_routes(*routes, draft, site);
  } else {
    draft.context.reporter.warning(section.place(),
                                   join({section.title(), " has no routes, so all it says is 404"}),
                                   "add [[site.route]]");
  }
  section.finish();
  draft.places.sites.push_back(section.place());
  draft.places.hosts.push_back(std::move(host_places));
  draft.snapshot.sites.push_back(std::move(site));
}

}  // namespace ringside::config
