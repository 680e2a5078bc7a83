// Which route takes a request. Built once from a Snapshot; read by every ring without locks.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "ringside/config/snapshot.h"
#include "ringside/http/message.h"

namespace ringside::route {

struct Match {
  enum class Kind : std::uint8_t {
    found,
    no_site,             // no site takes that host on that listener: 404
    no_route,            // no path matches: 404
    method_not_allowed,  // a path matches, but no method: 405 with `allow`
  };
  Kind kind = Kind::no_site;
  const config::Site* site = nullptr;
  const config::Route* route = nullptr;
  std::string_view allow;  // for method_not_allowed: "GET, HEAD"; lives as long as the router
};

// Immutable after construction; holds a reference to the Snapshot. Lookups allocate nothing.
//
// Order, most specific first. Host: exact, then the longest "*.suffix", then "*". Inside the site
// the path decides next: exact, then the longest prefix ("/x/*" takes "/x" and all below it). Only
// among the routes of that one path the method decides: a route that names it (or GET for HEAD),
// then one that takes any; else 405. So a method that a path refuses never falls through to a wider
// path. Several sites may name the same host on different listeners.
class Router {
 public:
  explicit Router(config::SnapshotRef snapshot);
  ~Router();
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  // The site that takes a host on a listener; null: none. `host` is normalised.
  const config::Site* find_site(std::uint32_t listen, std::string_view host) const;

  // `host` and `path` are normalised (http::normalise_host, http::normalise_path).
  Match find(std::uint32_t listen, std::string_view host, std::string_view path,
             std::string_view method) const;

 private:
  struct Tables;
  config::SnapshotRef snapshot_;
  std::unique_ptr<Tables> tables_;
};

}  // namespace ringside::route
