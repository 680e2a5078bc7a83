#include <algorithm>

#include "addresses.h"
#include "readers.h"

namespace ringside::config {
namespace {

constexpr std::uint32_t weight_max = 1000;
constexpr std::uint32_t connections_max = 1'000'000;
constexpr std::uint32_t streams_max = 10'000;

// Takes "https://" off; the port is 443 unless one is given.
Parsed<Endpoint> parse_server(std::string_view text, bool& tls) {
  static constexpr std::string_view scheme = "https://";
  tls = text.starts_with(scheme);
  if (!tls) return parse_endpoint(text, EndpointUse::server);
  const std::string_view rest = text.substr(scheme.size());
  if (const std::size_t slash = rest.find('/'); slash != std::string_view::npos) {
    return std::unexpected(
        Complaint{join({"has ", quote(text), ", which has a path"}),
                  join({"did you mean ", quote(join({scheme, rest.substr(0, slash)})), "?"})});
  }
  const bool has_port = !rest.ends_with(']') && rest.contains(':');
  return parse_endpoint(has_port ? std::string(rest) : join({rest, ":443"}), EndpointUse::server);
}

void add_server(Upstream& upstream, std::vector<Place>& places, UpstreamServer server,
                const std::string& address, const Value& at) {
  auto endpoint = parse_server(address, server.tls);
  if (!endpoint) {
    at.complain(endpoint.error());
    return;
  }
  server.endpoint = std::move(*endpoint);
  for (const UpstreamServer& other : upstream.servers) {
    if (other.endpoint.text == server.endpoint.text) {
      at.warn(join({"has ", quote(address), " twice"}), "give it a weight instead");
    }
  }
  upstream.servers.push_back(std::move(server));
  places.push_back(at.place());
}

void warn_without_h2(Section& section, std::string_view key, UpstreamProtocol protocol) {
  const auto value = section.take(key);
  if (value && protocol == UpstreamProtocol::http1)
    value->warn("does nothing, since no server is spoken to in HTTP/2", R"(like protocol = "h2")");
}

void read_streams(Section& section, UpstreamProtocol protocol, std::uint32_t& out) {
  read_count(section, "max_streams", out, 1, streams_max);
  warn_without_h2(section, "max_streams", protocol);
}

// `defaults`: what the upstream says for all of its servers.
void read_server_entry(const Value& value, const UpstreamServer& defaults, Upstream& upstream,
                       std::vector<Place>& places) {
  UpstreamServer server = defaults;
  if (!value.is_table()) {
    const auto text =
        value.text("a string or a table of address, weight, max_connections and max_streams");
    if (text) add_server(upstream, places, std::move(server), *text, value);
    return;
  }
  Section section = value.section(join({"servers of [upstream.", upstream.name, "]"}));
  read_count(section, "weight", server.weight, 1, weight_max);
  read_optional_count(section, "max_connections", server.connections_max, connections_max, "none");
  read_streams(section, upstream.protocol, server.streams_max);
  const auto address = section.take("address");
  section.finish();
  if (!address) {
    value.complain("has an entry without address", R"(like { address = "10.0.0.1:8080" })");
    return;
  }
  if (const auto text = address->text()) {
    add_server(upstream, places, std::move(server), *text, *address);
  }
}

void read_protocol(Section& section, Upstream& upstream) {
  const auto value = section.take("protocol");
  if (!value) return;
  const auto chosen = choice<UpstreamProtocol>(*value, {{"http/1.1", UpstreamProtocol::http1},
                                                        {"h2", UpstreamProtocol::h2},
                                                        {"auto", UpstreamProtocol::automatic}});
  if (chosen) upstream.protocol = *chosen;
}

void read_pings(Section& section, Upstream& upstream) {
  read_duration(section, "ping_interval", upstream.ping_interval_ms, 1, Zero::allowed);
  read_duration(section, "ping_timeout", upstream.ping_timeout_ms, 1, Zero::refused);
  warn_without_h2(section, "ping_interval", upstream.protocol);
  warn_without_h2(section, "ping_timeout", upstream.protocol);
}

// The servers are known.
void check_protocol(Section& section, const Upstream& upstream, bool any_tls) {
  if (upstream.protocol != UpstreamProtocol::automatic || any_tls || upstream.servers.empty())
    return;
  section.take("protocol")
      ->warn("cannot be \"auto\" without TLS: the servers get HTTP/1.1",
             R"("h2" speaks HTTP/2 in clear text)");
}

void read_balance(Section& section) {
  const auto value = section.take("balance");
  if (!value) return;
  const auto text = value->text();
  static constexpr std::string_view known[] = {"round_robin"};
  if (text && *text != known[0]) {
    value->complain(join({"cannot be ", quote(*text)}), suggest(*text, known));
  }
}

void read_upstream(const Value& value, Draft& draft) {
  Upstream upstream;
  upstream.name = value.name();
  upstream.timeouts = draft.snapshot.timeouts;
  std::vector<Place> places;
  Section section = value.section(join({"[upstream.", value.name(), "]"}));
  UpstreamServer defaults;
  read_optional_count(section, "max_connections", defaults.connections_max, connections_max,
                      "none");
  read_protocol(section, upstream);
  read_streams(section, upstream.protocol, defaults.streams_max);
  read_pings(section, upstream);
  defaults.protocol = upstream.protocol;
  read_balance(section);
  read_count(section, "queue", upstream.queue_max, 0, 1'000'000);
  read_count(section, "idle_connections", upstream.idle_max, 0, 65'536);
  read_duration(section, "idle_timeout", upstream.idle_timeout_ms, 1, Zero::refused);
  read_duration(section, "resolve_interval", upstream.resolve_interval_ms, 1000, Zero::refused);
  Timeouts& timeouts = upstream.timeouts;
  read_duration(section, "connect_timeout", timeouts.connect_ms, 1, Zero::refused);
  read_duration(section, "response_header_timeout", timeouts.response_header_ms, 1, Zero::allowed);
  read_duration(section, "queue_timeout", timeouts.queue_ms, 1, Zero::refused);
  read_duration(section, "body_idle_timeout", timeouts.body_idle_ms, 1, Zero::allowed);
  const auto servers = section.take("servers");
  if (!servers || servers->elements().empty()) {
    draft.context.reporter.problem(servers ? servers->place() : value.place(),
                                   join({section.title(), " has no servers"}),
                                   R"(like servers = ["10.0.0.1:8080"])");
  } else {
    for (const Value& element : servers->elements()) {
      read_server_entry(element, defaults, upstream, places);
    }
  }
  Section tls = section.sub("tls", join({"[upstream.", value.name(), ".tls]"}));
  read_upstream_tls(tls, upstream.tls);
  const bool any_tls = std::any_of(upstream.servers.begin(), upstream.servers.end(),
                                   [](const UpstreamServer& server) { return server.tls; });
  check_protocol(section, upstream, any_tls);
  if (tls.exists() && !any_tls && !upstream.servers.empty()) {
    draft.context.reporter.problem(
        tls.place(), join({tls.title(), " does nothing, since no server is spoken to over TLS"}),
        R"(like servers = ["https://10.0.0.1:8443"])");
  }
  section.finish();
  draft.snapshot.upstreams.push_back(std::move(upstream));
  draft.places.upstreams.push_back(value.place());
  draft.places.servers.push_back(std::move(places));
}

}  // namespace

void read_upstreams(Section& names, Draft& draft) {
  for (const Named& entry : names.all()) {
    if (!check_name(entry, "upstream")) continue;
    const auto index = static_cast<std::uint32_t>(draft.snapshot.upstreams.size());
    const auto [known, fresh] = draft.upstream_names.emplace(entry.value.name(), index);
    if (fresh) {
      read_upstream(entry.value, draft);
      continue;
    }
    draft.context.reporter.problem(
        entry.value.place(), join({"[upstream.", entry.value.name(), "] is there already, at ",
                                   short_text(draft.places.upstreams[known->second])}));
  }
}

}  // namespace ringside::config
