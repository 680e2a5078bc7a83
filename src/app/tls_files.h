// Tries the TLS files that a configuration names.
#pragma once

#include <string>

#include "ringside/config/snapshot.h"

namespace ringside::app {

// Loads the certificates, keys and ticket keys of every [tls.NAME] and [upstream.NAME.tls], and
// says on stderr what is wrong with them. False when some cannot be used.
bool check_tls_files(const config::Snapshot& snapshot);

// TLS is not served yet. What would be served in clear text instead, as a sentence; empty when
// there is nothing.
std::string unserved_tls(const config::Snapshot& snapshot);

}  // namespace ringside::app
