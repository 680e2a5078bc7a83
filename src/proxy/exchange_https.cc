// What TLS, or the lack of it, means for a request: redirects to https, HSTS, requests on the wrong
// connection.
#include <string>

#include "client_tls.h"
#include "exchange.h"

namespace ringside::proxy {

using base::Origin;

// False: the request is served here.
bool Exchange::send_to_https(const route::Match& match, std::string_view host) {
  const config::RedirectHttps& wanted = redirect_rule();
  if (match.route != nullptr && !match.route->redirect_https) return false;
  if (filter::client_is_secure(facts_, arena_)) return false;
  std::string_view location = filter::https_location(facts_, host, wanted.port, arena_);
  if (location.data() == nullptr) {
    refuse(503, "Out of memory.", {Origin::self, Stage::respond, Cause::no_resources});
  } else if (location.empty()) {
    refuse(400, "The request's host is none that https could be asked for.",
           {Origin::client, Stage::route, Cause::bad_message});
  } else {
    end_with(Origin::self, Stage::respond, Cause::complete);
    send_local({.status = wanted.status, .extra_name = "Location", .extra_value = location});
  }
  return true;
}

filter::Hsts Exchange::hsts_of_site() {
  return {.value = site_->hsts, .secure = filter::client_is_secure(facts_, arena_)};
}

// RFC 9110 §15.5.20. Where clients are asked for certificates, a connection is good for the site
// that its handshake was for, under the rules of that time: for another site, or after the rules
// have changed, the client has to come anew.
bool Exchange::misdirected(std::string_view host) {
  const auto& entry = snapshot().listens[client_facts_.listen].tls;
  if (!entry || client_facts_.tls == nullptr) return false;
  if (snapshot().tls[*entry].client_certificate == config::ClientCertificate::off) return false;
  const tls::Credentials& now = *runtime_.runtime->material->entries[*entry].credentials;
  const bool stale = !client_facts_.tls->met_rules(now);
  const std::string_view asked = client_facts_.tls->server_name();
  const bool other = !asked.empty() && asked != host &&
                     runtime_.runtime->router.find_site(client_facts_.listen, asked) != site_;
  if (!stale && !other) return false;
  if (stale) keep_ = false;
  context_.logger.log(base::LogLevel::info, "tls",
                      "client " + std::string(facts_.client_address) +
                          (other ? ": 421, since its handshake was for " + std::string(asked) +
                                       " and its request is for " + std::string(host)
                                 : ": 421, since its handshake was under other rules"));
  refuse(421, "This connection is not for that host.",
         {Origin::client, Stage::route, Cause::misdirected});
  return true;
}

}  // namespace ringside::proxy
