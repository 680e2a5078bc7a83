#include "tls_files.h"

#include <cstdio>
#include <ctime>
#include <string>

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

}  // namespace

bool check_tls_files(const config::Snapshot& snapshot) {
  bool good = true;
  for (const config::Tls& entry : snapshot.tls)
    good = check_entry(entry) && good;
  return good;
}

}  // namespace ringside::app
