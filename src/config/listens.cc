#include <algorithm>

#include "addresses.h"
#include "readers.h"

namespace ringside::config {
namespace {

constexpr std::size_t name_bytes_max = 64;

void read_listen_tls(Section& section, Draft& draft, Listen& listen) {
  const auto value = section.take("tls");
  if (!value) return;
  const auto name = value->text(R"(the NAME of a [tls.NAME])");
  if (!name) return;
  if (const auto found = draft.tls_names.find(*name); found != draft.tls_names.end()) {
    listen.tls = found->second;
    return;
  }
  std::vector<std::string_view> names;
  names.reserve(draft.tls_names.size());
  for (const auto& [known, index] : draft.tls_names)
    names.push_back(known);
  value->complain(join({"names ", quote(*name), ", but there is no [tls.", *name, "]"}),
                  names.empty() ? std::string() : suggest(*name, names));
}

// In the order that the listener prefers.
void read_protocols(Section& section, Listen& listen) {
  const auto value = section.take("protocols");
  if (!value) return;
  enum class Protocol : std::uint8_t { h2, http1 };
  std::vector<Protocol> wanted;
  for (const Value& element : value->elements()) {
    const auto word =
        choice<Protocol>(element, {{"h2", Protocol::h2}, {"http/1.1", Protocol::http1}});
    if (!word) return;
    if (std::ranges::find(wanted, *word) != wanted.end()) {
      element.complain(*word == Protocol::h2 ? "has \"h2\" twice" : "has \"http/1.1\" twice");
      return;
    }
    wanted.push_back(*word);
  }
  if (wanted.empty()) {
    value->complain("is empty", R"(["h2", "http/1.1"])");
    return;
  }
  listen.http2 = std::ranges::find(wanted, Protocol::h2) != wanted.end();
  listen.http1 = std::ranges::find(wanted, Protocol::http1) != wanted.end();
  listen.http1_preferred = wanted.front() == Protocol::http1;
}

void read_listen_redirect(Section& section, Listen& listen) {
  const auto redirect = section.take("redirect_https");
  if (!redirect) return;
  read_redirect_https(*redirect, listen.redirect_https);
  if (listen.redirect_https.on && section.take("tls")) {
    redirect->complain("is for a listener in clear text, but this one speaks TLS",
                       "leave one of tls and redirect_https out");
  }
}

// The kernel counts in retransmissions of its SYN-ACK, after 1, 3, 7 and 15 seconds. By default it
// makes one more, and who is silent until then is dropped rather than accepted.
constexpr Millis defer_accept_ms_max = 15'000;

void read_defer_accept(Section& section, Listen& listen) {
  read_duration(section, "defer_accept", listen.defer_accept_ms, 1000, Zero::allowed);
  if (listen.defer_accept_ms == 0) return;
  const auto value = section.take("defer_accept");
  if (listen.defer_accept_ms > defer_accept_ms_max || listen.defer_accept_ms % 1000 != 0) {
    value->complain("must be whole seconds, at most \"15s\"");
  } else if (std::ranges::all_of(listen.addresses, [](const Endpoint& endpoint) {
               return endpoint.kind == Endpoint::Kind::unix_socket;
             })) {
    value->complain("is for TCP, but all addresses are unix sockets");
  }
}

void read_listen(const Value& value, Draft& draft) {
  Listen listen;
  listen.name = value.name();
  std::vector<Place> places;
  Section section = value.section(join({"[listen.", value.name(), "]"}));
  const auto address = section.take("address");
  if (!address) {
    draft.context.reporter.problem(value.place(), join({section.title(), " has no address"}),
                                   R"(like address = "0.0.0.0:8080")");
  } else {
    for (const auto& [text, element] : read_texts(*address)) {
      auto endpoint = parse_endpoint(text, EndpointUse::listener);
      if (endpoint) {
        listen.addresses.push_back(std::move(*endpoint));
        places.push_back(element.place());
      } else {
        element.complain(endpoint.error());
      }
    }
  }
  read_count(section, "backlog", listen.backlog, 1, 65'535);
  read_defer_accept(section, listen);
  read_listen_tls(section, draft, listen);
  read_protocols(section, listen);
  read_listen_redirect(section, listen);
  section.finish();
  draft.snapshot.listens.push_back(std::move(listen));
  draft.places.listens.push_back(value.place());
  draft.places.addresses.push_back(std::move(places));
}

}  // namespace

bool check_name(const Named& entry, std::string_view what) {
  const std::string_view name = entry.key->str();
  const bool good = !name.empty() && name.size() <= name_bytes_max && is_token(name) &&
                    std::all_of(name.begin(), name.end(), [](char c) {
                      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                             (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.';
                    });
  Reporter& reporter = entry.value.context().reporter;
  if (!good) {
    reporter.problem(place_of(entry.key->source()),
                     join({"the name ", quote(name), " of ", what, " is not usable"}),
                     "1 to 64 letters, digits, \"-\", \"_\" or \".\"");
  }
  if (!entry.value.is_table()) entry.value.complain_type(join({"a table, [", what, ".NAME]"}));
  return good && entry.value.is_table();
}

void read_listens(Section& names, Draft& draft) {
  for (const Named& entry : names.all()) {
    if (!check_name(entry, "listen")) continue;
    const auto index = static_cast<std::uint32_t>(draft.snapshot.listens.size());
    const auto [known, fresh] = draft.listen_names.emplace(entry.value.name(), index);
    if (fresh) {
      read_listen(entry.value, draft);
      continue;
    }
    draft.context.reporter.problem(entry.value.place(),
                                   join({"[listen.", entry.value.name(), "] is there already, at ",
                                         short_text(draft.places.listens[known->second])}));
  }
}

}  // namespace ringside::config
