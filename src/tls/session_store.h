// Sessions that servers gave us, to be resumed.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "openssl.h"

namespace ringside::tls {

// Owner: a ClientContext; one thread.
class SessionStore {
 public:
  static constexpr std::size_t servers_max = 1024;
  static constexpr std::size_t sessions_max = 4;  // of a server

  // Keeps the newest ones of a server. Without room for another server, it is not kept.
  void put(std::string_view server, SessionPtr session);
  // The newest; null when there is none. One of TLS 1.3 is taken out, since a ticket that is used
  // twice lets who listens link the two connections (RFC 8446 §C.4); an older one stays.
  SessionPtr take(std::string_view server);

 private:
  std::map<std::string, std::vector<SessionPtr>, std::less<>> servers_;
};

}  // namespace ringside::tls
