// What would work as it is written, and not as it is meant.
#include <algorithm>

#include "readers.h"

namespace ringside::config {
namespace {

// What the listeners of a site speak.
struct Spoken {
  bool clear = false;
  bool tls = false;
  bool client_certificates = false;  // and ask for
};

Spoken spoken_by(const Site& site, const Snapshot& snapshot) {
  Spoken spoken;
  for (std::uint32_t i = 0; i < snapshot.listens.size(); ++i) {
    const bool here = site.listens.empty() ||
                      std::find(site.listens.begin(), site.listens.end(), i) != site.listens.end();
    if (!here) continue;
    const auto& entry = snapshot.listens[i].tls;
    (entry ? spoken.tls : spoken.clear) = true;
    spoken.client_certificates =
        spoken.client_certificates ||
        (entry && snapshot.tls[*entry].client_certificate != ClientCertificate::off);
  }
  return spoken;
}

void check_site(Draft& draft, std::size_t index) {
  const Site& site = draft.snapshot.sites[index];
  const Spoken spoken = spoken_by(site, draft.snapshot);
  Reporter& reporter = draft.context.reporter;
  const std::string_view cure =
      "let the site have a listener with tls, or name the proxy that speaks it in "
      "forwarding.trusted_proxies";
  if (site.redirect_https && site.redirect_https->on) {
    const Place& place = *draft.places.redirects[index];
    if (!spoken.clear) {
      reporter.warning(place,
                       "\"redirect_https\" does nothing, since no listener of this site is in "
                       "clear text");
    } else if (!spoken.tls) {
      reporter.warning(place,
                       "\"redirect_https\" sends clients to https, but no listener of this site "
                       "speaks TLS",
                       std::string(cure));
    }
  }
  if (!site.hsts.empty() && !spoken.tls) {
    reporter.warning(*draft.places.hsts[index],
                     "\"hsts\" is never sent, since no listener of this site speaks TLS",
                     std::string(cure));
  }
}

bool names_client_certificate(const HeaderEdits& edits) {
  auto names = [](const auto& edit) {
    return std::any_of(edit.second.begin(), edit.second.end(), [](const TemplatePart& part) {
      return is_of_client_certificate(part.variable);
    });
  };
  return std::any_of(edits.set.begin(), edits.set.end(), names) ||
         std::any_of(edits.add.begin(), edits.add.end(), names);
}

// Nothing to say: what they are written into is taken from clients all the same.
void check_variables(Draft& draft, std::size_t index) {
  const Site& site = draft.snapshot.sites[index];
  if (spoken_by(site, draft.snapshot).client_certificates) return;
  for (std::size_t i = 0; i < site.routes.size(); ++i) {
    const Route& route = site.routes[i];
    if (!names_client_certificate(route.request_headers) &&
        !names_client_certificate(route.response_headers)) {
      continue;
    }
    draft.context.reporter.warning(draft.places.routes[index][i],
                                   "the \"{tls_client_...}\" of this route say nothing, since no "
                                   "listener of its site asks for "
                                   "client certificates",
                                   R"(client_certificate = "optional" in its [tls.NAME])");
  }
}

void check_listen(Draft& draft, std::size_t index) {
  const auto& listens = draft.snapshot.listens;
  const bool any_tls = std::any_of(listens.begin(), listens.end(),
                                   [](const Listen& listen) { return listen.tls.has_value(); });
  if (!listens[index].redirect_https.on || any_tls) return;
  draft.context.reporter.warning(
      draft.places.listens[index],
      "\"redirect_https\" sends clients to https, but no listener speaks TLS",
      "add one with tls, or name the proxy that speaks it in forwarding.trusted_proxies");
}

}  // namespace

void check_https(Draft& draft) {
  for (std::size_t i = 0; i < draft.snapshot.sites.size(); ++i)
    check_variables(draft, i);
  // A proxy before us may speak TLS for us, and says so.
  if (!draft.snapshot.forwarding.trusted_proxies.empty()) return;
  for (std::size_t i = 0; i < draft.snapshot.sites.size(); ++i)
    check_site(draft, i);
  for (std::size_t i = 0; i < draft.snapshot.listens.size(); ++i)
    check_listen(draft, i);
}

}  // namespace ringside::config
