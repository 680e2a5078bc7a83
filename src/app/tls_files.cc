#include "tls_files.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <utility>

#include "ringside/tls/client_context.h"
#include "ringside/tls/credentials.h"
#include "ringside/tls/ticket_keys.h"

namespace ringside::app {
namespace {

void say(const std::string& title, const char* kind, const std::string& text) {
  std::fprintf(stderr, "%s%s: %s\n", kind, title.c_str(), text.c_str());
}

bool check_entry(const config::Tls& entry) {
  const std::string title = "[tls." + entry.name + "]";
  const tls::LoadedCredentials loaded = tls::load_credentials(entry, std::time(nullptr));
  for (const std::string& error : loaded.errors)
    say(title, "", error);
  for (const std::string& warning : loaded.warnings)
    say(title, "warning: ", warning);
  bool good = loaded.credentials != nullptr;
  if (!entry.ticket_keys_file.empty()) {
    const auto keys = tls::TicketKeys::from_file({}, entry.ticket_keys_file);
    if (!keys) say(title, "", keys.error());
    good = good && keys.has_value();
  }
  return good;
}

bool check_upstream(const config::Upstream& upstream) {
  const bool used = std::any_of(upstream.servers.begin(), upstream.servers.end(),
                                [](const config::UpstreamServer& server) { return server.tls; });
  if (!used) return true;
  const std::string title = "[upstream." + upstream.name + ".tls]";
  std::shared_ptr<const tls::TrustStore> trust;
  if (upstream.tls.verify) {
    auto loaded = tls::TrustStore::load(upstream.tls.ca);
    if (!loaded) {
      say(title, "", loaded.error());
      return false;
    }
    trust = std::move(*loaded);
  }
  const auto context = tls::ClientContext::make(upstream.tls, upstream.name, trust);
  if (!context) say(title, "", context.error());
  return context.has_value();
}

}  // namespace

std::string unserved_tls(const config::Snapshot& snapshot) {
  for (const config::Listen& listen : snapshot.listens) {
    if (listen.tls) {
      return "[listen." + listen.name +
             "] tls: this version of ringside does not serve TLS yet, and would serve clear text";
    }
  }
  for (const config::Upstream& upstream : snapshot.upstreams) {
    for (const config::UpstreamServer& server : upstream.servers) {
      if (server.tls) {
        return "[upstream." + upstream.name +
               "] https://: this version of ringside does not speak TLS to servers yet, and would "
               "send clear text";
      }
    }
  }
  return {};
}

bool check_tls_files(const config::Snapshot& snapshot) {
  bool good = true;
  for (const config::Tls& entry : snapshot.tls)
    good = check_entry(entry) && good;
  for (const config::Upstream& upstream : snapshot.upstreams)
    good = check_upstream(upstream) && good;
  return good;
}

}  // namespace ringside::app
