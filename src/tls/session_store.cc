#include "session_store.h"

#include <utility>

namespace ringside::tls {

void SessionStore::put(std::string_view server, SessionPtr session) {
  auto at = servers_.find(server);
  if (at == servers_.end()) {
    if (servers_.size() >= servers_max) return;
    at = servers_.try_emplace(std::string(server)).first;
  }
  std::vector<SessionPtr>& sessions = at->second;
  if (sessions.size() >= sessions_max) sessions.erase(sessions.begin());
  sessions.push_back(std::move(session));
}

SessionPtr SessionStore::take(std::string_view server) {
  const auto at = servers_.find(server);
  if (at == servers_.end() || at->second.empty()) return nullptr;
  SessionPtr& newest = at->second.back();
  if (SSL_SESSION_get_protocol_version(newest.get()) < TLS1_3_VERSION) {
    SSL_SESSION_up_ref(newest.get());
    return SessionPtr(newest.get());
  }
  SessionPtr session = std::move(newest);
  at->second.pop_back();
  return session;
}

}  // namespace ringside::tls
