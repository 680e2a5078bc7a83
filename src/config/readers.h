// The parts of a Snapshot, each read from its section. What is absent keeps its default.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ringside/config/snapshot.h"

#include "section.h"

namespace ringside::config {

// Where things were written, for the checks that compare them with each other.
struct Places {
  std::vector<Place> listens;                 // like Snapshot::listens
  std::vector<std::vector<Place>> addresses;  // one a listen's address
  std::vector<Place> tls;                     // like Snapshot::tls
  std::vector<Place> upstreams;
  std::vector<std::vector<Place>> servers;  // one an upstream's server
  std::vector<Place> sites;
  std::vector<std::optional<Place>> redirects;  // one a site: where redirect_https is
  std::vector<std::optional<Place>> hsts;       // one a site
  std::vector<std::vector<Place>> hosts;        // one a site's host
  std::vector<std::vector<Place>> routes;       // one a site's route
};

// One whole load: what is read so far, and where it was.
struct Draft {
  Context& context;
  Snapshot& snapshot;
  Places places;
  std::map<std::string, std::uint32_t, std::less<>> listen_names;
  std::map<std::string, std::uint32_t, std::less<>> upstream_names;
  std::map<std::string, std::uint32_t, std::less<>> tls_names;
};

// A named value, or "0"/"none" where there may be none.
enum class Zero : std::uint8_t { refused, allowed };

// Scalars (scalars.cc). Each takes the key; `out` changes only when the value is good.
void read_text(Section& section, std::string_view key, std::string& out);
void read_flag(Section& section, std::string_view key, bool& out);
void read_count(Section& section, std::string_view key, std::uint32_t& out, std::uint32_t least,
                std::uint32_t most);
// A count where 0 and `word` mean that there is none.
void read_optional_count(Section& section, std::string_view key, std::uint32_t& out,
                         std::uint32_t most, std::string_view word);
void read_duration(Section& section, std::string_view key, Millis& out, Millis least, Zero zero);
void read_size(Section& section, std::string_view key, std::uint64_t& out, std::uint64_t least,
               std::uint64_t most, Zero zero = Zero::refused);
void read_size(Section& section, std::string_view key, std::uint32_t& out, std::uint32_t least,
               std::uint32_t most, Zero zero = Zero::refused);
// A size with "/s" behind it, or none.
void read_rate(Section& section, std::string_view key, std::uint64_t& out, std::uint64_t least,
               std::uint64_t most);
// A list of strings; one string stands for a list of one. Empty strings and lists are mistakes.
std::vector<std::pair<std::string, Value>> read_texts(const Value& value);

// One of several words that stand for something. Reports any other and returns nothing then.
template <typename T>
std::optional<T> choice(const Value& value,
                        const std::vector<std::pair<std::string_view, T>>& words) {
  std::vector<std::string_view> names;
  names.reserve(words.size());
  for (const auto& [name, meaning] : words)
    names.push_back(name);
  const auto text = value.text(join({"one of ", quote_list(names)}));
  if (!text) return std::nullopt;
  for (const auto& [name, meaning] : words) {
    if (*text == name) return meaning;
  }
  value.complain(join({"cannot be ", quote(*text)}), suggest(*text, names));
  return std::nullopt;
}

// The name of a file; a relative one is made relative to the folder of the file that it stands in.
void read_path(Section& section, std::string_view key, std::string& out);

// Sections (settings.cc).
void read_server(Section& section, Server& server);
void read_timeouts(Section& section, Timeouts& timeouts);
void read_site_timeouts(Section& section, Timeouts& timeouts);
void read_limits(Section& section, Limits& limits);
void read_site_limits(Section& section, Limits& limits);
void read_log(Section& section, Log& log);
void read_forwarding(Section& section, Forwarding& forwarding);

// Named things (listens.cc, upstreams.cc, sites.cc), with [timeouts] and [limits] as their
// defaults. `names` has the tables of one file each.
void read_listens(Section& names, Draft& draft);
void read_upstreams(Section& names, Draft& draft);
void read_site(Section& section, Draft& draft);

// [tls.NAME] and [upstream.NAME.tls] (tls.cc).
void read_tls_entries(Section& names, Draft& draft);
void read_upstream_tls(Section& section, UpstreamTls& tls);

// What has to do with https, of sites, listeners and routes (https.cc).
void read_redirect_https(const Value& value, RedirectHttps& out);
// `out` is the field's whole value.
void read_hsts(const Value& value, std::string& out);
void read_route_redirect_https(Section& section, Route& route);

// [[site.route]] (routes.cc).
void read_route(Section& section, Draft& draft, Site& site);
// The edits of header fields (edits.cc).
enum class Direction : std::uint8_t {
  request,
  response,
  redirect,  // of a response whose Location is what the route is for
};
void read_edits(Section& section, Direction direction, HeaderEdits& edits);
void read_respond_headers(Section& section, Respond& respond);

// A name that logs and {listener} show: letters, digits, "-", "_" and ".".
bool check_name(const Named& entry, std::string_view what);

// Everything that concerns several sections (checks.cc).
void check_whole(Draft& draft);
// What sites say about https, and what their listeners speak (https_checks.cc).
void check_https(Draft& draft);

}  // namespace ringside::config
